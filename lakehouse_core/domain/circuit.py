"""The circuit of a source or an engine: one that is silent is left alone, then tried once.

Only silence counts. A source that answers with bad rows, or refuses us, is there: it fails its runs
and is tried less often, but its circuit stays closed; so does that of an engine that fails a
statement. A fault of our own store says nothing about the source either way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.agent import CircuitState

OPEN_AFTER = 5  # where the configuration does not say

# What a run tells about its source: it answered, it was silent, or nothing either way.
Reach = Literal["answered", "silent", "untold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The state of one circuit; every change returns a new one.

    Attributes:
        failures: runs in a row in which the source was silent.
        since: since when it is in this state.
        reason: what the last silent run said; None while the source answers.
    """

    since: datetime
    state: CircuitState = "closed"
    failures: int = 0
    reason: str | None = None

    def when_started(self, now: datetime) -> Circuit:
        """A run begins: behind an open circuit it is the probe."""
        return self if self.state == "closed" else self._in("half-open", now)

    def when_ended(
        self, reach: Reach, reason: str | None, now: datetime, open_after: int = OPEN_AFTER
    ) -> Circuit:
        """A run ended.

        Args:
            reach: what it tells about the source.
            reason: why the source was silent.
            now: when it ended.
            open_after: how many silent runs in a row open the circuit.
        """
        if reach == "answered":
            return replace(self._in("closed", now), failures=0, reason=None)
        if reach == "untold":
            return self if self.state == "closed" else self._in("open", now)
        failed = replace(self, failures=self.failures + 1, reason=reason)
        is_open = self.state != "closed" or failed.failures >= open_after
        return failed._in("open", now) if is_open else failed

    def _in(self, state: CircuitState, now: datetime) -> Circuit:
        # A probe that fails does not make the silence any younger.
        is_same_trouble = "closed" not in (self.state, state)
        if state == self.state:
            return self
        return replace(self, state=state, since=self.since if is_same_trouble else now)

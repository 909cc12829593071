"""The circuit breaker of a member: an engine that does not serve is left alone, then tried once.

Only silence counts: an engine that fails a statement has answered, a statement that was cancelled
says nothing. Rates are taken over a window, so that one that fails every second time is caught too.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from lakehouse_core.domain.circuit import Circuit
from lakehouse_core.domain.clock import utc_now

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.config.routing import BreakerConfig
    from lakehouse_core.domain.circuit import Reach
    from lakehouse_core.domain.clock import Clock

# How a statement ended, as far as its engine is concerned.
Ending = Literal["finished", "failed", "cancelled", "unavailable", "timeout"]

_REACH: dict[Ending, Reach] = {
    "finished": "answered",
    "failed": "answered",
    "cancelled": "untold",
    "unavailable": "silent",
    "timeout": "silent",
}
_NEVER = 2**31


@dataclass(slots=True)
class _Second:
    """What ended within one second: a window of them is small however many statements there are."""

    second: int
    total: int = 0
    silent: int = 0
    late: int = 0


class Breaker:
    """The breaker of one engine."""

    def __init__(self, settings: BreakerConfig, clock: Clock = utc_now) -> None:
        self.settings = settings
        self._clock = clock
        self._circuit = Circuit(since=clock())
        self._seconds: deque[_Second] = deque()
        self._backoff = 0
        self._retry_at: datetime | None = None

    @property
    def circuit(self) -> Circuit:
        """Its state, since when and why."""
        return self._circuit

    def obstacle(self) -> str | None:
        """Why the engine gets no statement now; None when it may have one."""
        if self._circuit.state == "closed":
            return None
        if self._circuit.state == "half-open":
            return "its circuit is half-open: one statement finds out whether it is back"
        now = self._clock()
        if self._retry_at is not None and now < self._retry_at:
            left = (self._retry_at - now).total_seconds()
            return f"its circuit is open for {left:.0f} s more: {self._circuit.reason}"
        return None

    def when_started(self) -> None:
        """A statement is sent; behind an open circuit it is the probe."""
        if self._circuit.state != "closed":
            self._circuit = self._circuit.when_started(self._clock())

    def when_ended(self, ending: Ending, reason: str | None = None) -> None:
        """A statement ended."""
        reach = _REACH[ending]
        was, now = self._circuit.state, self._clock()
        if reach != "untold":
            self._count(ending, int(now.timestamp()))
        if was == "closed" and reach != "silent":
            return
        opens = was == "closed" and self._is_too_much()
        self._circuit = self._circuit.when_ended(reach, reason, now, 1 if opens else _NEVER)
        self._after(was, now)

    def _after(self, was: str, now: datetime) -> None:
        if self._circuit.state == "closed":
            if was != "closed":
                self._seconds.clear()
            self._backoff, self._retry_at = 0, None
        elif self._circuit.state == "open":
            again = min(self._backoff * 2, self.settings.maxBackoffSecs)
            self._backoff = again or self.settings.initialBackoffSecs
            self._retry_at = now + timedelta(seconds=self._backoff)

    def _count(self, ending: Ending, second: int) -> None:
        seconds = self._seconds
        while seconds and seconds[0].second <= second - self.settings.windowSecs:
            seconds.popleft()
        if not seconds or seconds[-1].second != second:
            seconds.append(_Second(second))
        last = seconds[-1]
        last.total += 1
        last.silent += _REACH[ending] == "silent"
        last.late += ending == "timeout"

    def _is_too_much(self) -> bool:
        total = sum(one.total for one in self._seconds)
        if total < self.settings.minRequests:
            return False
        silent = sum(one.silent for one in self._seconds)
        late = sum(one.late for one in self._seconds)
        return (
            100 * silent >= self.settings.failureRatePercent * total
            or 100 * late >= self.settings.timeoutRatePercent * total
        )

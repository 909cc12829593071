"""Trials in the gateway: which statements of a template go to the engine that is tried.

The rules, limits and guards stand: a trial only chooses among the members of the group that the
rules have chosen, in the place of its strategy.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore

ACTIVE_SQL = """
SELECT trial_id, template_id, to_engine, share FROM route_trial
WHERE state IN ('trial', 'adopted') AND share > 0 ORDER BY proposed_at, trial_id
"""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A trial that wants a template on an engine, for a share of its statements in percent."""

    trial_id: str
    engine_id: str
    share: int

    @property
    def words(self) -> str:
        """For the trace."""
        return f"{said_by(self.trial_id)}{self.share} % of this template go to {self.engine_id}"


@dataclass(slots=True)
class TrialBook:
    """The trials in force, as the store last told them."""

    _by_template: dict[str, Assigned] = field(default_factory=dict)

    def of(self, template_id: str, gateway_id: str) -> Assigned | None:
        """The trial that claims a statement; None for most."""
        found = self._by_template.get(template_id)
        if found is None or bucket_of(gateway_id) >= found.share:
            return None
        return found

    def put(self, template_id: str, trial: Assigned) -> None:
        """Take a trial into force until the store is read again."""
        self._by_template = {**self._by_template, template_id: trial}

    def refresh(self, store: TelemetryStore) -> None:
        """Read the store.

        Raises:
            StoreError: it cannot be read; the trials known stay in force.
        """
        rows = store.read(ACTIVE_SQL).to_pylist()
        self._by_template = {
            row["template_id"]: Assigned(row["trial_id"], row["to_engine"], row["share"])
            for row in rows
        }


def said_by(trial_id: str) -> str:
    """How the trace of a statement begins that a trial has sent elsewhere."""
    return f"trial {trial_id}: "


def bucket_of(gateway_id: str) -> int:
    """0 to 99, the same for the same statement however often it is decided."""
    return int.from_bytes(hashlib.sha256(gateway_id.encode()).digest()[:8], "big") % 100

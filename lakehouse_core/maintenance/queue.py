"""The queue of approved work, and what the books say about it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.maintenance.rules import Books

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.maintenance import Action, TableLease
    from lakehouse_core.store.port import TelemetryStore

DAY = timedelta(days=1)

# The best gain for its cost first; among equals, what waits longest.
QUEUE_SQL = """
SELECT * FROM action
WHERE state IN ('approved', 'scheduled') AND (not_before IS NULL OR not_before <= $now::TIMESTAMPTZ)
ORDER BY priority DESC, proposed_at, action_id
"""
UNDER_WAY_SQL = """
SELECT * FROM action WHERE state IN ('running', 'verifying') ORDER BY started_at, action_id
"""
BYTES_SQL = """
SELECT coalesce(sum(CAST(json_extract(plan, '$.input_bytes') AS BIGINT)), 0)::BIGINT AS used,
  min(started_at) FILTER (CAST(json_extract(plan, '$.input_bytes') AS BIGINT) > 0) AS first_at
FROM action WHERE started_at >= $since::TIMESTAMPTZ AND state <> 'refused'
"""
LAST_ENDED_SQL = """
SELECT * FROM action
WHERE table_id = $table::VARCHAR AND state IN ('verified', 'failed') AND ended_at IS NOT NULL
ORDER BY ended_at DESC LIMIT 1
"""
# Wishes to end something that runs; agents/decide.py has found them right.
CANCELLED_SQL = """
SELECT DISTINCT action_id FROM decision_request
WHERE verb = 'cancel' AND state = 'done' AND list_contains($actions::VARCHAR[], action_id)
  AND asked_at >= $since::TIMESTAMPTZ
"""


class Queue:
    """Reads what is to be done."""

    def __init__(self, store: TelemetryStore) -> None:
        self._store = store

    def waiting(self, now: datetime) -> tuple[Action, ...]:
        """Approved actions whose time has come, best first."""
        return actions_of(self._store.read(QUEUE_SQL, now=now))

    def under_way(self) -> tuple[Action, ...]:
        """Actions that somebody began and nobody ended."""
        return actions_of(self._store.read(UNDER_WAY_SQL))

    def cancelled(self, action_ids: list[str], since: datetime) -> set[str]:
        """Those of the actions that somebody wants to end."""
        rows = self._store.read(CANCELLED_SQL, actions=action_ids, since=since)
        return set(rows.column("action_id").to_pylist())

    def books(
        self, action: Action, now: datetime, leases: tuple[TableLease, ...], holder: str
    ) -> Books:
        """What the rules about turns are asked with."""
        (spent,) = self._store.read(BYTES_SQL, since=now - DAY).to_pylist()
        last = actions_of(self._store.read(LAST_ENDED_SQL, table=action.table_id))
        failed = last[0] if last and last[0].state == "failed" else None
        return Books(
            bytes_today=int(spent["used"]),
            leases=leases,
            holder=holder,
            failed=failed,
            room_at=spent["first_at"] + DAY if spent["first_at"] else None,
        )

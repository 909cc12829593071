"""The newest verdict on each table, its contributors worst first, and verdicts that changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.health import Contributor, HealthState
from lakehouse_core.views.names import resolve_table
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

# Tables without a verdict are listed too: unknown is a state, not an absence.
HEALTH_SQL = """
WITH newest AS (SELECT table_id, max(assessed_at) AS assessed_at FROM health GROUP BY table_id)
SELECT t.table_id, h.assessed_at, h.snapshot_id, h.state, h.score, h.amoro_score, h.contributors,
  coalesce(h.reason, t.error) AS reason
FROM lake_table t
LEFT JOIN newest n USING (table_id)
LEFT JOIN health h ON h.table_id = n.table_id AND h.assessed_at = n.assessed_at
WHERE t.dropped_at IS NULL AND ($table::VARCHAR IS NULL OR t.table_id = $table::VARCHAR)
ORDER BY h.score NULLS LAST, t.table_id
"""

CHANGES_SQL = """
WITH seen AS (
  SELECT h.table_id, h.assessed_at, h.state, h.score,
    lag(h.state) OVER (PARTITION BY h.table_id ORDER BY h.assessed_at) AS before
  FROM health h JOIN lake_table t USING (table_id)
  WHERE t.dropped_at IS NULL AND h.assessed_at < $end::TIMESTAMPTZ
), changed AS (
  SELECT * FROM seen WHERE before <> state AND assessed_at >= $start::TIMESTAMPTZ
)
SELECT table_id, max(assessed_at) AS happened_at, arg_max(before, assessed_at) AS before,
  arg_max(state, assessed_at) AS after, arg_max(score, assessed_at) AS score
FROM changed GROUP BY table_id ORDER BY happened_at DESC LIMIT $limit::BIGINT
"""

NOT_ASSESSED = "Not assessed yet: the health agent has not seen this table since it was collected."
_CONTRIBUTOR_FIELDS = tuple(field.name for field in fields(Contributor))


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    """The newest verdict on a table; `score` is 0 to 100, None when unknown."""

    table_id: str
    state: str
    score: float | None
    amoro_score: float | None
    contributors: tuple[Contributor, ...]
    reason: str | None
    assessed_at: datetime | None
    snapshot_id: int | None

    @property
    def worst(self) -> str | None:
        """What hurts most, in one sentence."""
        return self.contributors[0].message if self.contributors else self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthChange:
    """A table's last change of state within a window."""

    table_id: str
    happened_at: datetime
    before: str
    after: str
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCounts:
    """How many tables are in each state; the four add up to all tables."""

    critical: int
    warning: int
    healthy: int
    unknown: int

    @property
    def total(self) -> int:
        """All tables."""
        return self.critical + self.warning + self.healthy + self.unknown


def list_health(store: TelemetryStore) -> tuple[HealthView, ...]:
    """Every table of the lake, lowest score first, unknown last."""
    return tuple(_verdict(row) for row in store.read(HEALTH_SQL, table=None).to_pylist())


def show_health(store: TelemetryStore, name: str) -> HealthView:
    """One table's verdict.

    Raises:
        NotFoundError: no such table; names the nearest.
    """
    table_id = resolve_table(store, name)
    return _verdict(store.read(HEALTH_SQL, table=table_id).to_pylist()[0])


def count_states(verdicts: tuple[HealthView, ...]) -> StateCounts:
    """How many tables are in each state."""
    seen = [verdict.state for verdict in verdicts]
    return StateCounts(**{state.value: seen.count(state.value) for state in HealthState})


def state_changes(
    store: TelemetryStore, window: Window, *, limit: int = 5
) -> tuple[HealthChange, ...]:
    """Which tables changed their state in the window, latest first."""
    table = store.read(CHANGES_SQL, start=window.start, end=window.end, limit=limit)
    return records(HealthChange, table)


def parse_contributors(text: str | None) -> tuple[Contributor, ...]:
    """The stored JSON list as records; keys of a newer version are left aside."""
    return tuple(
        Contributor(
            **{name: item[name] for name in _CONTRIBUTOR_FIELDS if name != "state"},
            state=HealthState(item["state"]),
        )
        for item in json.loads(text or "[]")
    )


def _verdict(row: dict[str, Any]) -> HealthView:
    assessed = row["state"] is not None
    return HealthView(
        table_id=row["table_id"],
        state=row["state"] if assessed else HealthState.UNKNOWN.value,
        score=row["score"],
        amoro_score=row["amoro_score"],
        contributors=parse_contributors(row["contributors"]),
        reason=row["reason"] or (None if assessed else NOT_ASSESSED),
        assessed_at=row["assessed_at"],
        snapshot_id=row["snapshot_id"],
    )

"""The engine registry: what we want of each engine, what we see of it, how it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.views.freshness import is_late
from lakehouse_core.views.red import Red, RedSummary, red_in
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.filters import Filters
    from lakehouse_core.views.window import Window

ENGINES_SQL = """
WITH newest AS (
  SELECT engine_id, max(probed_at) AS probed_at FROM engine_probe GROUP BY engine_id
)
SELECT e.engine_id, e.engine_type, e.dialect, e.catalog, e.url, e.configured, e.changed_by,
  e.reason, e.changed_at, p.observed, p.probed_at, p.detail, p.version, p.latency_ms,
  p.running_queries, p.queued_queries
FROM engine e
LEFT JOIN newest n USING (engine_id)
LEFT JOIN engine_probe p ON p.engine_id = n.engine_id AND p.probed_at = n.probed_at
WHERE $engine::VARCHAR IS NULL OR e.engine_id = $engine::VARCHAR
ORDER BY e.engine_id
"""

# The probe before the window tells the state it began with; a change is a probe unlike the last.
CHANGES_SQL = """
WITH seen AS (
  SELECT engine_id, probed_at, observed, detail,
    lag(observed) OVER (PARTITION BY engine_id ORDER BY probed_at) AS before
  FROM engine_probe
  WHERE probed_at >= $start::TIMESTAMPTZ - INTERVAL 1 HOUR AND probed_at < $end::TIMESTAMPTZ
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
)
SELECT engine_id, max(probed_at) AS happened_at, arg_max(before, probed_at) AS before,
  arg_max(observed, probed_at) AS after, arg_max_null(detail, probed_at) AS detail,
  count(*) AS changes
FROM seen WHERE before <> observed AND probed_at >= $start::TIMESTAMPTZ
GROUP BY engine_id ORDER BY happened_at DESC LIMIT $limit::BIGINT
"""

IDS_SQL = "SELECT engine_id, engine_type FROM engine ORDER BY engine_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRow:
    """An engine: the state asked for, with who and why, and the state last seen."""

    engine_id: str
    engine_type: str
    dialect: str
    catalog: str | None
    url: str | None
    configured: str
    changed_by: str | None
    reason: str | None
    changed_at: datetime
    observed: str | None
    probed_at: datetime | None
    detail: str | None
    version: str | None
    latency_ms: float | None
    running_queries: int | None
    queued_queries: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineView:
    """An engine and what it did in the window."""

    engine: EngineRow
    probe_is_stale: bool
    served: Red

    @property
    def state(self) -> str:
        """What may be believed of it now: an old observation is no observation."""
        if self.engine.observed is None or self.probe_is_stale:
            return ObservedState.UNKNOWN.value
        return self.engine.observed


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineList:
    """All engines, and the window their service is measured in."""

    window: Window
    engines: tuple[EngineView, ...]

    def count(self, state: str) -> int:
        """How many are seen in this state."""
        return sum(view.state == state for view in self.engines)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChange:
    """An engine's last change of state within a window, and how many there were."""

    engine_id: str
    happened_at: datetime
    before: str
    after: str
    detail: str | None
    changes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineName:
    """An engine's id and type: what the filter bar and the colours need."""

    engine_id: str
    engine_type: str


def list_engines(
    store: TelemetryStore, filters: Filters, clock: Clock, *, probe_every: timedelta
) -> EngineList:
    """Every registered engine; an observation that is overdue is stale."""
    now = clock()
    bar = filters.only_engine()
    served = red_in(store, bar, bar.window_at(now))
    return EngineList(
        window=served.window, engines=with_service(store, served, bar, now, probe_every)
    )


def with_service(
    store: TelemetryStore,
    served: RedSummary,
    filters: Filters,
    now: datetime,
    probe_every: timedelta,
) -> tuple[EngineView, ...]:
    """Every registered engine beside what it did, when that is known already."""
    rows = records(EngineRow, store.read(ENGINES_SQL, engine=filters.engine))
    return tuple(
        EngineView(
            engine=row,
            probe_is_stale=is_late(now - row.probed_at if row.probed_at else None, probe_every),
            served=served.of(row.engine_id),
        )
        for row in rows
    )


def state_changes(
    store: TelemetryStore, filters: Filters, window: Window, *, limit: int = 5
) -> tuple[EngineChange, ...]:
    """Which engines changed their observed state in the window, latest first."""
    table = store.read(
        CHANGES_SQL, start=window.start, end=window.end, engine=filters.engine, limit=limit
    )
    return records(EngineChange, table)


def engine_names(store: TelemetryStore) -> tuple[EngineName, ...]:
    """The registered engines."""
    return records(EngineName, store.read(IDS_SQL))

"""The queries that cost most, storage per table and class, and what units of work cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from lakehouse_core.domain.cost import STORAGE
from lakehouse_core.finops.spend import whole_hour
from lakehouse_core.views.costs import CostFilters, pick_currency
from lakehouse_core.views.rows import records
from lakehouse_core.views.window import parse_window

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore

DEAREST_SQL = """
WITH placed AS (
  SELECT label_id, user_name, template_id, {number} AS number FROM cost_label
), dear AS (
  SELECT engine_id, query_id, sum(cost) AS cost, any_value(basis) AS basis,
    any_value(status) AS status, any_value(label_id) AS label_id, min(hour_at) AS first_hour_at,
    sum(execution_us)::BIGINT AS execution_us
  FROM cost_query
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ AND runs > 0
    AND currency = $currency::VARCHAR
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
  GROUP BY engine_id, query_id
)
SELECT engine_id, query_id, dear.cost, basis, status, first_hour_at, execution_us,
  nullif(user_name, '') AS user_name, nullif(template_id, '') AS template_id, template
FROM dear LEFT JOIN placed USING (label_id)
LEFT JOIN (SELECT template_id, template FROM query_template) USING (template_id)
WHERE ($user::VARCHAR IS NULL OR user_name = $user::VARCHAR)
  AND ($template::VARCHAR IS NULL OR template_id = $template::VARCHAR)
  AND ($workload::VARCHAR IS NULL OR {workload} = $workload::VARCHAR)
  AND ($team::VARCHAR IS NULL OR coalesce({team}, 'no team') = $team::VARCHAR)
  AND ($cost_center::VARCHAR IS NULL OR coalesce({cost_center}, 'none') = $cost_center::VARCHAR)
  AND ($table::VARCHAR IS NULL OR template_id IN (
    SELECT template_id FROM template_table WHERE table_name = $table::VARCHAR
    UNION SELECT template_id FROM column_usage WHERE table_name = $table::VARCHAR))
ORDER BY dear.cost DESC, engine_id, query_id LIMIT $limit::BIGINT
"""

# What storage of a catalog cost is divided over its tables by the bytes of their files, as they
# were measured last. Bytes that no table has now (old snapshots, orphans) are not told apart.
STORAGE_SQL = """
WITH stored AS (
  SELECT substr(engine_id, length('storage:') + 1) AS catalog, resource AS storage_class, basis,
    sum(cost) AS cost
  FROM charge
  WHERE meter = 'storage' AND currency = $currency::VARCHAR
    AND hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
  GROUP BY ALL
), sized AS (
  SELECT table_id, catalog, arg_max(total_bytes, collected_at) AS total_bytes
  FROM lake_table JOIN table_metrics USING (table_id)
  WHERE dropped_at IS NULL GROUP BY ALL
)
SELECT coalesce(table_id, catalog) AS table_id, catalog, storage_class, basis, total_bytes,
  CASE WHEN table_id IS NULL THEN cost::DOUBLE
    ELSE cost::DOUBLE * total_bytes / nullif(sum(total_bytes) OVER (
      PARTITION BY catalog, storage_class, basis), 0) END AS cost
FROM stored LEFT JOIN sized USING (catalog)
WHERE $engine::VARCHAR IS NULL OR catalog = $engine::VARCHAR
QUALIFY $table::VARCHAR IS NULL OR table_id = $table::VARCHAR
ORDER BY cost DESC NULLS LAST, table_id LIMIT $limit::BIGINT
"""

UNITS_SQL = """
WITH paid AS (
  SELECT engine_id, sum(cost) AS cost, sum(queries)::BIGINT AS queries,
    sum(execution_us)::BIGINT AS execution_us,
    coalesce(sum(cost) FILTER (kind = 'idle'), 0) AS idle_cost
  FROM cost_hour
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ AND runs > 0
    AND currency = $currency::VARCHAR AND NOT starts_with(engine_id, 'storage:')
  GROUP BY engine_id
), scanned AS (
  SELECT engine_id, sum(bytes_scanned)::BIGINT AS bytes_scanned FROM query_hour
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ AND origin = 'real'
  GROUP BY engine_id
)
SELECT engine_id, cost, queries, execution_us, idle_cost, bytes_scanned
FROM paid LEFT JOIN scanned USING (engine_id)
WHERE $engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR
ORDER BY cost DESC, engine_id
"""
# Which filters each of these follows; what a page shows of the others is `not_applied`.
FOLLOWED = {
    "queries": ("engine", "workload", "team", "cost_center", "user", "table", "template"),
    "units": ("engine",),
    "storage": ("table",),
}
_TB = Decimal(10**12)
_HOUR_US = timedelta(hours=1) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DearQuery:
    """One of the queries that cost most; the fifty dearest of each engine and hour are known."""

    engine_id: str
    query_id: str
    cost: Decimal
    basis: str | None
    status: str | None
    first_hour_at: datetime
    execution_us: int | None
    user_name: str | None
    template_id: str | None
    template: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """What keeping a table cost in the window."""

    table_id: str
    catalog: str
    storage_class: str
    basis: str
    total_bytes: int | None
    cost: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """What work cost on an engine, idle time included."""

    engine_id: str
    cost: Decimal
    queries: int
    execution_us: int
    idle_cost: Decimal
    bytes_scanned: int | None

    @property
    def per_thousand(self) -> Decimal | None:
        """Per 1,000 queries."""
        return self.cost * 1000 / self.queries if self.queries else None

    @property
    def per_tb(self) -> Decimal | None:
        """Per TB scanned, where the engine says how much it scans."""
        return self.cost * _TB / self.bytes_scanned if self.bytes_scanned else None

    @property
    def per_busy_hour(self) -> Decimal | None:
        """Per hour of execution, added over queries that ran side by side."""
        return self.cost * _HOUR_US / self.execution_us if self.execution_us else None

    @property
    def idle_ratio(self) -> float | None:
        """Which part of the cost was idle time."""
        return float(self.idle_cost / self.cost) if self.cost else None


def dearest_queries(
    store: TelemetryStore,
    filters: CostFilters,
    rules: GroupRules,
    clock: Clock,
    *,
    limit: int = 100,
) -> tuple[str, tuple[DearQuery, ...]]:
    """Currency, and the queries that cost most and pass all filters, the dearest first."""
    window = parse_window(filters.window, clock())
    currency = pick_currency(store, filters, window)
    sql = DEAREST_SQL.format(number=rules.number_sql, **rules.column_sql("number"))
    table = store.read(
        sql,
        **rules.params,
        start=whole_hour(window.start),
        end=window.end,
        currency=currency,
        limit=limit,
        **{name: getattr(filters, name) for name in FOLLOWED["queries"]},
    )
    return currency, records(DearQuery, table)


def storage_costs(
    store: TelemetryStore, filters: CostFilters, clock: Clock, *, limit: int = 1_000
) -> tuple[str, tuple[StoredTable, ...]]:
    """Currency, and what keeping each table cost in the window, the dearest first.

    Follows the table, and an engine that is the storage of a catalog; others have no storage.
    """
    window = parse_window(filters.window, clock())
    currency = pick_currency(store, CostFilters(currency=filters.currency), window)
    engine = filters.engine or ""
    rows = store.read(
        STORAGE_SQL,
        start=whole_hour(window.start),
        end=window.end,
        currency=currency,
        engine=engine[len(STORAGE) :] if engine.startswith(STORAGE) else None,
        table=filters.table,
        limit=limit,
    ).to_pylist()
    return currency, tuple(
        StoredTable(**row | {"cost": None if row["cost"] is None else _nine(row["cost"])})
        for row in rows
    )


def unit_costs(
    store: TelemetryStore, filters: CostFilters, clock: Clock
) -> tuple[str, tuple[UnitCosts, ...]]:
    """Currency, and what 1,000 queries, a TB scanned and an hour of execution cost per engine."""
    window = parse_window(filters.window, clock())
    currency = pick_currency(store, filters, window)
    table = store.read(
        UNITS_SQL,
        start=whole_hour(window.start),
        end=window.end,
        currency=currency,
        engine=filters.engine,
    )
    return currency, records(UnitCosts, table)


def _nine(cost: float) -> Decimal:
    return Decimal(str(cost)).quantize(Decimal("0.000000001"))

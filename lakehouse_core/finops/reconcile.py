"""Does it add up? Per engine and hour: what was metered, and where each digit of it went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from lakehouse_core.store.port import TelemetryStore

RECONCILE_SQL = """
WITH charged AS (
  SELECT hour_at, engine_id, currency, sum(cost) AS metered,
    bool_or(is_provisional) AS is_provisional,
    list_sort(list_distinct(list(basis) FILTER (WHERE cost <> 0 OR method <> 'none'))) AS basis,
    list_sort(list_distinct(list(reason) FILTER (WHERE method = 'none' AND cost <> 0
      OR method <> 'none' AND basis IN ('unpriced', 'pending')))) AS notes
  FROM charge
  WHERE hour_at >= $since::TIMESTAMPTZ AND hour_at < $until::TIMESTAMPTZ
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
  GROUP BY ALL
), split AS (
  SELECT hour_at, engine_id, currency,
    coalesce(sum(cost) FILTER (WHERE kind IN ('query', 'resource')), 0) AS attributed,
    coalesce(sum(cost) FILTER (WHERE kind = 'idle'), 0) AS idle,
    coalesce(sum(cost) FILTER (WHERE kind = 'unallocated'), 0) AS unallocated,
    coalesce(sum(queries), 0)::BIGINT AS queries,
    list_sort(list_distinct(list(reason) FILTER (WHERE kind = 'unallocated'))) AS reasons
  FROM cost_hour
  WHERE runs > 0 AND hour_at >= $since::TIMESTAMPTZ AND hour_at < $until::TIMESTAMPTZ
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
  GROUP BY ALL
)
SELECT hour_at, engine_id, currency, coalesce(metered, 0)::DECIMAL(38, 9) AS metered,
  coalesce(attributed, 0)::DECIMAL(38, 9) AS attributed, coalesce(idle, 0)::DECIMAL(38, 9) AS idle,
  coalesce(unallocated, 0)::DECIMAL(38, 9) AS unallocated, coalesce(queries, 0) AS queries,
  coalesce(basis, []) AS basis, coalesce(is_provisional, false) AS is_provisional,
  list_sort(list_distinct(list_concat(coalesce(reasons, []), coalesce(notes, [])))) AS reasons
FROM charged FULL JOIN split USING (hour_at, engine_id, currency)
ORDER BY hour_at, engine_id, currency
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledHour:
    """One engine in one hour.

    Attributes:
        metered: the sum of its charges.
        attributed: what queries, or resources such as storage, were given.
        idle: what it cost while no query ran.
        unallocated: what nobody was given, see `reasons`.
        queries: that started in the hour.
        basis: what the charges rest on; see `lakehouse_core.domain.cost.Basis`.
        is_provisional: the hour may still change.
    """

    hour_at: datetime
    engine_id: str
    currency: str
    metered: Decimal
    attributed: Decimal
    idle: Decimal
    unallocated: Decimal
    queries: int
    basis: tuple[str, ...]
    is_provisional: bool
    reasons: tuple[str, ...]

    @property
    def difference(self) -> Decimal:
        """What is missing, or too much; 0 to the last digit when it adds up."""
        return self.metered - self.attributed - self.idle - self.unallocated


def reconcile(
    store: TelemetryStore, since: datetime, until: datetime, engine: str | None = None
) -> tuple[ReconciledHour, ...]:
    """Every engine and hour of a window that has charges or costs, oldest first."""
    rows = store.read(RECONCILE_SQL, since=since, until=until, engine=engine).to_pylist()
    return tuple(
        ReconciledHour(**row | {"basis": tuple(row["basis"]), "reasons": tuple(row["reasons"])})
        for row in rows
    )

"""The costs agent: adds up the days of costs, so that windows of many days stay quick.

Only days that changed are added up again: those whose total is not that of their charges, those of
which a row was split since, and once an hour any day whose split is another one now.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.finops.spend import DAY, DIRTY_SQL
from lakehouse_core.store.literals import bind

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

COMPARE_EVERY = timedelta(hours=1)
# A row may be written a while after the moment it says it was split at.
OVERLAP_US = timedelta(minutes=10) // timedelta(microseconds=1)
_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_AT = "make_timestamptz(epoch_us(hour_at) // 86400000000 * 86400000000)"

_SUMS = f"""
SELECT {_DAY_AT} AS day_at, engine_id, resource, meter, kind, label_id, currency, basis,
  bool_or(is_provisional) AS is_provisional, sum(queries)::BIGINT AS queries,
  sum(failed)::BIGINT AS failed, sum(execution_us)::BIGINT AS execution_us,
  sum(list_cost) AS list_cost, sum(contracted_cost) AS contracted_cost, sum(cost) AS cost,
  sum(failed_cost) AS failed_cost
FROM cost_hour WHERE runs > 0 AND hour_at < $until::TIMESTAMPTZ
"""  # noqa: S608 constants of ours
CHANGED_SQL = f"""
WITH sums AS ({_SUMS} GROUP BY ALL), stored AS (FROM cost_day)
SELECT DISTINCT day_at FROM (
  (SELECT * FROM sums EXCEPT SELECT * FROM stored)
  UNION ALL (SELECT * FROM stored EXCEPT SELECT * FROM sums)
)
"""  # noqa: S608 constants of ours
SPLIT_SQL = f"""
WITH split AS (
  SELECT {_DAY_AT} AS day_at, max(epoch_us(split_at)) AS split_us FROM cost_hour
  WHERE hour_at < $until::TIMESTAMPTZ GROUP BY ALL
)
SELECT DISTINCT day_at FROM split JOIN cost_day_total USING (day_at)
WHERE split_us > epoch_us(rolled_at) - $overlap_us::BIGINT
"""  # noqa: S608 constants of ours
_DROP = "DELETE FROM cost_day WHERE day_at = $day::TIMESTAMPTZ"
_FILL = f"""
INSERT INTO cost_day BY NAME {_SUMS} AND hour_at >= $day::TIMESTAMPTZ GROUP BY ALL
"""
_DROP_TOTAL = "DELETE FROM cost_day_total WHERE day_at = $day::TIMESTAMPTZ"
_FILL_TOTAL = """
INSERT INTO cost_day_total SELECT day_at, currency, sum(cost), $now::TIMESTAMPTZ FROM cost_day
WHERE day_at = $day::TIMESTAMPTZ GROUP BY ALL
"""


class DayCosts:
    """Keeps `cost_day`; remembers, for one process, when it compared everything."""

    def __init__(self, store: OwnerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._compared_at: datetime | None = None

    def run_once(self) -> Result:
        """Add up the days that changed; the day that is going on is left to the readers."""
        now = self._clock()
        today = now - (now - _EVER) % DAY
        days = self._changed(now, today)
        for day in sorted(days):
            values = {"day": day, "until": day + DAY, "now": now}
            self._store.transact("cost_day", [bind(_DROP, values), bind(_FILL, values)])
            self._store.transact(
                "cost_day_total", [bind(_DROP_TOTAL, values), bind(_FILL_TOTAL, values)]
            )
        return Result(rows=len(days))

    def _changed(self, now: datetime, today: datetime) -> set[datetime]:
        found = self._store.read(DIRTY_SQL, first=_EVER, last=today)
        days = set(found.column("day_at").to_pylist())
        if self._compared_at is None or now - self._compared_at >= COMPARE_EVERY:
            days |= set(self._store.read(CHANGED_SQL, until=today).column("day_at").to_pylist())
            self._compared_at = now
        else:
            found = self._store.read(SPLIT_SQL, overlap_us=OVERLAP_US, until=today)
            days |= set(found.column("day_at").to_pylist())
        return days

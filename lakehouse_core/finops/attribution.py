"""Splitting hours in the store, with the very statement that Spark runs over the history.

The hours that are open, and those that changed since the pipeline ran, are split here within a
minute; the pipeline's answer for the same rows is the same. An hour is out of balance when its
charges and their split do not add up to the same: it is split again. Costs stay longer than the
queries they are of: an hour without its queries keeps its split, but for what a bill replaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.attribution import (
    DUCKDB,
    HOUR_US,
    allocation_sql,
    cost_hour_sql,
    cost_query_sql,
    labels_sql,
)
from lakehouse_core.finops.metering import close_hours, hour_at, meter_hours
from lakehouse_core.finops.metering_sql import ATTRIBUTIONS, EVENTS, HOURS
from lakehouse_core.store.replace import replace_rows
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.pricebook import PriceBook
    from lakehouse_core.store.port import TelemetryStore

HOURS_AT_ONCE = 24
PROBES_HOLD = 6  # so many intervals a probe speaks for when no other follows

_ALLOCATION = f"""
WITH {HOURS}, {EVENTS}, charges AS (
  SELECT charge.* FROM charge JOIN hours ON epoch_us(charge.hour_at) // {HOUR_US} = hours.hour_no
), {ATTRIBUTIONS}, allocation AS ({allocation_sql(DUCKDB)})
"""  # noqa: S608 constants of ours
COST_HOUR_SQL = f"{_ALLOCATION} {cost_hour_sql('allocation')}"
# Of an hour whose queries are gone: the split it has, that of bills as long as it adds up to them,
# and what bills say of it since, which is nobody's.
CLOSED_SQL = f"""
{_ALLOCATION}, split AS (
  SELECT cost_hour.*, charges.method = 'none' AND charges.cost = 0 AS is_replaced,
    starts_with(price_id, 'bill:') AS is_bill, (
      sum(cost_hour.cost) OVER line = charges.cost
      AND sum(cost_hour.list_cost) OVER line = charges.list_cost
      AND sum(cost_hour.contracted_cost) OVER line = charges.contracted_cost) AS is_whole
  FROM cost_hour JOIN hours ON epoch_us(cost_hour.hour_at) // {HOUR_US} = hours.hour_no
  JOIN charges USING (hour_at, engine_id, resource, meter, price_id, currency)
  WHERE cost_hour.runs > 0
  WINDOW line AS (PARTITION BY hour_at, engine_id, resource, meter, price_id)
), kept AS (
  SELECT * EXCLUDE (is_replaced, is_bill, is_whole) FROM split
  WHERE NOT is_replaced AND (is_whole OR NOT is_bill)
), billed AS (
  SELECT * FROM allocation ANTI JOIN kept USING (hour_at, engine_id, resource, meter, price_id)
  WHERE starts_with(price_id, 'bill:')
), bills AS ({cost_hour_sql("billed")})
SELECT * FROM bills UNION ALL BY NAME SELECT * FROM kept
"""  # noqa: S608 constants of ours
COST_QUERY_SQL = f"""
{_ALLOCATION}, top AS ({cost_query_sql("allocation")}) SELECT * FROM top
"""  # noqa: S608 constants of ours
COST_LABEL_SQL = f"""
WITH {HOURS}, {EVENTS}, labels AS ({labels_sql(DUCKDB)}) SELECT * FROM labels
"""  # noqa: S608 constants of ours

_BOTH = """
WITH charged AS (
  SELECT hour_at, engine_id, currency, sum(cost) AS cost, sum(list_cost) AS list_cost,
    sum(contracted_cost) AS contracted_cost
  FROM charge GROUP BY ALL
), split AS (
  SELECT hour_at, engine_id, currency, sum(cost) AS cost, sum(list_cost) AS list_cost,
    sum(contracted_cost) AS contracted_cost
  FROM cost_hour WHERE runs > 0 GROUP BY ALL
)
"""
UNBALANCED_SQL = f"""
{_BOTH}
SELECT DISTINCT epoch_us(hour_at) // {HOUR_US} AS hour_no
FROM charged FULL JOIN split USING (hour_at, engine_id, currency)
WHERE coalesce(charged.cost, 0) <> coalesce(split.cost, 0)
  OR coalesce(charged.list_cost, 0) <> coalesce(split.list_cost, 0)
  OR coalesce(charged.contracted_cost, 0) <> coalesce(split.contracted_cost, 0)
"""  # noqa: S608 constants of ours


def settle_hours(
    store: TelemetryStore,
    config: Config,
    book: PriceBook,
    hours: Iterable[int],
    now: datetime,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Charge some hours anew and split them, newest first; returns rows that are new or different.

    Args:
        store: the store.
        config: how often engines are probed.
        book: the prices.
        hours: numbers of hours since 1970.
        now: the time.
        go_on: asked between two days; the rest is left when it says no.
    """
    rows = 0
    gap = PROBES_HOLD * config.agents.probe_every
    oldest = int((now - config.store.retention).timestamp()) // 3600
    wanted = sorted(set(hours), reverse=True)
    for some in _slices([hour for hour in wanted if hour > oldest]):
        if not go_on():
            break
        rows += meter_hours(store, book, some, now, gap)
        rows += split_hours(store, some)
    for some in _slices([hour for hour in wanted if hour <= oldest]):
        if not go_on():
            break
        rows += close_hours(store, some, now)
        rows += _replace_split(store, "cost_hour", CLOSED_SQL, some)
    return rows


def unbalanced_hours(store: TelemetryStore) -> list[int]:
    """The hours whose split does not add up to what was charged: charged anew, or never split."""
    return sorted(store.read(UNBALANCED_SQL).column("hour_no").to_pylist())


def split_hours(store: TelemetryStore, hours: Sequence[int]) -> int:
    """Split some hours, in the place of how they were split; returns how many rows changed."""
    labels = store.read(COST_LABEL_SQL, hours=sorted(hours))
    if labels.num_rows:
        schema = schema_of("cost_label")
        store.upsert("cost_label", labels.select(schema.names).cast(schema))
    rows = _replace_split(store, "cost_hour", COST_HOUR_SQL, hours)
    return rows + _replace_split(store, "cost_query", COST_QUERY_SQL, hours)


def _replace_split(store: TelemetryStore, table: str, sql: str, hours: Sequence[int]) -> int:
    wanted = sorted(hours)
    moments = [hour_at(number) for number in wanted]
    schema = schema_of(table)
    fresh = store.read(sql, hours=wanted).select(schema.names).cast(schema)
    return replace_rows(store, table, moments, fresh, time="hour_at")


def _slices(hours: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(hours), HOURS_AT_ONCE):
        yield hours[start : start + HOURS_AT_ONCE]

"""Splitting hours in the store, with the very statement that Spark runs over the history.

The hours that are open, and those that changed since the pipeline ran, are split here within a
minute; the pipeline's answer for the same rows is the same. Charges and their split are written
together: whoever reads finds that they add up, also while the hour goes on. An hour is out of
balance when its charges and their split do not add up to the same: it is split again. Costs stay
longer than the queries they are of: an hour without its queries keeps its split, but for what a
bill replaces.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.attribution import (
    DUCKDB,
    HOUR_US,
    allocation_sql,
    cost_hour_sql,
    cost_query_sql,
    labels_sql,
)
from lakehouse_core.domain.cost import Charge
from lakehouse_core.finops.metering import close_hours, hour_at, meter_hours
from lakehouse_core.finops.metering_sql import ATTRIBUTIONS, EVENTS, HOURS
from lakehouse_core.store.replace import replacement
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.pricebook import PriceBook
    from lakehouse_core.store.port import TelemetryStore, TogetherStore

HOURS_AT_ONCE = 24
PROBES_HOLD = 6  # so many intervals a probe speaks for when no other follows

_KINDS = {
    **dict.fromkeys(("hour_at", "computed_at"), "TIMESTAMPTZ"),
    **dict.fromkeys(("quantity", "attributed", "billed_cost"), "DECIMAL(38, 9)"),
    **dict.fromkeys(("list_cost", "contracted_cost", "cost"), "DECIMAL(38, 9)"),
    **dict.fromkeys(("capacity", "minimum_bytes"), "BIGINT"),
    **dict.fromkeys(("failed_is_free", "is_provisional"), "BOOLEAN"),
}
_CHARGE = tuple(one.name for one in fields(Charge))
# Charges that are not written yet, a list per column, in the place of those with the same key.
_FRESH = ", ".join(
    f"unnest($fresh_{name}::{_KINDS.get(name, 'VARCHAR')}[]) AS {name}" for name in _CHARGE
)
_ALLOCATION = f"""
WITH {HOURS}, {EVENTS}, fresh AS (SELECT {_FRESH}), charges AS (
  SELECT charge.* FROM charge JOIN hours ON epoch_us(charge.hour_at) // {HOUR_US} = hours.hour_no
  ANTI JOIN fresh USING (hour_at, engine_id, resource, meter, price_id)
  UNION ALL BY NAME FROM fresh
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
    store: TogetherStore,
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
        rows += _split_hours(store, some, meter_hours(store, book, some, now, gap))
    for some in _slices([hour for hour in wanted if hour <= oldest]):
        if not go_on():
            break
        charges = close_hours(store, some, now)
        split = _split(store, "cost_hour", CLOSED_SQL, some, charges)
        rows += _write(store, {"charge": to_arrow("charge", charges), "cost_hour": split})
    return rows


def unbalanced_hours(store: TelemetryStore) -> list[int]:
    """The hours whose split does not add up to what was charged: charged anew, or never split."""
    return sorted(store.read(UNBALANCED_SQL).column("hour_no").to_pylist())


def split_params(hours: Sequence[int], charges: Sequence[Charge] = ()) -> dict[str, Any]:
    """What the statements that split hours want: which, and charges that are not written yet."""
    fresh = {f"fresh_{name}": [getattr(one, name) for one in charges] for name in _CHARGE}
    return {"hours": sorted(hours), **fresh}


def _split_hours(store: TogetherStore, hours: Sequence[int], charges: Sequence[Charge]) -> int:
    """Write some hours' charges, split, in the place of what is there; how many rows changed."""
    schema = schema_of("cost_label")
    labels = store.read(COST_LABEL_SQL, hours=sorted(hours)).select(schema.names).cast(schema)
    return _write(
        store,
        {
            "charge": to_arrow("charge", charges),
            "cost_label": labels,
            "cost_hour": _split(store, "cost_hour", COST_HOUR_SQL, hours, charges),
            "cost_query": _split(store, "cost_query", COST_QUERY_SQL, hours, charges),
        },
    )


def _split(
    store: TelemetryStore, table: str, sql: str, hours: Sequence[int], charges: Sequence[Charge]
) -> pa.Table:
    """The rows that make the split of some hours what it is with these charges."""
    schema = schema_of(table)
    split = store.read(sql, **split_params(hours, charges)).select(schema.names).cast(schema)
    moments = [hour_at(number) for number in sorted(hours)]
    return replacement(store, table, moments, split, time="hour_at")


def _write(store: TogetherStore, batches: dict[str, pa.Table]) -> int:
    filled = {table: rows for table, rows in batches.items() if rows.num_rows}
    return store.upsert_together(filled) if filled else 0


def _slices(hours: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(hours), HOURS_AT_ONCE):
        yield hours[start : start + HOURS_AT_ONCE]

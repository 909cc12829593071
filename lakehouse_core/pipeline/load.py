"""Loading gold back into the store: the hours and days computed anew, by key.

What the new rows of an hour no longer have is emptied (`runs` 0), see `store.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from string import Template
from typing import TYPE_CHECKING, Any

from lakehouse_core import duck
from lakehouse_core.catalog.location import local_path
from lakehouse_core.store.literals import identifier
from lakehouse_core.store.replace import replacement
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from lakehouse_core.pipeline.state import LakeState
    from lakehouse_core.store.port import TelemetryStore

MOMENTS_AT_ONCE = 48


@dataclass(frozen=True, slots=True)
class Loaded:
    """A gold table of the store: what time its rows are about, which column counts."""

    name: str
    time: str
    count: str = "runs"


LOADED = (
    Loaded("template_hour", "hour_at"),
    Loaded("workload_hour", "hour_at"),
    Loaded("usage_day", "day"),
    Loaded("literal_day", "day"),
    Loaded("commit_hour", "hour_at", "commits"),
    Loaded("cost_hour", "hour_at"),
    Loaded("cost_query", "hour_at"),
)
# An hour whose charges are others by now was split in the store since: gold comes too late for it.
COSTS = ("cost_hour", "cost_query")
TEMPLATE_TABLE = "template_table"

_GOLD = Template("""
SELECT $columns FROM iceberg_scan($$metadata)
WHERE $time IN (SELECT unnest($$moments))
""")
_BALANCED = """
WITH split AS (
  SELECT hour_at, engine_id, currency, sum(cost) AS cost FROM iceberg_scan($metadata)
  WHERE hour_at IN (SELECT unnest($moments)) GROUP BY ALL
), charged AS (SELECT * FROM charges WHERE list_contains($moments, hour_at)),
wrong AS (
  SELECT DISTINCT hour_at FROM split FULL JOIN charged USING (hour_at, engine_id, currency)
  WHERE coalesce(split.cost, 0) <> coalesce(charged.cost, 0)
)
SELECT unnest($moments) AS hour_at EXCEPT SELECT hour_at FROM wrong ORDER BY hour_at
"""
_CHARGED = """
SELECT hour_at, engine_id, currency, sum(cost) AS cost FROM charge
GROUP BY hour_at, engine_id, currency
"""
_LABELS = "SELECT * FROM iceberg_scan($metadata)"
_TEMPLATES = """
SELECT DISTINCT template_id, coalesce(default_catalog, '') AS default_catalog,
  coalesce(default_namespace, '') AS default_namespace, unnest(tables) AS table_name
FROM iceberg_scan($metadata)
"""


def load(
    store: TelemetryStore, state: LakeState, recomputed: dict[str, Sequence[str]]
) -> dict[str, int]:
    """Bring the recomputed hours and days into the store; rows read from gold, per table."""
    rows: dict[str, int] = {}
    with duck.connect(extensions=("iceberg",)) as connection:
        for table in LOADED:
            moments = [_moment(table, text) for text in recomputed.get(table.name, ())]
            if moments and table.name in COSTS:
                moments = _balanced(store, connection, state, moments)
            if moments and table.name in state.tables:
                rows[table.name] = _load_table(store, connection, state, table, moments)
        if "cost_label" in state.tables and recomputed.get("cost_hour"):
            labels = _scan(connection, state, "cost_label", _LABELS, {})
            store.upsert("cost_label", labels.select(schema_of("cost_label").names))
        if "query_template" in state.tables and recomputed:
            found = _scan(connection, state, "query_template", _TEMPLATES, {})
            store.upsert(TEMPLATE_TABLE, found)
            rows[TEMPLATE_TABLE] = found.num_rows
    return rows


def _balanced(
    store: TelemetryStore, connection: Any, state: LakeState, moments: list[Any]
) -> list[Any]:
    """The hours whose split in gold adds up to what the store has charged them with."""
    with connection.cursor() as cursor:
        cursor.register("charges", store.read(_CHARGED))
        found = _scan(cursor, state, "cost_hour", _BALANCED, {"moments": moments})
    return list(found.column("hour_at").to_pylist())


def _load_table(
    store: TelemetryStore, connection: Any, state: LakeState, table: Loaded, moments: list[Any]
) -> int:
    rows = 0
    for some in _slices(moments):
        fresh = _gold(connection, state, table, some)
        changed = replacement(store, table.name, some, fresh, time=table.time, count=table.count)
        if changed.num_rows:
            store.upsert(table.name, changed)
        rows += fresh.num_rows
    return rows


def _gold(connection: Any, state: LakeState, table: Loaded, moments: list[Any]) -> pa.Table:
    columns = ", ".join(identifier(name) for name in schema_of(table.name).names)
    sql = _GOLD.substitute(columns=columns, time=identifier(table.time))
    return _scan(connection, state, table.name, sql, {"moments": moments})


def _scan(
    connection: Any, state: LakeState, name: str, sql: str, params: dict[str, Any]
) -> pa.Table:
    metadata = str(local_path(state.tables[name].location))
    return connection.execute(sql, {"metadata": metadata, **params}).to_arrow_table()


def _moment(table: Loaded, text: str) -> datetime | date:
    return datetime.fromisoformat(text) if table.time == "hour_at" else date.fromisoformat(text)


def _slices(moments: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(moments), MOMENTS_AT_ONCE):
        yield moments[start : start + MOMENTS_AT_ONCE]

"""Loading gold back into the store: the hours and days computed anew, by key.

What the new rows of an hour no longer have is emptied (`runs` 0), because a client of the store may
write rows but not delete them; views leave empty rows out and retention drops them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from string import Template
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.catalog.location import local_path
from lakehouse_core.store.literals import identifier
from lakehouse_core.store.schema import schema_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
)
TEMPLATE_TABLE = "template_table"

_GOLD = Template("""
SELECT $columns FROM iceberg_scan($$metadata)
WHERE $time IN (SELECT unnest($$moments))
""")
_STORED = Template("SELECT $key FROM $table WHERE $count > 0 AND list_contains($$moments, $time)")
_GONE = Template("SELECT * FROM stored ANTI JOIN fresh USING ($key)")
_TEMPLATES = """
SELECT DISTINCT template_id, unnest(tables) AS table_name FROM iceberg_scan($metadata)
"""


def load(
    store: TelemetryStore, state: LakeState, recomputed: dict[str, Sequence[str]]
) -> dict[str, int]:
    """Bring the recomputed hours and days into the store; rows read from gold, per table."""
    rows: dict[str, int] = {}
    with duck.connect(extensions=("iceberg",)) as connection:
        for table in LOADED:
            moments = [_moment(table, text) for text in recomputed.get(table.name, ())]
            if moments and table.name in state.tables:
                rows[table.name] = _load_table(store, connection, state, table, moments)
        if "query_template" in state.tables and recomputed:
            found = _scan(connection, state, "query_template", _TEMPLATES, {})
            store.upsert(TEMPLATE_TABLE, found)
            rows[TEMPLATE_TABLE] = found.num_rows
    return rows


def _load_table(
    store: TelemetryStore, connection: Any, state: LakeState, table: Loaded, moments: list[Any]
) -> int:
    rows = 0
    for some in _slices(moments):
        fresh = _gold(connection, state, table, some)
        stored = store.read(_stored_sql(table), moments=some)
        gone = _gone(connection, table, stored, fresh)
        rows += fresh.num_rows
        for batch in (fresh, gone):
            if batch.num_rows:
                store.upsert(table.name, batch)
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


def _gone(connection: Any, table: Loaded, stored: pa.Table, fresh: pa.Table) -> pa.Table:
    """Rows that take the place of what is stored and no longer true."""
    key = list(spec_of(table.name).key)
    with connection.cursor() as cursor:
        cursor.register("stored", stored)
        cursor.register("fresh", fresh.select(key))
        names = ", ".join(identifier(name) for name in key)
        missing = cursor.execute(_GONE.substitute(key=names)).to_arrow_table()
    schema = schema_of(table.name)
    arrays = []
    for column in schema:
        if column.name in key:
            arrays.append(missing.column(column.name).cast(column.type))
        elif column.nullable:
            arrays.append(pa.nulls(missing.num_rows, column.type))
        else:
            arrays.append(pa.array([0] * missing.num_rows, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _stored_sql(table: Loaded) -> str:
    return _STORED.substitute(
        key=", ".join(identifier(name) for name in spec_of(table.name).key),
        table=identifier(table.name),
        count=identifier(table.count),
        time=identifier(table.time),
    )


def _moment(table: Loaded, text: str) -> datetime | date:
    return datetime.fromisoformat(text) if table.time == "hour_at" else date.fromisoformat(text)


def _slices(moments: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(moments), MOMENTS_AT_ONCE):
        yield moments[start : start + MOMENTS_AT_ONCE]

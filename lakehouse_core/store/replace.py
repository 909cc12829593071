"""Replacing all rows of some hours or days by key, through the store's port.

A client of the store may write rows but not delete them: what the new rows no longer have is
emptied (its count becomes 0), readers leave empty rows out and retention drops them.
"""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.store.batch import conform
from lakehouse_core.store.literals import identifier
from lakehouse_core.store.schema import schema_of, spec_of

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore

_STORED = Template("SELECT $key FROM $table WHERE $count > 0 AND list_contains($$moments, $time)")
_GONE = Template("SELECT * FROM stored ANTI JOIN fresh USING ($key)")


def replacement(
    store: TelemetryStore,
    table: str,
    moments: list[Any],
    fresh: pa.Table,
    *,
    time: str,
    count: str = "runs",
) -> pa.Table:
    """The rows that make `fresh` all that the table has of some moments, once they are upserted.

    Args:
        store: where the table is.
        table: its name.
        moments: the hours or days.
        fresh: their rows, with the table's columns.
        time: the column that holds the moment.
        count: the column that is 0 in an empty row.
    """
    keys = ", ".join(identifier(name) for name in spec_of(table).key)
    stored = store.read(
        _STORED.substitute(
            key=keys, table=identifier(table), count=identifier(count), time=identifier(time)
        ),
        moments=moments,
    )
    return pa.concat_tables([conform(table, fresh), _gone(table, stored, fresh)])


def _gone(table: str, stored: pa.Table, fresh: pa.Table) -> pa.Table:
    """Rows that take the place of what is stored and no longer true."""
    key = list(spec_of(table).key)
    with duck.connect() as connection:
        connection.register("stored", stored)
        connection.register("fresh", fresh.select(key))
        names = ", ".join(identifier(name) for name in key)
        missing = connection.execute(_GONE.substitute(key=names)).to_arrow_table()
    schema = schema_of(table)
    arrays = []
    for column in schema:
        if column.name in key:
            arrays.append(missing.column(column.name).cast(column.type))
        elif column.nullable:
            arrays.append(pa.nulls(missing.num_rows, column.type))
        else:
            arrays.append(pa.array([0] * missing.num_rows, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)

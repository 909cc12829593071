"""The Arrow schema of every store table, derived from the migrations and from nothing else."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.store.migrate import migrate
from lakehouse_core.store.tables import TABLES, StoreTable

if TYPE_CHECKING:
    from collections.abc import Mapping

_REQUIRED = "SELECT column_name FROM duckdb_columns() WHERE table_name = $table AND NOT is_nullable"


@cache
def schemas() -> Mapping[str, pa.Schema]:
    """Table → schema; a NOT NULL column is a field that is not nullable."""
    with duck.connect() as connection:
        migrate(connection)
        found = {}
        for name in TABLES:
            columns = connection.table(name).limit(0).to_arrow_table().schema
            rows = connection.execute(_REQUIRED, {"table": name}).fetchall()
            required = {row[0] for row in rows}
            found[name] = pa.schema(
                [pa.field(one.name, one.type, one.name not in required) for one in columns]
            )
    return MappingProxyType(found)


def schema_of(table: str) -> pa.Schema:
    """The schema of one table.

    Raises:
        StoreError: there is no such table.
    """
    return schemas()[spec_of(table).name]


def spec_of(table: str) -> StoreTable:
    """Key and freshness rules of one table.

    Raises:
        StoreError: there is no such table.
    """
    spec = TABLES.get(table)
    if spec is None:
        raise StoreError(f"The store has no table {table!r}; it has {', '.join(sorted(TABLES))}")
    return spec

"""Rows of Snowflake with names as the lake spells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.sql.spelling import lake_column, lake_table, linked_databases

if TYPE_CHECKING:
    from collectors.snowflake.config import SnowflakeSettings


def in_lake_spelling(rows: pa.Table, settings: SnowflakeSettings) -> pa.Table:
    """The rows with tables and columns spelt as in the lake; each name is looked at once."""
    databases = linked_databases(settings.catalog, settings.lake_database)
    for column in ("table_name", "column_name"):
        at = rows.schema.get_field_index(column)
        if at < 0:
            continue
        names = rows.column(at).combine_chunks().dictionary_encode()
        spelt = [
            lake_table(one, databases) if column == "table_name" else lake_column(one)
            for one in names.dictionary.to_pylist()
        ]
        plain = pa.array(spelt, pa.string()).take(names.indices)
        rows = rows.set_column(at, rows.schema.field(at), plain)
    return rows

"""Names as the lake spells them.

Snowflake folds names that are not quoted to upper case, other engines and Iceberg catalogs keep
them lower: LAKE.DEMO.T and lake.demo.t are one table. A part all in upper case was folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.table import join_name, split_name

if TYPE_CHECKING:
    from collectors.snowflake.config import SnowflakeSettings

_FULL_NAME = 3


def lake_name(name: str, settings: SnowflakeSettings) -> str:
    """A table's name; its database is our catalog when it is the one the lake is linked to."""
    try:
        parts = split_name(name)
    except ValueError:
        return name  # not a name: kept as it was told
    folded = tuple(_folded(part) for part in parts)
    database = settings.lake_database or settings.catalog.upper()
    if len(parts) == _FULL_NAME and parts[0] == database:
        folded = (settings.catalog, *folded[1:])
    return join_name(folded)


def in_lake_spelling(rows: pa.Table, settings: SnowflakeSettings) -> pa.Table:
    """The rows with tables and columns spelt as in the lake; each name is looked at once."""
    for column in ("table_name", "column_name"):
        at = rows.schema.get_field_index(column)
        if at < 0:
            continue
        names = rows.column(at).combine_chunks().dictionary_encode()
        spelt = [
            lake_name(one, settings) if column == "table_name" else _folded(one)
            for one in names.dictionary.to_pylist()
        ]
        plain = pa.array(spelt, pa.string()).take(names.indices)
        rows = rows.set_column(at, rows.schema.field(at), plain)
    return rows


def _folded(part: str) -> str:
    return part.lower() if part == part.upper() else part

"""SHOW CREATE TABLE, told from a table's metadata in the words of Trino's Iceberg connector.

Told are columns, comments, format, location, partitioning and order; properties that only one
writer knows are left out. Of what somebody may not see, nothing is told that is made of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakehouse_core.gateway.trino.iceberg_types import trino_type
from lakehouse_core.sql.scans import quote_text
from lakehouse_core.sql.spelling import name_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.catalog.schema import Field

_DIALECT = "trino"
_PLAIN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")  # what the connector leaves without quotes
_SIZED = re.compile(r"(bucket|truncate)\[(\d+)\]")
_FORMAT = "write.format.default"


def definition(name: Sequence[str], metadata: TableMetadata, shown: Sequence[str]) -> str:
    """The statement that would create a table.

    Args:
        name: catalog, schema and table.
        metadata: of the table.
        shown: the columns that may be known.
    """
    visible = _visible(metadata.fields, shown)
    columns = [_column(field) for field in visible.values() if field.is_column]
    properties = {
        "format": _text(str(metadata.properties.get(_FORMAT, "parquet")).upper()),
        "format_version": str(metadata.format_version),
        "location": _text(metadata.table_location),
        "partitioning": _array(_partitioning(metadata, visible)),
        "sorted_by": _array(_order(metadata, visible)),
    }
    comment = metadata.properties.get("comment")
    return "\n".join(
        [
            f"CREATE TABLE {'.'.join(name_in(_DIALECT, part) for part in name)} (",
            ",\n".join(f"   {column}" for column in columns),
            ")",
            *([f"COMMENT {_text(comment)}"] if comment else []),
            "WITH (",
            ",\n".join(f"   {key} = {value}" for key, value in properties.items() if value),
            ")",
        ]
    )


def _visible(fields: Sequence[Field], shown: Sequence[str]) -> dict[int, Field]:
    found, is_shown = {}, False
    for field in fields:  # what is inside of a column follows it
        is_shown = field.name in shown if field.is_column else is_shown
        if is_shown:
            found[field.field_id] = field
    return found


def _column(field: Field) -> str:
    required = " NOT NULL" if field.is_required else ""
    comment = f" COMMENT {_text(field.doc)}" if field.doc else ""
    return f"{name_in(_DIALECT, field.name)} {trino_type(field.type)}{required}{comment}"


def _partitioning(metadata: TableMetadata, visible: dict[int, Field]) -> Iterator[str]:
    spec = metadata.partition_spec_id
    transforms = metadata.partition_transforms.get(spec, ())
    for source, transform in zip(
        metadata.partition_sources.get(spec, ()), transforms, strict=False
    ):
        field, sized = visible.get(source), _SIZED.fullmatch(transform)
        if field is None:
            continue
        column = _term(field.name)
        if sized is not None:
            yield f"{sized[1]}({column}, {sized[2]})"
        else:
            yield column if transform == "identity" else f"{transform}({column})"


def _order(metadata: TableMetadata, visible: dict[int, Field]) -> Iterator[str]:
    keys = metadata.sort_order.keys if metadata.sort_order is not None else ()
    if any(key.transform != "identity" for key in keys):
        return  # the connector has no words for it
    for key in keys:
        field = visible.get(key.source_id)
        if field is None:
            return  # what comes behind it orders nothing by itself
        yield f"{_term(field.name)} {key.order}"


def _term(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _text(text: str) -> str:
    return quote_text(text, _DIALECT)


def _array(texts: Iterator[str]) -> str:
    found = ",".join(_text(text) for text in texts)
    return f"ARRAY[{found}]" if found else ""

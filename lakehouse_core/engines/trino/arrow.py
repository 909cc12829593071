"""Rows of Trino's client as Arrow, with the types Trino says they have. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core.sql.datatypes import parse_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.sql.datatypes import ColumnType, Family

_DEFAULT_DECIMAL = (38, 0)
_SIMPLE: dict[Family, pa.DataType] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "binary": pa.binary(),
    "text": pa.string(),
}


def to_schema(columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """The columns' Arrow types.

    Args:
        columns: name and type, as Trino spells it, of each column.
    """
    return pa.schema(
        [(name, arrow_type(parse_type(type_name, "trino"))) for name, type_name in columns]
    )


def to_batch(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Rows as a batch.

    Args:
        columns: name and type, as Trino spells it, of each column.
        rows: values as Trino's client gives them.
    """
    types = [parse_type(type_name, "trino") for _, type_name in columns]
    arrays = [
        pa.array([_value(row[index], kind) for row in rows], type=arrow_type(kind))
        for index, kind in enumerate(types)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=to_schema(columns))


def arrow_type(kind: ColumnType) -> pa.DataType:
    """The Arrow type of a column type."""
    held = [(name, arrow_type(inner)) for name, inner in kind.fields]
    match kind.family:
        case "decimal":
            return pa.decimal128(*(kind.parameters or _DEFAULT_DECIMAL))
        case "list":
            return pa.list_(held[0][1])
        case "map":
            return pa.map_(held[0][1], held[1][1])
        case "struct":
            return pa.struct(held)
    return _SIMPLE[kind.family]


def _value(value: Any, kind: ColumnType) -> Any:
    if value is None:
        return None
    match kind.family:
        case "text":
            return value if isinstance(value, str) else str(value)
        case "list":
            return [_value(item, kind.fields[0][1]) for item in value]
        case "map":
            (_, key), (_, item) = kind.fields
            return [(_value(k, key), _value(v, item)) for k, v in value.items()]
        case "struct":
            pairs = zip(kind.fields, value, strict=True)
            return {name: _value(item, inner) for (name, inner), item in pairs}
    return value

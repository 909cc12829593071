"""Iceberg's schema as an Arrow schema with field ids, as Parquet files of the table have it."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_FIXED = re.compile(r"fixed\[(\d+)\]")
_PRIMITIVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
}


class UnfitError(Exception):
    """Raised when a schema or a file is not for the Arrow way; says why."""


def to_arrow(schema: dict[str, Any]) -> pa.Schema:
    """The schema that new files have.

    Raises:
        UnfitError: it has a type that Arrow does not write the way Iceberg reads it.
    """
    return pa.schema([_field(one) for one in schema["fields"]])


def _field(field: dict[str, Any]) -> pa.Field:
    return _named(field["name"], field["id"], field["type"], is_required=field["required"])


def _named(name: str, field_id: int, kind: Any, *, is_required: bool) -> pa.Field:
    metadata = {FIELD_ID: str(field_id).encode()}
    return pa.field(name, _type(kind), nullable=not is_required, metadata=metadata)


def _type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return _primitive(kind)
    if kind["type"] == "struct":
        return pa.struct([_field(one) for one in kind["fields"]])
    if kind["type"] == "list":
        required = kind["element-required"]
        return pa.list_(
            _named("element", kind["element-id"], kind["element"], is_required=required)
        )
    if kind["type"] == "map":
        required = kind["value-required"]
        return pa.map_(
            _named("key", kind["key-id"], kind["key"], is_required=True),
            _named("value", kind["value-id"], kind["value"], is_required=required),
        )
    raise UnfitError(f"type {kind['type']}")


def _primitive(kind: str) -> pa.DataType:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := _FIXED.fullmatch(kind):
        return pa.binary(int(found[1]))
    raise UnfitError(f"type {kind}")


def id_of(field: pa.Field) -> int | None:
    """The Iceberg id of a field; None when the file has none."""
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None else int(found)


def is_same(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether two types hold the same values under the same field ids and, within, names."""
    if not pa.types.is_nested(want):
        return bool(have.equals(want)) or (
            # Older writers did not mark the sixteen bytes as a UUID.
            want == pa.uuid() and have == pa.binary(16)
        )
    if have.id != want.id or have.num_fields != want.num_fields:
        return False
    return all(
        id_of(mine) == id_of(theirs)
        and mine.name == theirs.name  # Arrow casts structures by name
        and is_same(mine.type, theirs.type)
        for mine, theirs in zip(_children(have), _children(want), strict=True)
    )


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(n) for n in range(kind.num_fields)]


def can_widen(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether Iceberg promotes one primitive type to the other without a loss."""
    if pa.types.is_decimal(have) and pa.types.is_decimal(want):
        return bool(have.scale == want.scale and have.precision <= want.precision)
    return (have, want) in {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}


def floating_paths(schema: pa.Schema) -> list[tuple[int, tuple[str, ...]]]:
    """Field ids and paths of the columns that may hold NaN and have bounds: not within lists."""
    found: list[tuple[int, tuple[str, ...]]] = []

    def walk(fields: list[pa.Field], path: tuple[str, ...]) -> None:
        for field in fields:
            here = (*path, field.name)
            if pa.types.is_floating(field.type):
                found.append((int(field.metadata[FIELD_ID]), here))
            elif pa.types.is_struct(field.type):
                walk(_children(field.type), here)

    walk(list(schema), ())
    return found

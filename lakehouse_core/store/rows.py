"""Records → Arrow with the column types of the store: `to_arrow("query_event", events)`."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.text import well_formed
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def to_arrow(table: str, records: Sequence[object]) -> pa.Table:
    """The rows of a store table from its frozen records.

    Enums become their values, tuples lists, aware times UTC microseconds; a structure in a text
    column becomes JSON. A column the records do not have is NULL. What is no text in a text
    becomes a replacement character: one query must not keep others out.

    Raises:
        StoreError: a record has a field the table has not, or a value that does not fit; names
            the column.
    """
    schema = schema_of(table)
    names = _field_names(table, records, schema)
    arrays = []
    for column in schema:
        if column.name not in names:
            arrays.append(pa.nulls(len(records), column.type))
            continue
        convert = _converter(column.type)
        values = [convert(getattr(record, column.name)) for record in records]
        try:
            arrays.append(_array(values, column.type))
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise StoreError(f"Column {table}.{column.name} refuses a value: {error}") from error
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values; half a character in a text, which engines may tell, costs that character only."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_well_formed(value) for value in values], kind)


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    return [_well_formed(item) for item in value] if isinstance(value, list) else value


def _field_names(table: str, records: Sequence[object], schema: pa.Schema) -> set[str]:
    kinds = {type(record) for record in records}
    names: set[str] = set()
    for kind in kinds:
        if not is_dataclass(kind):
            raise StoreError(f"Rows of {table} are made from dataclasses, not from {kind.__name__}")
        names |= {field.name for field in fields(kind)}
    unknown = names.difference(schema.names)
    if unknown:
        raise StoreError(f"Table {table} has no column {', '.join(sorted(unknown))}")
    return names


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_timestamp(kind):
        return _aware
    if pa.types.is_string(kind):
        return _text
    return _plain


def _aware(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        raise StoreError(f"Time {value.isoformat()} has no zone: times in the store are UTC")
    return value


def _text(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list | dict) or is_dataclass(value):
        return json.dumps(value, default=_jsonable, ensure_ascii=False, separators=(",", ":"))
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _jsonable(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return str(value)
    raise StoreError(f"A {type(value).__name__} cannot be stored as JSON")

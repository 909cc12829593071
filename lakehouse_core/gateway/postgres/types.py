"""Arrow's types as PostgreSQL's, and columns of rows as its messages carry them.

Rows are put together column by column: a batch becomes the bytes of all its messages without a
Python object per value. Lists, structs and maps are told as JSON, which every client can read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.gateway.postgres.messages import Column
from lakehouse_core.gateway.postgres.numeric import numeric_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BOOL, BYTEA, INT8, INT2, INT4, TEXT, JSON = 16, 17, 20, 21, 23, 25, 114
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 700, 701, 705, 1042, 1043
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, NUMERIC, UUID = 1082, 1083, 1114, 1184, 1700, 2950

_EPOCH_DAYS = 10_957  # from 1970-01-01 to 2000-01-01, where PostgreSQL counts from
_EPOCH_MICROS = _EPOCH_DAYS * 86_400_000_000
_NUMBERS = {BOOL: "i1", INT2: ">i2", INT4: ">i4", INT8: ">i8", FLOAT4: ">f4", FLOAT8: ">f8"}


@dataclass(frozen=True, slots=True)
class _Kind:
    oid: int
    size: int


def column_of(field: pa.Field, *, is_binary: bool = False) -> Column:
    """A column as the protocol describes it."""
    kind = _kind(field.type)
    return Column(field.name, kind.oid, kind.size, is_binary, _modifier(field.type))


def _modifier(kind: pa.DataType) -> int:
    """Precision and scale of a decimal, as PostgreSQL packs them; -1 says nothing."""
    if pa.types.is_decimal(kind) and kind.scale >= 0:
        return int((kind.precision << 16 | kind.scale) + 4)
    return -1


def encode_rows(batch: pa.RecordBatch, columns: Sequence[Column]) -> memoryview:
    """All rows of a batch as DataRow messages, one after the other."""
    if batch.num_rows == 0:
        return memoryview(b"")
    total = np.full(batch.num_rows, 6, dtype=np.int64)  # the length itself, and the count
    parts: list[pa.Array] = []
    for index, column in enumerate(columns):
        values = batch.column(index)
        data = _binary(values, column.oid) if column.is_binary else _text(values)
        # Null is a length of -1 and no bytes; an empty text is a length of 0.
        lengths = pc.fill_null(pc.binary_length(data), 0).to_numpy(zero_copy_only=False)
        total += lengths + 4
        told = np.where(data.is_null().to_numpy(zero_copy_only=False), -1, lengths)
        parts += [_fixed(told.astype(">i4")), pc.fill_null(data, b"")]
    head = np.empty(batch.num_rows, dtype=[("kind", "S1"), ("length", ">i4"), ("count", ">i2")])
    head["kind"], head["length"], head["count"] = b"D", total, len(columns)
    rows = pc.binary_join_element_wise(_fixed(head), *parts, pa.scalar(b"", pa.large_binary()))
    first, last = rows.offset, rows.offset + len(rows)
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int64)
    return memoryview(rows.buffers()[2])[int(offsets[first]) : int(offsets[last])]


def _kind(kind: pa.DataType) -> _Kind:
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    for matches, oid, size in _KINDS:
        if matches(kind):
            return _Kind(oid, size)
    return _Kind(TEXT, -1)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_uint64(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    is_varying = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(is_varying or pa.types.is_fixed_size_binary(kind))


def _is_odd(kind: pa.DataType) -> bool:
    """Types PostgreSQL has no match for; their text is as Python has it."""
    is_length = pa.types.is_duration(kind) or pa.types.is_interval(kind)
    return bool(is_length or pa.types.is_null(kind))


_KINDS = (
    (pa.types.is_boolean, BOOL, 1),
    (lambda t: pa.types.is_int8(t) or pa.types.is_int16(t) or pa.types.is_uint8(t), INT2, 2),
    (lambda t: pa.types.is_int32(t) or pa.types.is_uint16(t), INT4, 4),
    (lambda t: pa.types.is_int64(t) or pa.types.is_uint32(t), INT8, 8),
    (_is_number, NUMERIC, -1),
    (lambda t: pa.types.is_float16(t) or pa.types.is_float32(t), FLOAT4, 4),
    (pa.types.is_float64, FLOAT8, 8),
    (pa.types.is_date, DATE, 4),
    (pa.types.is_time, TIME, 8),
    (lambda t: pa.types.is_timestamp(t) and t.tz is not None, TIMESTAMPTZ, 8),
    (pa.types.is_timestamp, TIMESTAMP, 8),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t), VARCHAR, -1),
    (_is_bytes, BYTEA, -1),
    (pa.types.is_nested, JSON, -1),
)


# --- text format ---------------------------------------------------------------------------------


def _text(values: pa.Array) -> pa.Array:
    """Each value as PostgreSQL writes it, as large binary."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    for matches, write in _TEXT_FORMS:
        if matches(values.type):
            return _bytes(write(values))
    return _bytes(pc.cast(values, pa.large_string()))


def _float_text(values: pa.Array) -> pa.Array:
    text = pc.cast(values, pa.string())
    for ours, theirs in (("nan", "NaN"), ("-inf", "-Infinity"), ("inf", "Infinity")):
        text = pc.if_else(pc.equal(text, ours), theirs, text)
    return text


def _moment_text(values: pa.Array) -> pa.Array:
    micros = pc.cast(values, pa.timestamp("us", values.type.tz), safe=False)
    plain = pc.cast(pc.cast(micros, pa.int64()), pa.timestamp("us"))  # of UTC
    text = pc.cast(plain, pa.string())
    return text if values.type.tz is None else pc.binary_join_element_wise(text, "+00", "")


def _date_text(values: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(values, pa.date32()), pa.string())


def _time_text(values: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(values, pa.time64("us"), safe=False), pa.string())


def _json(value: Any) -> bytes:
    return json.dumps(_plain(value), ensure_ascii=False).encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """A value as JSON can say it; what JSON has no word for becomes text."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        is_map = bool(value) and all(isinstance(one, tuple) and len(one) == 2 for one in value)
        return _plain(dict(value)) if is_map else [_plain(one) for one in value]
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    return value


_TEXT_FORMS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (pa.types.is_boolean, lambda values: pc.if_else(values, "t", "f")),
    (pa.types.is_floating, _float_text),
    (pa.types.is_timestamp, _moment_text),
    (pa.types.is_date, _date_text),
    (pa.types.is_time, _time_text),
    (_is_bytes, lambda values: _each(values, lambda one: b"\\x" + one.hex().encode())),
    (_is_odd, lambda values: _each(values, lambda one: str(one).encode())),
    (pa.types.is_nested, lambda values: _each(values, _json)),
)

# --- binary format -------------------------------------------------------------------------------


def _binary(values: pa.Array, oid: int) -> pa.Array:
    """Each value as PostgreSQL sends it in binary, as large binary."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if oid in _NUMBERS:
        number = pc.cast(values, pa.int8()) if oid == BOOL else values
        return _numbers(number, _NUMBERS[oid])
    form = _BINARY_FORMS.get(oid)
    return _text(values) if form is None else form(values)


def _days(values: pa.Array) -> pa.Array:
    days = pc.cast(pc.cast(values, pa.date32()), pa.int32())
    return _numbers(pc.subtract(days, _EPOCH_DAYS), ">i4")


def _moments(values: pa.Array) -> pa.Array:
    micros = pc.cast(values, pa.timestamp("us", values.type.tz), safe=False)
    return _numbers(pc.subtract(pc.cast(micros, pa.int64()), _EPOCH_MICROS), ">i8")


def _times(values: pa.Array) -> pa.Array:
    micros = pc.cast(values, pa.time64("us"), safe=False)
    return _numbers(pc.cast(micros, pa.int64()), ">i8")


_BINARY_FORMS: Mapping[int, Callable[[pa.Array], pa.Array]] = {
    DATE: _days,
    TIMESTAMP: _moments,
    TIMESTAMPTZ: _moments,
    TIME: _times,
    NUMERIC: lambda values: _each(values, lambda one: numeric_bytes(Decimal(one))),
    BYTEA: lambda values: pc.cast(values, pa.large_binary()),
}


def _numbers(values: pa.Array, shape: str) -> pa.Array:
    raw = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(shape)
    return pc.if_else(values.is_valid(), _fixed(raw), pa.scalar(None, pa.large_binary()))


# --- parts ---------------------------------------------------------------------------------------


def _bytes(text: pa.Array) -> pa.Array:
    return text if text.type == pa.large_binary() else pc.cast(text, pa.large_binary())


def _fixed(values: np.ndarray[Any, Any]) -> pa.Array:
    """Each element's own bytes."""
    raw = np.ascontiguousarray(values)
    width = raw.dtype.itemsize
    array = pa.Array.from_buffers(pa.binary(width), len(raw), [None, pa.py_buffer(raw.tobytes())])
    return pc.cast(array, pa.large_binary())


def _each(values: pa.Array, encode: Any) -> pa.Array:
    """For types without a vectorised form."""
    return pa.array(
        [None if value is None else encode(value) for value in values.to_pylist()],
        pa.large_binary(),
    )

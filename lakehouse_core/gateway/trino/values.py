"""Rows of a result as the JSON of Trino's protocol, column by column.

Numbers are numbers, decimals and times are texts, bytes are base64, arrays and rows are lists, maps
are objects. A column is converted as a whole, so that a page of a million cells takes no Python
loop over its cells unless its type is nested.
"""

from __future__ import annotations

import base64
import itertools
import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

_encode = msgspec.json.Encoder().encode
_MILLISECONDS_PER_DAY = 86_400_000
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def encode_rows(batch: pa.RecordBatch, *, parametric: bool = True) -> bytes:
    """The batch as the protocol's `data`: a JSON list of rows.

    Args:
        batch: the rows.
        parametric: whether the client knows times with a precision; else they get milliseconds.
    """
    if batch.num_columns == 0:
        return b"[" + b",".join([b"[]"] * batch.num_rows) + b"]"
    columns = [cells(column, parametric=parametric) for column in batch.columns]
    return _encode(list(zip(*columns, strict=True)))


def cells(column: pa.Array, *, parametric: bool = True) -> list[Any]:
    """The values of a column as the protocol has them, ready to be JSON."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return [None if value is None else str(value) for value in column.to_pylist()]
        column, kind = column.storage, kind.storage_type
    if pa.types.is_dictionary(kind):
        return cells(column.dictionary_decode(), parametric=parametric)
    if pa.types.is_temporal(kind):
        return _temporal(column, parametric=parametric)
    if pa.types.is_nested(kind):
        return _nested(column, parametric=parametric)
    convert = next((convert for is_one, convert in _PLAIN if is_one(kind)), _as_text)
    return convert(column)


def _numbers(column: pa.Array) -> list[Any]:
    if column.null_count == 0:
        return list(column.to_numpy(zero_copy_only=False).tolist())
    values = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return _with_nulls(values.to_numpy(zero_copy_only=False).astype(object), column)


def _floats(column: pa.Array) -> list[Any]:
    if not pa.types.is_float64(column.type):
        # Shortest text of a single-precision number, as Trino writes it: 0.1, not 0.10000000149.
        column = column.cast(pa.float32()).cast(pa.string()).cast(pa.float64())
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
    if np.isfinite(values).all():
        if column.null_count == 0:
            return list(values.tolist())
        return _with_nulls(values.astype(object), column)
    odd = [value if math.isfinite(value) else _odd(value) for value in values.tolist()]
    return _with_nulls(np.array(odd, dtype=object), column)


def _odd(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _with_nulls(values: Any, column: pa.Array) -> list[Any]:
    if column.null_count:
        values[column.is_null().to_numpy(zero_copy_only=False)] = None
    return list(values.tolist())


def _as_text(column: pa.Array) -> list[Any]:
    return _texts(column.cast(pa.string()))


def _nulls(column: pa.Array) -> list[Any]:
    return [None] * len(column)


def _binaries(column: pa.Array) -> list[Any]:
    return [
        None if value is None else base64.b64encode(value).decode() for value in column.to_pylist()
    ]


def _texts(column: pa.Array) -> list[Any]:
    return list(column.to_numpy(zero_copy_only=False).tolist())


def _temporal(column: pa.Array, *, parametric: bool) -> list[Any]:
    kind = column.type
    if pa.types.is_date(kind):
        return _texts(column.cast(pa.date32()).cast(pa.string()))
    if pa.types.is_interval(kind):
        return [None if v is None else _interval(v) for v in column.to_pylist()]
    if pa.types.is_duration(kind):
        milliseconds = column.cast(pa.duration("ms"), safe=False).cast(pa.int64())
        return [None if v is None else _day_to_second(v) for v in milliseconds.to_pylist()]
    if not parametric and _DIGITS[kind.unit] > 3:
        column = _rounded_to_milliseconds(column)
    if pa.types.is_time(kind):
        return _texts(column.cast(pa.string()))
    if kind.tz is None:
        return _texts(column.cast(pa.string()))
    # Arrow keeps the moment in UTC; the zone is how it is shown, and ours is UTC.
    plain = column.cast(pa.timestamp(column.type.unit, "UTC")).cast(pa.timestamp(column.type.unit))
    return _texts(pc.binary_join_element_wise(plain.cast(pa.string()), "UTC", " "))


def _rounded_to_milliseconds(column: pa.Array) -> pa.Array:
    """Half a millisecond counts as a whole one, as in Trino."""
    factor = 10 ** (_DIGITS[column.type.unit] - 3)
    number = pc.add(column.cast(pa.int64()), factor // 2).to_numpy(zero_copy_only=False)
    whole = pa.array(np.floor_divide(number, factor), mask=column.is_null().to_numpy(False))
    if pa.types.is_time(column.type):
        # The last half millisecond of a day begins the day again.
        wrapped = pc.if_else(pc.equal(whole, _MILLISECONDS_PER_DAY), 0, whole)
        return wrapped.cast(pa.int32()).cast(pa.time32("ms"))
    return whole.cast(pa.int64()).cast(pa.timestamp("ms", column.type.tz))


def _interval(value: Any) -> str:
    """Trino has two kinds of intervals, Arrow's has both parts: months count as thirty days."""
    days = value.months * 30 + value.days
    return _day_to_second(days * _MILLISECONDS_PER_DAY + value.nanoseconds // 1_000_000)


def _day_to_second(milliseconds: int) -> str:
    sign, rest = ("-" if milliseconds < 0 else ""), abs(milliseconds)
    seconds, thousandths = divmod(rest, 1_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{sign}{days} {hours:02}:{minutes:02}:{seconds:02}.{thousandths:03}"


def _nested(column: pa.Array, *, parametric: bool) -> list[Any]:
    kind = column.type
    if pa.types.is_struct(kind):
        fields = [cells(field, parametric=parametric) for field in column.flatten()]
        rows = list(zip(*fields, strict=True)) if fields else [()] * len(column)
        return _where_known(column, rows.__getitem__)
    if pa.types.is_map(kind):
        keys = [_key(key) for key in cells(column.keys, parametric=parametric)]
        values = cells(column.items, parametric=parametric)
        bounds = _bounds(column)
        return _where_known(
            column,
            lambda at: dict(zip(keys[slice(*bounds[at])], values[slice(*bounds[at])], strict=True)),
        )
    if pa.types.is_union(kind):
        return [None if value is None else str(value) for value in column.to_pylist()]
    if pa.types.is_fixed_size_list(kind):
        column = column.cast(pa.list_(kind.value_type))
    items, spans = cells(column.values, parametric=parametric), _bounds(column)
    return _where_known(column, lambda at: items[slice(*spans[at])])


def _bounds(column: pa.Array) -> list[tuple[int, int]]:
    """Where each row's items begin and end among all items."""
    offsets = column.offsets.to_pylist()
    return list(itertools.pairwise(offsets))


def _where_known(column: pa.Array, value_at: Callable[[int], Any]) -> list[Any]:
    known = column.is_valid().to_pylist()
    return [value_at(at) if is_known else None for at, is_known in enumerate(known)]


def _key(value: Any) -> str:
    """A map's key: JSON knows texts only."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else _encode(value).decode()


_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], list[Any]]], ...] = (
    (pa.types.is_uint64, _as_text),  # Trino's largest integer is a signed one: a decimal
    (pa.types.is_integer, _numbers),
    (pa.types.is_boolean, _numbers),
    (pa.types.is_floating, _floats),
    (pa.types.is_null, _nulls),
    (pa.types.is_binary, _binaries),
    (pa.types.is_large_binary, _binaries),
    (pa.types.is_binary_view, _binaries),
    (pa.types.is_fixed_size_binary, _binaries),
)

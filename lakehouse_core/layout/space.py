"""A column of a sample as ranks: how its rows are ordered, and what files keep of them as bounds.

Rows are ordered by their whole value; a file's bounds keep a text up to its first 16 characters
(`write.metadata.metrics`), so two texts that differ later are one to whoever plans a query.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.catalog.bounds import ordered_decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NULL = -1
_WHOLE = ("int", "long", "date", "time", "timestamp", "timestamptz", "timestamp_ns")
_WHOLE_TYPES = frozenset({*_WHOLE, "timestamptz_ns"})
_FLOAT_TYPES = frozenset({"float", "double"})
_BYTE_TYPES = frozenset({"string", "binary", "uuid", "fixed", "boolean", "decimal"})
ORDERED_TYPES = _WHOLE_TYPES | _FLOAT_TYPES | _BYTE_TYPES


def base_type(type_name: str) -> str:
    """`decimal(9, 2)` → `decimal`."""
    return type_name.partition("(")[0].partition("[")[0]


@dataclass(frozen=True, slots=True)
class ColumnSpace:
    """One column of a sample.

    Attributes:
        type: Iceberg's spelling of the type.
        codes: the place of each row's value among the distinct ones; -1 for NULL. NaN is the last.
        distinct: how many distinct values there are.
        rows: likewise, by what bounds can tell apart; -1 for NULL and NaN.
        keys: every bound a file can have, in order: numbers, or bytes.
        lower: the place among the keys of the lower bound of a file that begins with a value.
        upper: the place of the upper bound of a file that ends with it.
        counts: how many rows have the value.
        order_values: the distinct values as 64 bits in the order that Iceberg's z-order gives them.
    """

    type: str
    codes: NDArray[np.int32]
    distinct: int
    rows: NDArray[np.int32]
    keys: NDArray[Any] | Sequence[bytes]
    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    counts: NDArray[np.int64]
    order_values: NDArray[np.uint64] | None

    @property
    def nulls(self) -> int:
        """Rows without a value."""
        return int((self.codes == NULL).sum())


def column_space(column: pa.ChunkedArray, type_name: str, truncation: int | None) -> ColumnSpace:
    """Read a column.

    Raises:
        ValueError: values of that type have no order.
    """
    base = base_type(type_name)
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # Arrow keeps chunks where offsets would overflow
        values = pa.concat_arrays(values.chunks)
    if base in _WHOLE_TYPES:
        return _of_numbers(values, type_name, _whole(values))
    if base in _FLOAT_TYPES:
        return _of_numbers(values, type_name, values.cast(pa.float64()))
    if base in _BYTE_TYPES:
        return _of_bytes(values, type_name, truncation)
    raise ValueError(f"values of type {type_name} have no order")


def _whole(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(values.type) and values.type.unit != "us":
        values = values.cast(pa.timestamp("us", values.type.tz), safe=False)
    return values.cast(pa.int64())


def _of_numbers(values: pa.Array, type_name: str, numbers: pa.Array) -> ColumnSpace:
    known = pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    present = numbers.drop_null().to_numpy(zero_copy_only=False)
    distinct, places = np.unique(present, return_inverse=True)  # NaN is sorted last, once
    codes = np.full(len(values), NULL, np.int32)
    codes[known] = places
    keys = distinct[~np.isnan(distinct)] if distinct.dtype.kind == "f" else distinct
    rows = np.where(codes < len(keys), codes, NULL).astype(np.int32)
    at: NDArray[np.int32] = np.arange(len(keys), dtype=np.int32)
    return ColumnSpace(
        type_name,
        codes,
        len(distinct),
        rows,
        keys,
        at,
        at,
        _counts(rows, len(keys)),
        _bits_of_numbers(distinct, type_name),
    )


def _bits_of_numbers(distinct: NDArray[Any], type_name: str) -> NDArray[np.uint64] | None:
    sign = np.uint64(1 << 63)
    if distinct.dtype.kind == "f":
        bits = distinct.astype(np.float64).view(np.int64)
        flipped: NDArray[np.uint64] = (bits ^ (bits >> 31)).view(np.uint64) ^ sign
        return flipped
    base = base_type(type_name)
    if base == "timestamptz":  # Spark turns a timestamp into seconds
        distinct = distinct // 1_000_000
    elif base not in ("int", "long", "date"):
        return None  # Iceberg's z-order does not know the type
    whole: NDArray[np.uint64] = distinct.astype(np.int64).view(np.uint64) ^ sign
    return whole


def _of_bytes(values: pa.Array, type_name: str, truncation: int | None) -> ColumnSpace:
    encoded = values.dictionary_encode()
    base = base_type(type_name)
    raw = [_as_bytes(one, base) for one in encoded.dictionary.to_pylist()]
    order = sorted(range(len(raw)), key=raw.__getitem__)
    place = np.empty(len(raw), np.int32)
    place[order] = np.arange(len(raw), dtype=np.int32)
    indices = pc.fill_null(encoded.indices, NULL).to_numpy(zero_copy_only=False)
    codes = np.where(indices >= 0, place[indices] if raw else NULL, NULL).astype(np.int32)
    texts = [raw[one] for one in order]
    cut = truncation if base in ("string", "binary") else None
    heads = [_head(one, base, cut) for one in texts]
    short = list(dict.fromkeys(heads))
    longer = _cut_heads(texts, heads)
    ends = [_next(head) if head in longer else head for head in short]
    keys = sorted({*short, *ends})
    at = {key: place for place, key in enumerate(keys)}
    head_of = np.cumsum([0, *(a != b for a, b in pairwise(heads))])[: len(heads)]
    rows = np.where(codes >= 0, head_of[codes] if heads else NULL, NULL).astype(np.int32)
    return ColumnSpace(
        type_name,
        codes,
        len(texts),
        rows,
        keys,
        np.array([at[one] for one in short], np.int32),
        np.array([at[one] for one in ends], np.int32),
        _counts(rows, len(short)),
        _bits_of_bytes(texts) if base in ("string", "binary", "boolean") else None,
    )


def _cut_heads(texts: Sequence[bytes], heads: Sequence[bytes]) -> set[bytes]:
    """Heads that stand for a longer value."""
    return {head for text, head in zip(texts, heads, strict=True) if len(text) > len(head)}


def _as_bytes(value: Any, base: str) -> bytes:
    if isinstance(value, str) and base == "uuid":  # Spark has no type of its own for them
        return uuid.UUID(value).bytes
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, bytes):
        return value
    if hasattr(value, "as_tuple"):  # a decimal, by its unscaled value
        sign, digits, exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return ordered_decimal(unscaled * 10 ** max(0, int(exponent)))
    return bytes(value.bytes)  # a UUID


def _bits_of_bytes(texts: Sequence[bytes]) -> NDArray[np.uint64]:
    """The first eight bytes as one number, as Iceberg's z-order takes them."""
    head = b"".join(one[:8].ljust(8, b"\0") for one in texts)
    bits: NDArray[np.uint64] = np.frombuffer(head, ">u8").astype(np.uint64)
    return bits


def _counts(rows: NDArray[np.int32], values: int) -> NDArray[np.int64]:
    return np.bincount(rows[rows >= 0], minlength=values)


def _head(value: bytes, base: str, length: int | None) -> bytes:
    """A value as a lower bound keeps it: texts by characters, binaries by bytes."""
    if length is None or len(value) <= length:
        return value
    if base != "string":
        return value[:length]
    text = value.decode("utf-8", "surrogatepass")
    return text[:length].encode("utf-8", "surrogatepass")


def _next(head: bytes) -> bytes:
    """A bound above all values with this head, as close as makes no difference to a literal."""
    return head + b"\xff"


def metrics_mode(properties: dict[str, str], column: str, position: int) -> tuple[bool, int | None]:
    """Whether files keep bounds of a column, and how much of a text.

    Args:
        properties: of the table.
        column: its name.
        position: of the column in the schema; beyond the first 100 Iceberg keeps nothing unless
            the table says so.
    """
    own = properties.get(f"write.metadata.metrics.column.{column}")
    default = properties.get("write.metadata.metrics.default")
    most = int(properties.get("write.metadata.metrics.max-inferred-column-defaults", "100"))
    mode = (own or default or ("none" if position >= most else "truncate(16)")).strip().lower()
    if mode in ("none", "counts"):
        return False, None
    if mode.startswith("truncate("):
        return True, int(mode[len("truncate(") : -1])
    return True, None

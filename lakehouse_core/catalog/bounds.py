"""Ranks of column bounds: Iceberg's single-value bytes of any type → integers in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Little-endian numbers by width; a column widened after it was written has both widths.
_INTEGERS = {4: "<i4", 8: "<i8"}
_FLOATS = {4: "<f4", 8: "<f8"}
_NUMBERS = {
    "int": _INTEGERS,
    "long": _INTEGERS,
    "date": _INTEGERS,
    "time": _INTEGERS,
    "timestamp": _INTEGERS,
    "timestamptz": _INTEGERS,
    "timestamp_ns": _INTEGERS,
    "timestamptz_ns": _INTEGERS,
    "float": _FLOATS,
    "double": _FLOATS,
}
# UTF-8, UUIDs, fixed, binary and booleans compare as their bytes do.
_BYTEWISE = ("string", "uuid", "fixed", "binary", "boolean")
_DECIMAL_BYTES = 16


def ranks(
    lower: pa.Array, upper: pa.Array, type_name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Dense ranks of lower and upper bounds together; neither holds nulls.

    Returns:
        Two arrays, or None when values of that type have no order here (geometry, variant) or the
        bounds are not as the type demands.
    """
    values = comparable(pa.concat_arrays([lower, upper]), type_name)
    if values is None:
        return None
    rank = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    return rank[: len(lower)], rank[len(lower) :]


def comparable(bounds: pa.Array, type_name: str) -> pa.Array | None:
    """Bounds as values that Arrow orders as Iceberg does; None as in `ranks`."""
    base = type_name.partition("(")[0].partition("[")[0]
    if base in _NUMBERS:
        return _numbers(bounds, _NUMBERS[base])
    if base == "decimal":
        return pa.array(
            [
                ordered_decimal(int.from_bytes(one, "big", signed=True))
                for one in bounds.to_pylist()
            ],
            pa.binary(),
        )
    return bounds if base in _BYTEWISE else None


def _numbers(bounds: pa.Array, widths: dict[int, str]) -> pa.Array | None:
    width = pc.binary_length(bounds).to_numpy()
    found = set(np.unique(width).tolist())
    if not found <= widths.keys():
        return None
    values: NDArray[Any] = np.empty(len(bounds), widths[max(found, default=4)])
    for one in found:
        values[width == one] = np.frombuffer(_bytes(bounds, width == one), widths[one])
    return pa.array(values)


def _bytes(bounds: pa.Array, chosen: NDArray[np.bool_]) -> bytes:
    """The chosen values end to end, without making an object of each."""
    values = bounds.filter(pa.array(chosen))
    _, offsets, data = values.buffers()
    edges = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    return bytes(data[int(edges[0]) : int(edges[-1])])


def ordered_decimal(unscaled: int) -> bytes:
    """Bytes that compare as the unscaled values of decimals do."""
    limit = 1 << 127
    inside = min(max(unscaled, -limit), limit - 1)
    return (inside + limit).to_bytes(_DECIMAL_BYTES + 1, "big")

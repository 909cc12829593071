"""The distinct values of an Arrow column, in order, and which of them each row has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lakehouse_core.layout.packing.arrays import Flags, Places

_LONG_TEXT = 256  # bytes; longer ones are not made up
_LONG_DIGITS, _INT_DIGITS = 18, 9  # of a decimal, in 8 bytes and in 4


@dataclass(frozen=True, slots=True)
class Read:
    """A column as places among its distinct values.

    Attributes:
        seen: the distinct values without NULL, in order: numbers, or texts as binary.
        codes: the place of each row's value; NULL comes first where there is one.
        type: what numbers are written as; None: texts.
        nulls: 1 where there is NULL.
    """

    seen: NDArray[Any] | pa.Array
    codes: Places
    type: np.dtype[Any] | None
    nulls: int


def read(column: pa.ChunkedArray) -> Read | None:
    """Read a column; None: its values have no order, or are too long to make others."""
    values = column.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    is_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    found = _texts(values) if is_text(values.type) else _numbers(values, is_null)
    if found is None:
        return None
    seen, codes, kind = found
    nulls = int(is_null.any())
    return Read(seen, np.where(is_null, 0, codes + nulls), kind, nulls)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings of bytes."""
    known = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string,
             pa.types.is_large_binary, pa.types.is_fixed_size_binary)  # fmt: skip
    return any(is_one(kind) for is_one in known)


def _texts(values: pa.Array) -> tuple[pa.Array, Places, None] | None:
    encoded = values.cast(pa.binary()).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    seen = encoded.dictionary.take(order)
    if (pc.max(pc.binary_length(seen)).as_py() or 0) > _LONG_TEXT:
        return None
    place = np.zeros(len(order) + 1, np.int64)
    place[order] = np.arange(len(order))
    return seen, place[pc.fill_null(encoded.indices, len(order)).to_numpy()], None


def _numbers(values: pa.Array, is_null: Flags) -> tuple[NDArray[Any], Places, np.dtype[Any]] | None:
    kind = values.type
    if pa.types.is_decimal128(kind) and kind.precision <= _LONG_DIGITS:
        low_words = np.frombuffer(values.buffers()[1], np.int64)[::2]
        numbers = low_words[values.offset : values.offset + len(values)]
        written = np.dtype(np.int32 if kind.precision <= _INT_DIGITS else np.int64)
    elif pa.types.is_boolean(kind):
        numbers, written = pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.dtype("?")
    elif pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        letter = "f" if pa.types.is_floating(kind) else "i"
        written = np.dtype(f"{letter}{kind.bit_width // 8}")
        plain = values.view(pa.from_numpy_dtype(written))
        numbers = pc.fill_null(plain, 0).to_numpy(zero_copy_only=False)
    else:
        return None
    wide = numbers.astype(np.float64 if written.kind == "f" else np.int64)
    seen, places = np.unique(wide[~is_null], return_inverse=True)
    codes = np.zeros(len(wide), np.int64)
    codes[~is_null] = places
    return seen, codes, written

"""One column of a table over all its files: where each file lies between its bounds.

The distinct bounds of a column are sorted once; a file keeps two places among them. A literal is
looked up in a few comparisons, and what is left of a test are two comparisons of integer arrays,
whatever the type. What a file does not say is a bound that every test passes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.catalog.bounds import comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_BELOW_ALL, _ABOVE_ALL = -1, np.iinfo(np.int32).max
_INT64 = np.iinfo(np.int64)
# A date widened to a timestamp (v3) leaves four bytes that are no microseconds.
_EIGHT_BYTES = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "time")


@dataclass(frozen=True, slots=True)
class Span:
    """Where a literal stands among the bounds; its value may be known within limits only.

    Attributes:
        below_least: bounds less than the least value it can have.
        to_least: bounds not greater than that.
        below_most: bounds less than the greatest value it can have.
        to_most: bounds not greater than that.
    """

    below_least: int
    to_least: int
    below_most: int
    to_most: int


@dataclass(frozen=True, slots=True)
class Axis:
    """A column's bounds, one element per file.

    Attributes:
        type: Iceberg's spelling of the column's type.
        keys: the distinct bounds in order: an array of numbers, or a list of bytes.
        lower: place of the lower bound among the keys; below all when unknown.
        upper: place of the upper bound; above all when unknown.
        all_null: files known to hold nothing but nulls; None: no file.
        no_null: files known to hold no null; None: no file.
        is_exact: both bounds are the one value all rows of the file have (identity partitions).
    """

    type: str
    keys: NDArray[Any] | Sequence[bytes]
    lower: NDArray[np.int32]
    upper: NDArray[np.int32]
    all_null: NDArray[np.bool_] | None = None
    no_null: NDArray[np.bool_] | None = None
    is_exact: bool = False

    def span(self, least: Any, most: Any) -> Span:
        """Where a literal between two values stands; the values are as the keys are."""
        below_least, to_least = self._place(least)
        below_most, to_most = (below_least, to_least) if most == least else self._place(most)
        return Span(below_least, to_least, below_most, to_most)

    def spread(self, number: NDArray[np.int64], is_told: NDArray[np.bool_]) -> Axis:
        """The axis of files that share these elements.

        Args:
            number: of each file its element here.
            is_told: files it holds for; of the others nothing is known.
        """

        def of_files(mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
            return None if mask is None else _or_none(mask[number] & is_told)

        return replace(
            self,
            lower=np.where(is_told, self.lower[number], np.int32(_BELOW_ALL)),
            upper=np.where(is_told, self.upper[number], np.int32(_ABOVE_ALL)),
            all_null=of_files(self.all_null),
            no_null=of_files(self.no_null),
        )

    def _place(self, value: Any) -> tuple[int, int]:
        keys = self.keys
        if not isinstance(keys, np.ndarray):
            return bisect_left(keys, value), bisect_right(keys, value)
        if keys.dtype != np.int64:
            number = float(value)
            return int(keys.searchsorted(number)), int(keys.searchsorted(number, "right"))
        floor = int(Decimal(value).to_integral_value(ROUND_FLOOR))
        if not _INT64.min <= floor <= _INT64.max:
            place = 0 if floor < 0 else len(keys)
            return place, place
        after = int(keys.searchsorted(floor, "right"))
        return (int(keys.searchsorted(floor)) if floor == value else after), after


def axis_of_bounds(
    type_name: str, lower: pa.Array, upper: pa.Array, nulls: pa.Array, values: pa.Array
) -> Axis | None:
    """The axis of a column from manifest entries.

    Args:
        type_name: the column's type.
        lower: lower bounds in Iceberg's single-value bytes, null where a file has none.
        upper: upper bounds likewise.
        nulls: counts of nulls, null where a file does not say.
        values: counts of values, nulls included.

    Returns:
        None when values of the type have no order.
    """
    if type_name.partition("(")[0] in _EIGHT_BYTES:
        lower, upper = _of_eight_bytes(lower), _of_eight_bytes(upper)
    both = comparable(pa.concat_arrays([lower.drop_null(), upper.drop_null()]), type_name)
    if both is None:
        return None
    counted, total = _counts(nulls), _counts(values)
    return Axis(
        type_name,
        *_placed(both, _is_valid(lower), _is_valid(upper)),
        _or_none((counted == total) & (counted > 0)),
        _or_none(counted == 0),
    )


def axis_of_values(
    type_name: str,
    lower: Sequence[Any],
    upper: Sequence[Any],
    *,
    all_null: NDArray[np.bool_] | None = None,
    no_null: NDArray[np.bool_] | None = None,
    is_exact: bool = False,
) -> Axis:
    """The axis of a column whose bounds are values already.

    Args:
        type_name: the column's type.
        lower: integers (days, microseconds, booleans no), floats, or bytes (UTF-8 of texts,
            `bounds.ordered_decimal` of decimals) per file; None where unknown.
        upper: upper bounds likewise.
        all_null: see `Axis`.
        no_null: see `Axis`.
        is_exact: see `Axis`.
    """
    first, last = _array(lower), _array(upper)
    both = pa.concat_arrays([first.drop_null(), last.drop_null()])
    placed = _placed(both, _is_valid(first), _is_valid(last))
    return Axis(type_name, *placed, all_null, no_null, is_exact)


def _array(values: Sequence[Any]) -> pa.Array:
    found = pa.array(values)
    if pa.types.is_floating(found.type):
        return found.cast(pa.float64())
    if pa.types.is_integer(found.type):
        return found.cast(pa.int64())
    return found.cast(pa.binary())


def _placed(
    both: pa.Array, has_lower: NDArray[np.bool_], has_upper: NDArray[np.bool_]
) -> tuple[NDArray[Any] | list[bytes], NDArray[np.int32], NDArray[np.int32]]:
    """Keys, lower places and upper places from lower bounds followed by upper ones."""
    keys, places = _ranked(both)
    count = int(has_lower.sum())
    lower = _spread(places[:count], has_lower, _BELOW_ALL)
    upper = _spread(places[count:], has_upper, _ABOVE_ALL)
    if isinstance(keys, np.ndarray) and len(keys) and np.isnan(keys[-1]):
        # A writer that took NaN for a bound has told nothing.
        keys = keys[:-1]
        lower[lower == len(keys)] = _BELOW_ALL
        upper[upper == len(keys)] = _ABOVE_ALL
    return keys, lower, upper


def _is_valid(values: pa.Array) -> NDArray[np.bool_]:
    valid: NDArray[np.bool_] = pc.is_valid(values).to_numpy(False)
    return valid


def _ranked(values: pa.Array) -> tuple[NDArray[Any] | list[bytes], NDArray[np.int32]]:
    """Distinct values in order, and the place of each."""
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        is_whole = pa.types.is_integer(values.type)
        numbers = values.to_numpy(zero_copy_only=False).astype(np.int64 if is_whole else np.float64)
        keys, places = np.unique(numbers, return_inverse=True)
        return keys, places.astype(np.int32)
    encoded = values.cast(pa.binary()).dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    order = sorted(range(len(distinct)), key=distinct.__getitem__)
    place_of = np.empty(len(distinct), np.int32)
    place_of[order] = np.arange(len(distinct), dtype=np.int32)
    return [distinct[one] for one in order], place_of[encoded.indices.to_numpy()]


def _spread(
    places: NDArray[np.int32], present: NDArray[np.bool_], missing: int
) -> NDArray[np.int32]:
    spread = np.full(len(present), missing, np.int32)
    spread[present] = places
    return spread


def _of_eight_bytes(bounds: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(pc.binary_length(bounds), 8), bounds, pa.scalar(None, pa.binary()))


def _counts(values: pa.Array) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = pc.fill_null(values.cast(pa.int64()), -1).to_numpy(False)
    return counts


def _or_none(mask: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return mask if mask.any() else None

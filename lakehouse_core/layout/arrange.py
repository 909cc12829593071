"""Rows of a sample in the order of a layout, cut into files as Spark would cut the table.

Spark splits sorted rows at bounds taken from the keys, so that rows of one key stay together; a
part that is much too large is written as several files. Both are done here as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.domain.curve import (
    SAMPLE_ROWS,
    hilbert_bits,
    hilbert_index,
    spread,
    zorder_words,
)
from lakehouse_core.layout.space import NULL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lakehouse_core.domain.layout import Layout
    from lakehouse_core.layout.space import ColumnSpace

_WIDEST = 1 << 62
# A file is closed when it is this much larger than asked for (Iceberg's write-max-file-size).
ROLL_SHARE = 1.4
_SMALLEST_REST, _LARGEST_REST = 0.75, 1.1


@dataclass(frozen=True, slots=True)
class Arranged:
    """Rows of a sample in files.

    Attributes:
        order: rows in the order of the layout.
        file: the file of each of them; grows.
        files: how many files there are.
    """

    order: NDArray[np.int64]
    file: NDArray[np.int32]
    files: int


def output_files(size: float, target: float) -> int:
    """How many files Iceberg makes of so many bytes (`SizeBasedFileRewritePlanner`)."""
    if size <= target:
        return 1
    with_rest = int(np.ceil(size / target))
    without = max(1, int(size // target))
    rest = size - without * target
    if rest > _SMALLEST_REST * target:
        return with_rest
    return without if size / without < _LARGEST_REST * target else with_rest


def arrange(
    layout: Layout,
    spaces: Mapping[str, ColumnSpace],
    partition: NDArray[np.int64],
    wanted: Sequence[int],
    most_rows: float = np.inf,
) -> Arranged:
    """Lay rows out.

    Args:
        layout: any but the present one.
        spaces: the columns it needs.
        partition: the partition of each row, numbered from 0.
        wanted: how many files each partition shall have.
        most_rows: a file is closed when it has so many rows of the sample.
    """
    key = sort_key(layout, spaces)
    order = np.lexsort((key, partition))
    ordered, groups = key[order], partition[order]
    edges = np.searchsorted(groups, np.arange(len(wanted) + 1))
    file = np.zeros(len(order), np.int32)
    used = 0
    for number, files in enumerate(wanted):
        start, end = int(edges[number]), int(edges[number + 1])
        if start == end:
            continue
        part = cut(ordered[start:end], files, most_rows)
        file[start:end] = part + used
        used += int(part[-1]) + 1
    return Arranged(order, file, used)


def sort_key(layout: Layout, spaces: Mapping[str, ColumnSpace]) -> NDArray[np.int64]:
    """A number per row that grows along the layout; equal where Spark cannot tell rows apart."""
    if layout.kind == "linear":
        return _joined([spaces[name].codes for name in layout.columns])
    own = [spaces[name] for name in layout.columns]
    if layout.kind == "zorder":
        return _zorder(own)
    curve = _hilbert(own)
    if not layout.primary:
        return curve
    return _joined([*(spaces[name].codes for name in layout.primary), _dense(curve)])


def cut(keys: NDArray[np.int64], files: int, most_rows: float = np.inf) -> NDArray[np.int32]:
    """The file of each sorted row: bounds are keys, and a key is in one part.

    A part that is too large, for it holds a key of many rows, is written as several files.
    """
    count = len(keys)
    if files <= 1 or count <= 1:
        return _rolled(np.zeros(count, np.int64), max(1.0, most_rows))
    # Behind the last row of each key; a bound is the first key that fills its share, and a new one.
    ends = np.append(np.flatnonzero(keys[1:] != keys[:-1]), count - 1) + 1
    number = np.arange(1, files)
    filled = np.searchsorted(ends, number * (count / files) - 1e-9)
    chosen = np.maximum.accumulate(filled - number) + number
    bounds = ends[chosen[chosen < len(ends) - 1]]
    part: NDArray[np.int32] = np.zeros(count, np.int32)
    part[bounds] += 1
    return _rolled(np.cumsum(part), max(1.0, most_rows))


def _rolled(part: NDArray[np.int64], most_rows: float) -> NDArray[np.int32]:
    """Parts that are too large are several files."""
    starts = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
    sizes = np.diff(np.append(starts, len(part)))
    if sizes.max() <= most_rows:
        return part.astype(np.int32)
    inside = np.arange(len(part)) - np.repeat(starts, sizes)
    within = (inside // most_rows).astype(np.int64)
    changes = np.append(False, (part[1:] != part[:-1]) | (within[1:] != within[:-1]))
    files: NDArray[np.int32] = np.cumsum(changes).astype(np.int32)
    return files


def _zorder(columns: Sequence[ColumnSpace]) -> NDArray[np.int64]:
    values = []
    for column in columns:
        if column.order_values is None:
            raise ValueError(f"Iceberg's z-order does not know the type {column.type}")
        padded = np.append(column.order_values, np.uint64(0))  # NULL is eight bytes of zero
        values.append(padded[column.codes])
    words = zorder_words(values)
    if len(words) == 1:
        return _dense(words[0])
    order = np.lexsort(words[::-1])
    ordered = [word[order] for word in words]
    is_new = np.append(False, np.any([word[1:] != word[:-1] for word in ordered], axis=0))
    key = np.empty(len(order), np.int64)
    key[order] = np.cumsum(is_new)
    return key


def _hilbert(columns: Sequence[ColumnSpace]) -> NDArray[np.int64]:
    bits = hilbert_bits(len(columns))
    ranks = []
    for column in columns:
        step = max(1, len(column.codes) // SAMPLE_ROWS)
        seen = np.unique(column.codes[::step])
        seen = seen[seen != NULL]
        places = np.searchsorted(seen, column.codes, side="right")
        found = spread(places, len(seen), bits)
        found[column.codes == NULL] = 0
        ranks.append(found)
    return hilbert_index(np.stack(ranks), bits)


def _joined(codes: Sequence[NDArray[np.int32] | NDArray[np.int64]]) -> NDArray[np.int64]:
    """One number per row that orders rows as the columns do, one after another; NULL first."""
    key = codes[0].astype(np.int64) + 1
    size = int(key.max(initial=0)) + 1
    for column in codes[1:]:
        more = column.astype(np.int64) + 1
        width = int(more.max(initial=0)) + 1
        if size * width >= _WIDEST:
            key = _dense(key)
            size = int(key.max(initial=0)) + 1
        key = key * width + more
        size *= width
    return key


def _dense(values: NDArray[np.int64] | NDArray[np.uint64]) -> NDArray[np.int64]:
    _, places = np.unique(values, return_inverse=True)
    return places.astype(np.int64)

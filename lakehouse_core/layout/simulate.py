"""What a layout would read: the sample arranged into as many files as the table would have.

Each file of the sample stands for one of the table with 1 / fraction times its rows. Its smallest
and largest rows are therefore not the extremes that the real file has: beyond the last of m rows
there is, in the mean, as much as between two neighbours (as for any sample of m). The range is
extended by the mean gap of the file's own outermost rows, in ranks of the whole sample. Where the
layout keeps neighbours together those gaps are single ranks and nothing is added; where the rows
are strewn over the column, the range grows towards the whole of it, as it does in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.catalog.estimate import FileBounds, surviving
from lakehouse_core.catalog.estimate_axis import Axis
from lakehouse_core.layout.arrange import ROLL_SHARE, arrange, output_files
from lakehouse_core.layout.encoding import rows_until_closed
from lakehouse_core.sql.scanning import tests_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lakehouse_core.domain.layout import Layout
    from lakehouse_core.layout.arrange import Arranged
    from lakehouse_core.layout.sample import Sample
    from lakehouse_core.layout.space import ColumnSpace
    from lakehouse_core.sql.condition import Condition

_GAPS = 8  # of the outermost rows, that the mean gap is taken of


@dataclass(frozen=True, slots=True)
class Replay:
    """What each of some conditions reads under a layout.

    Attributes:
        size: bytes of the files that must be read, per condition.
        files: how many they are.
        total_files: of the table.
        total_bytes: of the table.
    """

    size: NDArray[np.float64]
    files: NDArray[np.float64]
    total_files: int
    total_bytes: float


def simulate(
    layout: Layout,
    sample: Sample,
    conditions: Sequence[Condition],
    *,
    target_bytes: float,
    density: float = 1.0,
) -> Replay:
    """Lay the sample out and replay conditions.

    Args:
        layout: any but the present one.
        sample: rows.
        conditions: of the scans.
        target_bytes: how large files shall be.
        density: bytes of a row under the layout, as a share of what they are now (`encoding.py`).
    """
    wanted = [output_files(size, target_bytes) for size in sample.partition_bytes]
    packed = sample.table_bytes * density / max(1, sample.table_rows)
    most = rows_until_closed(ROLL_SHARE * target_bytes, packed, sample.plain_row_bytes)
    arranged = arrange(layout, sample.spaces, sample.partition, wanted, most * sample.fraction)
    return replay(conditions, file_bounds(sample, arranged, conditions, density))


def replay(conditions: Sequence[Condition], bounds: FileBounds) -> Replay:
    """What conditions read of files with these bounds."""
    size, files = np.zeros(len(conditions)), np.zeros(len(conditions))
    total = float(bounds.sizes.sum())
    for place, condition in enumerate(conditions):
        may = surviving(bounds, condition)
        size[place] = total if may is None else bounds.sizes[may].sum()
        files[place] = len(bounds.sizes) if may is None else np.count_nonzero(may)
    return Replay(size, files, len(bounds.sizes), total)


def file_bounds(
    sample: Sample, arranged: Arranged, conditions: Sequence[Condition], density: float = 1.0
) -> FileBounds:
    """The files that the arranged sample stands for, with bounds of the columns asked for."""
    tests = [test for condition in conditions for test in tests_of(condition)]
    null_tested = {test.column for test in tests if test.operator in ("is_null", "<=>")}
    axes = {
        name.lower(): (
            _axis(sample.spaces[name], arranged, sample.fraction, with_nulls=name in null_tested),
        )
        for name in {test.column for test in tests} & sample.spaces.keys()
    }
    sizes = np.rint(_file_bytes(arranged, sample) * density).astype(np.int64)
    rows = np.bincount(arranged.file, minlength=arranged.files)
    rows = np.rint(rows / sample.fraction).astype(np.int64)
    if sample.telling is None:
        return FileBounds(sizes, rows, axes)
    first = np.searchsorted(arranged.file, np.arange(arranged.files))
    told = sample.telling.of_files(sample.partition[arranged.order[first]])
    return FileBounds(sizes, rows, axes, told.axes, told.buckets)


def _file_bytes(arranged: Arranged, sample: Sample) -> NDArray[np.float64]:
    """A file's share of its partition's bytes is its share of the rows."""
    in_partition = np.bincount(sample.partition, minlength=len(sample.partition_bytes))
    seen = sample.partition_bytes * (in_partition > 0)
    # Partitions of which the sample has no row are as the others are.
    scale = sample.table_bytes / seen.sum() if seen.sum() else 1.0
    per_row = scale * sample.partition_bytes / np.maximum(in_partition, 1)
    weights = per_row[sample.partition[arranged.order]]
    sizes = np.bincount(arranged.file, weights=weights, minlength=arranged.files)
    return sizes.astype(np.float64)


def _axis(space: ColumnSpace, arranged: Arranged, fraction: float, *, with_nulls: bool) -> Axis:
    """Bounds of a column per file, as the real files would have them."""
    values = space.rows[arranged.order]
    is_null = space.codes[arranged.order] < 0
    known = values >= 0
    low, high = _extremes(values, arranged, fraction, known)
    nulls = np.bincount(arranged.file[is_null], minlength=arranged.files) > 0
    if with_nulls and fraction < 1 and is_null.any():
        # NULL as the smallest value of all: a range that reaches down to it has some.
        everything = np.where(is_null, 0, values.astype(np.int64) + 1)
        reach, _ = _extremes(everything, arranged, fraction, is_null | known)
        nulls |= reach <= is_null.sum() - 0.5
    lower, upper = _places(space, low, high, fraction)
    empty = ~np.isfinite(low)
    return Axis(
        space.type,
        space.keys,
        lower,
        upper,
        all_null=empty if empty.any() else None,
        no_null=~nulls if not nulls.all() else None,
    )


def _places(
    space: ColumnSpace, low: NDArray[np.float64], high: NDArray[np.float64], fraction: float
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Ranks of rows → places among the keys; no place for files without values."""
    starts = np.cumsum(space.counts)  # rank of the first row behind each value
    last = max(0, len(starts) - 1)
    some = np.isfinite(low)
    lower, upper = np.zeros(len(low), np.int32), np.full(len(low), -1, np.int32)
    if not some.any():
        return lower, upper
    first = np.searchsorted(starts, np.clip(np.ceil(low[some]), 0, None), side="right")
    final = np.searchsorted(starts, np.floor(high[some]), side="right")
    first, final = np.minimum(first, last), np.minimum(final, last)
    if fraction < 1:
        # Values that no sampled row has lie between two files, too: they count for the lower one.
        following = np.minimum(final + 1, last)
        final = np.where(space.counts[following] == 1, following, final)
    lower[some], upper[some] = space.lower[first], space.upper[final]
    return lower, upper


def _extremes(
    values: NDArray[np.int32] | NDArray[np.int64],
    arranged: Arranged,
    fraction: float,
    chosen: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest rank per file; rows of equal values are ranked as they are laid out."""
    own, file = values[chosen].astype(np.int64), arranged.file[chosen].astype(np.int64)
    count = len(own)
    lower, upper = np.full(arranged.files, np.inf), np.full(arranged.files, -np.inf)
    if not count:
        return lower, upper
    # Sorted as one number each, which is faster than sorting places.
    ranked = own * count + np.arange(count)
    ranked.sort()
    by_file = file[ranked % count] * count + np.arange(count)
    by_file.sort()
    ranks = by_file % count
    counts = np.bincount(file, minlength=arranged.files)
    ends = np.cumsum(counts)
    some = counts > 0
    first, last, size = (ends - counts)[some], ends[some] - 1, counts[some]
    back = np.minimum(_GAPS, size - 1)
    shares = np.maximum(back, 1)
    low, high = ranks[first], ranks[last]
    below = np.maximum((ranks[first + back] - low) / shares - 1, 0.0)
    above = np.maximum((high - ranks[last - back]) / shares - 1, 0.0)
    if (size > 1).any():  # a lone row tells no gap: it is taken to be like the others
        below[size == 1] = below[size > 1].mean()
        above[size == 1] = above[size > 1].mean()
    unseen = 1 - fraction
    lower[some], upper[some] = low - below * unseen, high + above * unseen
    return lower, upper

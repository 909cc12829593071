"""How much files of a partition overlap in the leading sort column: a sortedness signal.

A file meets another when their ranges of the column intersect. For each file the share of its
partition's other files that it meets; the mean over all pairs is the overlap: 0 when every file
has its own range, 1 when every file spans what the others span and no filter can skip one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.catalog.bounds import ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lakehouse_core.catalog.files import LiveFiles


def sort_overlap(files: LiveFiles, type_name: str) -> float | None:
    """The overlap of the data files; files without bounds are left out, None when all are."""
    known = pc.and_(pc.is_valid(files.lower), pc.is_valid(files.upper)).to_numpy()
    chosen = files.is_data & known
    if not chosen.any():
        return None
    mask = pa.array(chosen)
    both = ranks(
        files.lower.filter(mask).combine_chunks(),
        files.upper.filter(mask).combine_chunks(),
        type_name,
    )
    return None if both is None else mean_overlap(files.partition[chosen], *both)


def mean_overlap(
    partition: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64]
) -> float:
    """A sweep without a loop: all partitions are laid end to end on one line of ranks."""
    _, group, sizes = np.unique(partition, return_inverse=True, return_counts=True)
    width = int(max(lower.max(), upper.max())) + 1
    starts, ends = group * width + lower, group * width + upper
    begun = np.searchsorted(np.sort(starts), ends, side="right")
    over = np.searchsorted(np.sort(ends), starts, side="left")
    met = int((begun - over - 1).sum())
    pairs = int((sizes * (sizes - 1)).sum())
    return met / pairs if pairs else 0.0

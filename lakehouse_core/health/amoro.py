"""Apache Amoro's health score, for people who come from there.

Per partition, then averaged; each part rounded up as Amoro does:

    norm(a, b)  = min(a, b) / b, 0 when b is not positive
    factor      = 0 for one file or none, else norm(files, 12) * norm(bytes, 96 MiB)
    small files = 40 - factor * 40 * (1 - norm(mean file size, 96 MiB))
    equality    = 40 - factor * 40 * norm(equality-deleted rows / rows, 0.1)
    position    = 20 - factor * 20 * norm(position-deleted rows / rows, 0.2)

Amoro sums only files it would optimise. Here these are the data files up to 96 MiB, and all data
files of a partition that has deletes: which delete applies to which file is not looked up.
Snapshots, manifests, skew and sorting do not count there; our own score has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.catalog.files import EQUALITY_DELETES, POSITION_DELETES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lakehouse_core.catalog.files import LiveFiles

    Numbers = NDArray[np.float64]

_TARGET_BYTES = 128 * 2**20
_MIN_TARGET_BYTES = int(_TARGET_BYTES * 0.75)
_ENOUGH_FILES = 12
_DUPLICATE_RATIO = 0.1
PERFECT = 100


def amoro_score(files: LiveFiles) -> int:
    """The score, 0-100; a table without files is perfect."""
    is_data = files.is_data
    _, number = np.unique(files.partition, return_inverse=True)
    count = int(number.max()) + 1 if len(number) else 0
    has_data = np.bincount(number[is_data], minlength=count) > 0
    if not has_data.any():
        return PERFECT
    has_deletes = np.bincount(number[~is_data], minlength=count) > 0
    small = np.less_equal(files.sizes, _MIN_TARGET_BYTES)
    candidate = is_data & (small | has_deletes[number])

    def total(values: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Numbers:
        weights = values[chosen].astype(np.float64)
        sums = np.bincount(number[chosen], weights=weights, minlength=count).astype(np.float64)
        return sums[has_data]

    parts = _parts(
        files=total(np.ones_like(files.sizes), candidate),
        sizes=total(files.sizes, candidate),
        rows=total(files.rows, candidate),
        equality_rows=total(files.rows, np.equal(files.content, EQUALITY_DELETES)),
        position_rows=total(files.rows, np.equal(files.content, POSITION_DELETES)),
    )
    return sum(int(np.ceil(part.mean())) for part in parts)


def _parts(
    *,
    files: Numbers,
    sizes: Numbers,
    rows: Numbers,
    equality_rows: Numbers,
    position_rows: Numbers,
) -> tuple[Numbers, Numbers, Numbers]:
    factor = np.where(
        files <= 1, 0.0, _norm(files, _ENOUGH_FILES) * _norm(sizes, _MIN_TARGET_BYTES)
    )
    mean = np.floor(_ratio(sizes, files))
    equality = _norm(_norm(equality_rows, rows), _DUPLICATE_RATIO)
    position = _norm(_norm(position_rows, rows), 2 * _DUPLICATE_RATIO)
    return (
        np.ceil(40 - factor * 40 * (1 - _norm(mean, _MIN_TARGET_BYTES))),
        np.ceil(40 - factor * 40 * equality),
        np.ceil(20 - factor * 20 * position),
    )


def _norm(part: Numbers, whole: Numbers | float) -> Numbers:
    return _ratio(np.minimum(part, whole), np.broadcast_to(whole, part.shape))


def _ratio(part: Numbers, whole: Numbers) -> Numbers:
    out: Numbers = np.zeros(part.shape, np.float64)
    np.divide(part, whole, out=out, where=np.greater(whole, 0))
    return out

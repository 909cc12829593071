"""How many values a table has that its sample lacks, how frequent they are, where they fit.

Good and Turing: all unseen values together are as frequent as those that the sample has once, all
together. Chao: they are at least f1 * f1 / (2 * f2) many, where the sample has f1 values once and
f2 twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from lakehouse_core.layout.packing.arrays import Floats, Places

_FREQUENT, _FEW = 10, 50  # counts beyond are true as they are; fewer values say too little


def shares(counts: Places, room: Floats) -> tuple[Floats, Floats, Floats]:
    """Shares of the table's rows: of each seen value, of the unseen behind it; how many these are.

    Args:
        counts: rows of the sample that have each value.
        room: how many other values there may be behind each.
    """
    often = np.bincount(np.minimum(counts, _FREQUENT + 2), minlength=_FREQUENT + 3).astype(float)
    once, twice = often[1], often[2]
    unseen = once * once / (2 * twice) if twice else once * max(0.0, once - 1) / 2
    behind = _spread(room, unseen)
    seen_shares = counts.astype(np.float64)
    if not behind.sum():
        return seen_shares, behind, behind
    # A value seen c times is as frequent as (c + 1) * f(c+1) / f(c) sightings (Good, Turing).
    for times in range(1, _FREQUENT + 1):
        if min(often[times], often[times + 1]) < _FEW and times > 1:
            break
        seen_shares[counts == times] = (times + 1) * often[times + 1] / max(1.0, often[times])
    seen_shares *= (counts.sum() - once) / max(float(seen_shares.sum()), 1e-300)
    return seen_shares, behind * once / behind.sum(), behind


def room_of(seen: NDArray[Any] | pa.Array, kind: np.dtype[Any] | None) -> tuple[int, Floats]:
    """The step of whole numbers (0: others), and how many more fit between neighbours.

    Keys without gaps leave no room; times to the second, kept in microseconds, have a step.
    """
    if kind is None or kind.kind == "f" or len(seen) < 2:
        return 0, np.full(max(0, len(seen) - 1), np.inf)
    with np.errstate(over="ignore"):  # from the least number to the largest: then there is no room
        gaps = np.diff(seen)
    step = int(max(1, np.gcd.reduce(gaps)))
    return step, np.maximum(np.rint(gaps / step) - 1, 0.0)


def _spread(room: Floats, unseen: float) -> Floats:
    """So many values in gaps: in all alike, as far as there is room."""
    low, high = 0.0, unseen
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(room, middle).sum() < unseen else (low, middle)
    # Rounded where they add up, so that gaps with less than one value get their turn.
    whole: Floats = np.diff(np.floor(np.cumsum(np.minimum(room, high)) + 0.5), prepend=0.0)
    return whole

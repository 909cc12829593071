"""A column of the sample on its axis, and the path of made rows in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.layout.packing.axis import Axis, axis_of
from lakehouse_core.layout.packing.neighbours import is_strewn
from lakehouse_core.layout.packing.read import read

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.layout.packing.arrays import Floats, Places

_NEAR = 16  # sampled rows that a row is made of


@dataclass(frozen=True, slots=True)
class Column:
    """Where the rows of the sample are on the axis.

    The cell of a value is it and half of the unseen ones on either side: what its sampled rows
    stand for.

    Attributes:
        codes: the value of each row, as a place among the distinct ones.
        low: where the cell of each value begins.
        width: of the cell, per row that has the value.
        points: of each row, anywhere in its cell.
    """

    axis: Axis
    codes: Places
    low: Floats
    width: Floats
    points: Floats

    def sorted(self, order: Places, at: Floats, sign: int) -> Floats:
        """Path when the order is by this column, or by few others before it.

        Args:
            order: of the sample's rows.
            at: where made rows stand among them.
            sign: 1 where the column rises, -1 where it falls.
        """
        # Rows of one value stand one behind the other in its cell, so that paths go on in it.
        codes = self.codes[order][::sign]
        by_code = np.argsort(codes, kind="stable")
        counts = np.bincount(codes, minlength=len(self.low))
        rank = np.empty(len(codes), np.int64)
        rank[by_code] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
        points = (self.low[codes] + self.width[codes] * (rank + 0.5))[::sign]
        path: Floats = np.interp(at, np.arange(len(points)), points)
        return path

    def near(self, order: Places, at: Floats, rng: np.random.Generator) -> Floats | None:
        """Path when each row is like the sampled ones around it; None: like any."""
        points, count = self.points[order], len(order)
        if is_strewn(points):
            return None
        slots, own = np.unique(at.astype(np.int64), return_inverse=True)
        first = np.clip(slots - _NEAR // 2, 0, count - _NEAR)
        around = np.sort(points[first[:, None] + np.arange(_NEAR)], axis=1)
        # A made row is as far from one of them as to the middle of its way to the next.
        gaps = np.diff(around, axis=1) / 2
        low = around - np.concatenate([gaps[:, :1], gaps], axis=1)
        high = around + np.concatenate([gaps, gaps[:, -1:]], axis=1)
        drawn = own * _NEAR + rng.integers(0, _NEAR, len(at))
        path = low.ravel()[drawn] + (high - low).ravel()[drawn] * rng.random(len(at))
        within: Floats = np.clip(1 - np.abs(1 - np.abs(path)), 0, 1)  # mirrored at 0 and 1
        return within


def column_of(values: pa.ChunkedArray) -> Column | None:
    """A column on its axis; None: its values cannot be made up."""
    found = read(values)
    if found is None:
        return None
    axis, codes = axis_of(found), found.codes
    half = np.diff(axis.edges)[1::2] / 2
    low = axis.edges[:-1:2] - np.append(0.0, half[:-1])
    width = axis.edges[1::2] + half - low
    points = low[codes] + width[codes] * np.random.default_rng(2).random(len(codes))
    per_row = width / np.maximum(np.bincount(codes, minlength=len(low)), 1)
    return Column(axis, codes, low, per_row, points)

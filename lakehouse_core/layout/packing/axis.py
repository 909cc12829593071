"""The axis of a column: its values from 0 to 1, seen ones and between them unseen ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakehouse_core.layout.packing.texts import texts_at
from lakehouse_core.layout.packing.unseen import room_of, shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lakehouse_core.layout.packing.arrays import Flags, Floats, Places
    from lakehouse_core.layout.packing.read import Read

_MOST_POINTS = 200_000


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of a column, each as wide as its share of the table's rows.

    Attributes:
        seen: distinct values in order.
        type: what numbers are written as; None: texts.
        edges: where each begins, then where the unseen ones behind it begin, and so on.
        unseen: how many are behind each; they are all alike in width.
        step: whole numbers are multiples of it from their neighbours.
        nulls: 1 where NULL comes first; it is not among the seen.
    """

    seen: NDArray[Any] | pa.Array
    type: np.dtype[Any] | None
    edges: Floats
    unseen: Floats
    step: int
    nulls: int

    def places(self, path: Floats) -> tuple[Places, Places]:
        """The seen value at or before each point, and which of the unseen behind it; 0: itself."""
        found = np.searchsorted(self.edges, path, side="right") - 1
        found = np.clip(found, 0, len(self.edges) - 2)
        place = found >> 1
        start, end = self.edges[found], self.edges[found + 1]
        number = (path - start) / np.maximum(end - start, 1e-300) * self.unseen[place]
        return place, np.where(found & 1, number.astype(np.int64) + 1, 0)

    def unseen_points(self) -> Floats:
        """Points of the unseen values, each once, in no order; without such, of any values."""
        rng = np.random.default_rng(6)
        count = int(min(self.unseen.sum(), _MOST_POINTS))
        if not count:
            return rng.random(_MOST_POINTS)
        ends = np.cumsum(self.unseen)
        chosen = rng.permutation(count) * (ends[-1] / count) + 0.5
        place = np.searchsorted(ends, chosen)
        part = 1 - (ends[place] - chosen) / self.unseen[place]
        points: Floats = self.edges[2 * place + 1] + np.diff(self.edges)[1::2][place] * part
        return points

    def starts(self, path: Floats) -> Flags:
        """Which points begin a run of equal values."""
        place, number = self.places(path)
        changes = (place[1:] != place[:-1]) | (number[1:] != number[:-1])
        return np.append(True, changes)

    def values(self, path: Floats) -> pa.Array:
        """What is at the points."""
        place, number = self.places(path)
        is_null = place < self.nulls
        following = np.minimum(place + 1 - self.nulls, len(self.seen) - 1)
        behind, place = self.unseen[place], np.maximum(place - self.nulls, 0)
        if not len(self.seen):
            return pa.nulls(len(path), pa.int32())
        if self.type is None:
            return texts_at(self.seen, place, number, is_null)
        values = self.seen[place]
        if number.any():
            part = number / (behind + 1)
            with np.errstate(invalid="ignore"):  # nothing is between infinite ones
                between = (self.seen[following] - values) * part
                if self.step:
                    between = np.rint(between / self.step) * self.step
                values = np.where(number > 0, values + between.astype(values.dtype), values)
        return pa.array(values.astype(self.type), mask=is_null)


def axis_of(column: Read) -> Axis:
    """The axis of a column of the sample."""
    seen, nulls = column.seen, column.nulls
    counts = np.bincount(column.codes, minlength=len(seen) + nulls)
    step, room = room_of(seen, column.type)
    # Nothing is behind NULL, nor behind the last.
    room = np.concatenate([np.zeros(nulls), room, np.zeros(1)])[: len(counts)]
    seen_shares, unseen_shares, unseen = shares(counts, room)
    edges = np.append(0.0, np.cumsum(np.stack([seen_shares, unseen_shares], axis=1).ravel()))
    return Axis(seen, column.type, edges / edges[-1], unseen, step, nulls)

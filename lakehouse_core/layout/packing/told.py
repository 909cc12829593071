"""Columns that others tell, as a customer's number tells the name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.layout.packing.neighbours import LEAST_PAIRS, is_strewn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.layout.packing.arrays import Flags, Floats, Places
    from lakehouse_core.layout.packing.axis import Axis
    from lakehouse_core.layout.packing.column import Column

_TELLS = 0.95  # of the rows of a value: another column has one value, too


@dataclass(frozen=True, slots=True)
class Told:
    """A column that another tells.

    Attributes:
        number: of the column.
        by: number of the other.
        is_safe: the other has more values, so nothing is told in a circle.
        points: of this column, for each value that the other has in the sample.
        unseen: of this column, for values that the other does not have in the sample.
    """

    number: int
    by: int
    is_safe: bool
    points: Floats
    unseen: Floats

    def path(self, axis: Axis, along: Floats) -> Floats:
        """Path of the told column.

        Args:
            axis: of the other.
            along: the other's path.
        """
        place, number = axis.places(along)
        before = np.cumsum(axis.unseen) - axis.unseen
        other = (before[place] + number).astype(np.int64) % len(self.unseen)
        return np.where(number > 0, self.unseen[other], self.points[place])


def told_columns(columns: Sequence[Column]) -> list[Told]:
    """All of them in the order in which they can be told, those with most values first.

    A column may be told by many: the one with fewest values, which knows its runs best, comes last.
    """
    ranked = sorted(range(len(columns)), key=lambda one: -len(columns[one].low))
    found = []
    for rank, by in enumerate(ranked):
        order = np.argsort(columns[by].codes, kind="stable")
        is_tied = np.diff(columns[by].codes[order]) == 0
        firsts = order[np.append(True, ~is_tied)]
        for number in ranked:
            if number == by or not _is_told(columns[number].codes[order], is_tied):
                continue
            # What goes along with the other's order needs no telling: it is near its neighbours.
            points = columns[number].points[firsts]
            if is_strewn(points):
                unseen = columns[number].axis.unseen_points()
                found.append(Told(number, by, ranked.index(number) > rank, points, unseen))
    return sorted(found, key=lambda one: ranked.index(one.number))


def _is_told(codes: Places, is_tied: Flags) -> bool:
    """Whether rows that have one value of the other column have one here, but for few.

    Args:
        codes: in the other column's order.
        is_tied: which rows have the other column's value of the row before.
    """
    shares = np.bincount(codes) / len(codes)
    unlike_by_chance = int(np.count_nonzero(is_tied)) * (1 - float(np.square(shares).sum()))
    unlike = int(np.count_nonzero(np.diff(codes)[is_tied]))
    return unlike_by_chance >= LEAST_PAIRS and unlike < (1 - _TELLS) * unlike_by_chance

"""The paths of all columns under an order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.layout.packing.neighbours import LEAST_PAIRS, RISES, direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.layout.packing.arrays import Floats, Places
    from lakehouse_core.layout.packing.column import Column
    from lakehouse_core.layout.packing.told import Told

_APART = 16  # rows that have nothing to do with each other but that they are of one region
_PASSED = 2  # values, between neighbours


@dataclass(frozen=True, slots=True)
class Paths:
    """Finds the points of made rows, column by column.

    Attributes:
        columns: of the sample.
        told: those of them that others tell.
        at: where made rows stand among the sampled ones.
    """

    columns: Sequence[Column]
    told: Sequence[Told]
    at: Floats

    def under(self, order: Places) -> list[Floats | None]:
        """A path for each column; None: the order has nothing to do with it.

        Args:
            order: of the sample's rows.
        """
        rng = np.random.default_rng(1)
        paths: list[Floats | None] = []
        ties: dict[int, int] = {}  # neighbours that are alike, in columns that the order is by
        for number, column in enumerate(self.columns):
            steps = np.diff(column.codes[order])
            sign = direction(steps)
            if sign:
                ties[number] = len(steps) - int(np.count_nonzero(steps))
                paths.append(column.sorted(order, self.at, sign))
            else:
                paths.append(column.near(order, self.at, rng))
        if ties:
            self._follow(max(ties, key=ties.__getitem__), ties, order, paths)
        for by in {one.by for one in self.told} & ties.keys():
            self._pass_over(by, order, paths)
        for one in self.told:
            along = paths[one.by]
            if along is not None and one.number not in ties and (one.by in ties or one.is_safe):
                paths[one.number] = one.path(self.columns[one.by].axis, along)
        return paths

    def _follow(
        self, lead: int, ties: dict[int, int], order: Places, paths: list[Floats | None]
    ) -> None:
        """Where the first column of an order has one value, others stay, or rise as well.

        So the second column of a linear order rises in runs that are too short for the sample, and
        a customer's rows mostly have one address.
        """
        keys, along = self.columns[lead].codes[order], paths[lead]
        tied = np.flatnonzero(keys[1:] == keys[:-1])
        apart = np.flatnonzero(keys[_APART:] != keys[:-_APART])
        if along is None or min(len(tied), len(apart)) < LEAST_PAIRS:
            return
        starts = self.columns[lead].axis.starts(along)
        run = np.cumsum(starts) - 1
        rng = np.random.default_rng(5)
        for number, path in enumerate(paths):
            if path is None or number in ties:
                continue
            codes = self.columns[number].codes[order]
            steps = codes[tied + 1] - codes[tied]
            alike = float((steps == 0).mean())
            chance = float((codes[apart] == codes[apart + _APART]).mean())
            # Two rows are alike when both stay at what their run has, or by chance.
            staying = math.sqrt(max(0.0, alike - chance) / max(1 - chance, 1e-9))
            stayed = np.where(rng.random(len(path)) < staying, path[starts][run], path)
            rises = direction(steps) > 0
            paths[number] = stayed[np.lexsort((stayed, run))] if rises else stayed

    def _pass_over(self, number: int, order: Places, paths: list[Floats | None]) -> None:
        """Leave out values that stand elsewhere, where what they tell is sorted as well.

        By segment, then customer: customers of one segment are next to each other, so the sample
        passes over those of other segments, and a path must, too. Not where a value's rows are
        strewn: by day, then order, each day begins with the first orders again.
        """
        codes, path = self.columns[number].codes, paths[number]
        steps = np.diff(codes[order])
        repeated = len(codes) - np.count_nonzero(np.bincount(codes))
        if 2 * np.count_nonzero(steps == 0) < repeated:
            return
        told = [self.columns[one.number].codes for one in self.told if one.by == number]
        changes = [np.count_nonzero(np.diff(one[order])[steps != 0]) for one in told]
        passed = round(float(steps[steps > 0].mean())) if (steps > 0).any() else 1
        if path is None or passed < _PASSED or min(changes) > (1 - RISES) * (steps != 0).sum():
            return
        starts = self.columns[number].axis.starts(path)
        run = np.cumsum(starts) - 1
        paths[number] = path[np.flatnonzero(starts)[run // passed * passed]]

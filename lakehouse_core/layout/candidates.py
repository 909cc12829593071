"""Which layouts are worth trying: a search that goes on only where it still gains.

1. Columns by how much they could spare at best: the cost of the scans that test them, times the
   share of rows that the tests rule out. The first few are kept.
2. Each alone, as a linear order.
3. Linear orders grow from the best beginnings, while a further column still gains.
4. Curves through pairs of the kept columns; the best pairs grow to three and four.
5. A column of few values first, then a curve through the best pair of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.catalog.estimate import FileBounds, surviving
from lakehouse_core.catalog.estimate_axis import Axis
from lakehouse_core.domain.layout import MOST_COLUMNS, Layout, LayoutKind
from lakehouse_core.layout.workload import columns_tested
from lakehouse_core.sql.condition import ColumnTest, Either, Every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from lakehouse_core.layout.sample import Sample
    from lakehouse_core.layout.space import ColumnSpace
    from lakehouse_core.sql.condition import Condition

KEPT_COLUMNS = 6
CURVE_COLUMNS = 5
BEAM = 2
_GAIN = 0.99  # a further column must bring at least one percent
_FEW_VALUES = 64


@dataclass(frozen=True, slots=True)
class ColumnWorth:
    """How much a column could spare at best.

    Attributes:
        cost_share: of the table's scan cost, by scans that test it.
        spared_share: of that cost, if only rows were read that fulfil the tests on it.
        distinct: values in the sample.
    """

    column: str
    cost_share: float
    spared_share: float
    distinct: int

    @property
    def worth(self) -> float:
        """What the order is by."""
        return self.cost_share * self.spared_share


@dataclass(frozen=True, slots=True)
class Tried:
    """A layout, what it costs, and why it was tried."""

    layout: Layout
    cost: float
    why: str


def column_worths(
    sample: Sample, conditions: Sequence[Condition], weights: NDArray[np.float64]
) -> list[ColumnWorth]:
    """Columns that could spare something, the best first."""
    total = float(weights.sum()) or 1.0
    tested: dict[str, float] = {}
    spared: dict[str, float] = {}
    for condition, weight in zip(conditions, weights.tolist(), strict=True):
        for column in set(columns_tested(condition)) & sample.spaces.keys():
            tested[column] = tested.get(column, 0.0) + weight
            left = _left(condition, column, sample.spaces[column])
            spared[column] = spared.get(column, 0.0) + weight * (1 - float(left))
    found = [
        ColumnWorth(
            column,
            tested[column] / total,
            spared[column] / tested[column] if tested[column] else 0.0,
            sample.spaces[column].distinct,
        )
        for column in tested
    ]
    return sorted(found, key=lambda one: (-one.worth, one.column))


def search(
    worths: Sequence[ColumnWorth],
    spaces: Mapping[str, ColumnSpace],
    cost_of: Callable[[Layout], float],
    *,
    curves: Sequence[LayoutKind] = ("zorder", "hilbert"),
) -> list[Tried]:
    """Layouts that were tried, the cheapest first.

    Args:
        worths: the columns, the best first.
        spaces: the columns of the sample.
        cost_of: what the workload costs under a layout.
        curves: kinds of curves that can be carried out.
    """
    names = [one.column for one in worths if one.worth > 0][:KEPT_COLUMNS]
    tried: dict[Layout, Tried] = {}

    def attempt(layout: Layout, why: str) -> float:
        if layout not in tried:
            tried[layout] = Tried(layout, cost_of(layout), why)
        return tried[layout].cost

    for name in names:
        attempt(Layout("linear", (name,)), f"{name} is filtered on")
    _grow_linear(names, attempt)
    for kind in curves:
        known = [name for name in names if can_curve(kind, spaces[name])][:CURVE_COLUMNS]
        best = _grow_curve(kind, known, attempt)
        if kind == "hilbert" and best is not None:
            _with_primary(best, names, spaces, attempt)
    return sorted(
        tried.values(), key=lambda one: (one.cost, one.layout.complexity, str(one.layout))
    )


def can_curve(kind: LayoutKind, space: ColumnSpace) -> bool:
    """Whether whoever carries out the curve knows the type of a column."""
    if kind == "zorder":
        return space.order_values is not None
    return not space.type.startswith(("uuid", "fixed", "binary", "time(")) and space.type != "time"


def _grow_linear(names: Sequence[str], attempt: Callable[[Layout, str], float]) -> None:
    def cost(columns: tuple[str, ...]) -> float:
        shown = " and ".join(columns[-2:]) if len(columns) > 1 else columns[0]
        return attempt(Layout("linear", columns), f"after {columns[0]}, {shown} are ordered")

    alone: list[tuple[str, ...]] = [(name,) for name in names]
    starts = sorted(alone, key=cost)[: BEAM + 1]
    for _ in range(MOST_COLUMNS - 1):
        longer: list[tuple[str, ...]] = []
        for columns in starts:
            mine = cost(columns)
            longer += [
                (*columns, name)
                for name in names
                if name not in columns and cost((*columns, name)) < mine * _GAIN
            ]
        starts = sorted(longer, key=cost)[:BEAM]
        if not starts:
            return


def _grow_curve(
    kind: LayoutKind, names: Sequence[str], attempt: Callable[[Layout, str], float]
) -> tuple[str, ...] | None:
    def cost(columns: tuple[str, ...]) -> float:
        return attempt(Layout(kind, columns), f"{', '.join(columns)} are filtered on alike")

    pairs: list[tuple[str, ...]] = list(combinations(names, 2))
    best = sorted(pairs, key=cost)[:BEAM]
    if not best:
        return None
    pair = best[0]
    for _ in range(MOST_COLUMNS - 2):
        longer = []
        for columns in best:
            mine = cost(columns)
            for name in names:
                grown = tuple(sorted({*columns, name}, key=names.index))
                if name not in columns and cost(grown) < mine * _GAIN:
                    longer.append(grown)
        best = sorted(dict.fromkeys(longer), key=cost)[:BEAM]
        if not best:
            break
    return pair


def _with_primary(
    pair: tuple[str, ...],
    names: Sequence[str],
    spaces: Mapping[str, ColumnSpace],
    attempt: Callable[[Layout, str], float],
) -> None:
    for name in names:
        if spaces[name].distinct > _FEW_VALUES:
            continue
        others = tuple(one for one in (*pair, *names) if one != name)
        curve = tuple(dict.fromkeys(others))[:2]
        if len(curve) == 2 and all(can_curve("hilbert", spaces[one]) for one in curve):
            attempt(Layout("hilbert", curve, (name,)), f"{name} has few values")


def _left(condition: Condition, column: str, space: ColumnSpace) -> float:
    """The share of rows that the tests on one column leave, were each row a file."""
    only = _only(condition, column)
    has_nulls = space.nulls > 0
    values = len(space.counts) + has_nulls
    counts = np.append(space.counts, space.nulls) if has_nulls else space.counts
    lower = np.append(space.lower, 0).astype(np.int32) if has_nulls else space.lower
    upper = np.append(space.upper, -1).astype(np.int32) if has_nulls else space.upper
    nulls = np.zeros(values, np.bool_)
    if has_nulls:
        nulls[-1] = True
    axis = Axis(space.type, space.keys, lower, upper, nulls if has_nulls else None, ~nulls)
    bounds = FileBounds(counts, counts, {column: (axis,)})
    may = surviving(bounds, only)
    return 1.0 if may is None or not counts.sum() else float(counts[may].sum() / counts.sum())


def _only(condition: Condition, column: str) -> Condition:
    """What a condition demands of one column."""
    if isinstance(condition, ColumnTest):
        return condition if condition.column == column else Every()
    parts = tuple(_only(part, column) for part in condition.parts)
    if isinstance(condition, Either):
        return Every() if Every() in parts else Either(parts)
    return Every(tuple(part for part in parts if part != Every()))


def exhaustive(names: Sequence[str], spaces: Mapping[str, ColumnSpace]) -> Iterator[Layout]:
    """Every single order and every curve through two or three columns: what regret is against."""
    for name in names:
        yield Layout("linear", (name,))
    kinds: tuple[LayoutKind, ...] = ("zorder", "hilbert")
    for kind in kinds:
        known = [name for name in names if can_curve(kind, spaces[name])]
        for size in (2, 3):
            for columns in combinations(known, size):
                yield Layout(kind, columns)

"""What the runs of a statement's own template say about the engines.

Runs that scanned about as much count more: the same template over a day and over a year are two
different statements. The answer is a difference of logarithms to the default engine and how many
runs it rests on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Matrix = Any  # NDArray[np.float64]

MOST_RUNS = 256  # of a template that are looked at; the newest
_ROBUST_FROM = 5
_LEAST_SPREAD = np.log(1.5)
_NO_RUN = 1e-6


@dataclass(frozen=True, slots=True)
class LocalEvidence:
    """Differences to the default engine, and the runs behind each.

    Attributes:
        difference: mean log(engine) - log(default) per engine; 0 where nothing is known.
        runs: effective number of runs that both sides rest on.
    """

    difference: Matrix
    runs: Matrix


@dataclass(frozen=True, slots=True)
class TemplateRuns:
    """The runs of one template, oldest first; made once and asked often.

    Attributes:
        values: logarithms, run x engine; 0 where the engine did not run it.
        known: 1 where it did.
        size: log2 of the bytes scanned; NaN where unknown.
        weight: how much a run counts; less when it is old.
        slope: what a doubling of the tables' wear adds, run x engine; None: nothing.
    """

    values: Matrix
    known: Matrix
    size: NDArray[np.float64]
    weight: NDArray[np.float64]
    slope: Matrix | None = None
    counts: tuple[float, ...] = field(init=False)  # runs per engine
    _stacked: Matrix = field(init=False, repr=False)
    _unsized: NDArray[np.bool_] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lay out once what every decision asks for."""
        parts = [self.known, self.values, *([] if self.slope is None else [self.slope])]
        unsized = ~np.isfinite(self.size)
        object.__setattr__(self, "counts", tuple(self.known.sum(axis=0).tolist()))
        object.__setattr__(self, "_stacked", np.hstack(parts))
        object.__setattr__(self, "_unsized", unsized if unsized.any() else None)

    @classmethod
    def of(
        cls,
        logs: Matrix,
        size: NDArray[np.float64],
        weight: NDArray[np.float64],
        slope: Matrix | None = None,
    ) -> TemplateRuns:
        """Runs from logarithms that are NaN where unknown; single ones far out are pulled in."""
        values, known = _robust(logs)
        is_steep = slope is not None and bool(slope.any())
        return cls(values, known, size, weight, slope * known if is_steep else None)

    def evidence(
        self, default: int, size: float, width: float, wear: float | None = None
    ) -> tuple[list[float], list[float]]:
        """What the runs say for a statement that scans 2^size bytes: differences, and runs.

        The same as `LocalEvidence` of one row. Of a handful of engines plain numbers are told
        many times as fast as arrays, and every decision asks.

        Args:
            default: column of the default engine.
            size: NaN when unknown: then all runs count alike.
            width: in doublings of the bytes, how far runs count.
            wear: of the tables as they are now; None: not known.
        """
        near = self.weight
        if math.isfinite(width) and math.isfinite(size):
            apart = (self.size - size) * (1.0 / width)
            close = np.exp(apart * apart * -0.5)
            if self._unsized is not None:
                close[self._unsized] = 1.0
            near = near * close
        sums = (near @ self._stacked).tolist()
        count = len(self.counts)
        runs, totals = sums[:count], sums[count : 2 * count]
        if self.slope is not None and wear:
            totals = [one + wear * of for one, of in zip(totals, sums[2 * count :], strict=True)]
        base = runs[default]
        if base <= _NO_RUN:
            return [0.0] * count, [0.0] * count
        usual = totals[default] / base
        return (
            [one / n - usual if n > _NO_RUN else 0.0 for one, n in zip(totals, runs, strict=True)],
            [2.0 / (1.0 / n + 1.0 / base) if n > _NO_RUN else 0.0 for n in runs],
        )


def _nearness(sizes: NDArray[np.float64], wanted: NDArray[np.float64], width: float) -> Matrix:
    """Wanted x run; 1 where a size is not known."""
    if not np.isfinite(width):
        return np.ones((len(wanted), len(sizes)))
    apart = (wanted[:, None] - sizes[None, :]) / width
    return np.where(np.isfinite(apart), np.exp(-0.5 * np.square(apart)), 1.0)


def _robust(logs: Matrix) -> tuple[Matrix, Matrix]:
    """Values and which of them are known."""
    known = np.isfinite(logs)
    return np.where(known, _winsorised(logs, known), 0.0), known.astype(np.float64)


def _evidence(values: Matrix, known: Matrix, weights: Matrix, default: int) -> LocalEvidence:
    """Weighted means over the runs for every row of weights."""
    runs = weights @ known
    mean = (weights @ values) / np.maximum(runs, 1e-12)
    base = runs[:, default : default + 1]
    both = 2.0 / (1.0 / np.maximum(runs, 1e-12) + 1.0 / np.maximum(base, 1e-12))
    has = (runs > _NO_RUN) & (base > _NO_RUN)
    difference = np.where(has, mean - mean[:, default : default + 1], 0.0)
    return LocalEvidence(difference, np.where(has, both, 0.0))


def _winsorised(logs: Matrix, known: Any) -> Matrix:
    """Pull single runs in that lie far from the others on their engine."""
    if len(logs) < _ROBUST_FROM:
        return logs
    safe = np.where(known.any(axis=0), logs, 0.0)
    middle = np.nanmedian(safe, axis=0)
    spread = np.maximum(np.nanmedian(np.abs(safe - middle), axis=0) * 1.4826, _LEAST_SPREAD)
    enough = known.sum(axis=0) >= _ROBUST_FROM
    pulled = np.clip(logs, middle - 4 * spread, middle + 4 * spread)
    return np.where(enough, pulled, logs)


def out_of_fold(
    template: NDArray[np.int64],
    logs: Matrix,
    size: NDArray[np.float64],
    fold: NDArray[np.int64],
    *,
    default: int,
    width: float,
) -> LocalEvidence:
    """For each row what the runs of its template in the other folds say."""
    difference = np.zeros_like(logs)
    runs = np.zeros_like(logs)
    order = np.argsort(template, kind="stable")
    edges = np.flatnonzero(np.diff(template[order], prepend=-1))
    for start, end in zip(edges, [*edges[1:], len(order)], strict=True):
        rows = order[start:end]
        if end - start < 2:
            continue
        shown = rows[-MOST_RUNS:]
        other = fold[rows][:, None] != fold[shown][None, :]
        weights = _nearness(size[shown], size[rows], width) * other
        found = _evidence(*_robust(logs[shown]), weights, default)
        difference[rows], runs[rows] = found.difference, found.runs
    return LocalEvidence(difference, runs)

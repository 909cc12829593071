"""What the runs of a statement's own template say about the engines.

Runs that scanned about as much count more: the same template over a day and over a year are two
different statements. The answer is a difference of logarithms to the default engine and how many
runs it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Matrix = Any  # NDArray[np.float64]

MOST_RUNS = 256  # of a template that are looked at; the newest
_ROBUST_FROM = 5
_LEAST_SPREAD = np.log(1.5)


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
    counts: NDArray[np.float64] = field(init=False)  # runs per engine

    def __post_init__(self) -> None:
        """Count once: every decision asks for it."""
        object.__setattr__(self, "counts", self.known.sum(axis=0))

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
    ) -> LocalEvidence:
        """What the runs say for a statement that scans 2^size bytes.

        Args:
            default: column of the default engine.
            size: NaN when unknown: then all runs count alike.
            width: in doublings of the bytes, how far runs count.
            wear: of the tables as they are now; None: not known.
        """
        near = self.weight
        if np.isfinite(width) and np.isfinite(size):
            near = near * _nearness(self.size, np.array([size]), width)[0]
        values = self.values
        if self.slope is not None and wear:
            values = values + self.slope * wear
        return _evidence(values, self.known, near[None, :], default)


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
    has = (runs > 1e-6) & (base > 1e-6)
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

"""Runs of statements on engines as one matrix, cleaned for learning.

A row is a statement, a column an engine, a cell what the run cost (seconds or money) or unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.routing.predict_forest import fit_ridge

if TYPE_CHECKING:
    from numpy.typing import NDArray

Matrix = Any  # NDArray[np.float64]

_ABSURD = np.log(1_000.0)  # against all that is known of the statement and the engine
_ABSURD_HERE = np.log(20.0)  # against other runs of the same template on the same engine
_PEERS = 4
_ROUNDS = 12
_LEAST_PAIRED = 30


@dataclass(frozen=True, slots=True)
class History:
    """What was run.

    Attributes:
        engines: names of the columns.
        template: number of each row's template.
        matrix: feature vectors.
        size: log2 of the bytes scanned; NaN where unknown.
        values: what each run cost; NaN: not known.
    """

    engines: tuple[str, ...]
    template: NDArray[np.int64]
    matrix: Matrix
    size: NDArray[np.float64]
    values: Matrix

    def rows(self, chosen: NDArray[Any]) -> History:
        """Some of the rows."""
        return History(
            self.engines,
            self.template[chosen],
            self.matrix[chosen],
            self.size[chosen],
            self.values[chosen],
        )


@dataclass(frozen=True, slots=True)
class Logs:
    """The logarithms of a history's values.

    Attributes:
        known: absurd ones pulled in; NaN where there is no run.
        filled: what is not known is guessed from the row, the engine and the template.
    """

    known: Matrix
    filled: Matrix


def logs_of(history: History) -> Logs:
    """Logarithms with gaps filled and absurd timings pulled in."""
    values = history.values
    positive = values[np.isfinite(values) & (values > 0)]
    floor = float(positive.min()) / 2 if len(positive) else 1e-6
    with np.errstate(invalid="ignore"):
        known = np.log(np.maximum(values, floor))
    expected = _expected(known, history)
    known = np.minimum(known, expected + _ABSURD)
    known = _beside_peers(known, history.template)
    expected = _expected(known, history)
    return Logs(known, np.where(np.isfinite(known), known, expected))


def _expected(known: Matrix, history: History) -> Matrix:
    """Row effect + engine effect + what a template has in particular with an engine."""
    template = history.template
    engine, row = np.zeros(known.shape[1]), np.zeros(len(known))
    for _ in range(_ROUNDS):
        row = _median(known - engine, axis=1)
        engine = _median(known - row[:, None], axis=0)
    alone = np.isfinite(known).sum(axis=1) < 2
    if alone.any():
        engine, row = _without_pairs(known, history, engine, row, alone)
    special = np.zeros_like(known)
    for one in range(known.shape[1]):
        rest = known[:, one] - engine[one] - row
        special[:, one] = _per_template(rest, template, np.isfinite(rest))
    row = _median(known - engine - special, axis=1)
    return row[:, None] + engine + special


def _without_pairs(
    known: Matrix,
    history: History,
    engine: NDArray[np.float64],
    row: NDArray[np.float64],
    alone: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Effects where statements ran on one engine: the row is told by its features and template."""
    everything = np.ones(len(row))
    paired = len(alone) - int(alone.sum())
    for _ in range(2):
        level = fit_ridge(history.matrix, row[:, None], everything).predict(history.matrix)[:, 0]
        level = level + _per_template(row - level, history.template, np.isfinite(row))
        row = np.where(alone, level, row)
        if paired < _LEAST_PAIRED:
            engine = _median(known - row[:, None], axis=0)
    return engine, row


def _per_template(
    values: NDArray[np.float64], template: NDArray[np.int64], present: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Mean of each row's template, drawn towards zero as if there were one more run."""
    size = int(template.max()) + 1
    clipped = np.clip(values[present], -_ABSURD, _ABSURD)
    total = np.bincount(template[present], weights=clipped, minlength=size)
    count = np.bincount(template[present], minlength=size)
    return np.asarray((total / (count + 1.0))[template])


def _median(values: Matrix, axis: int) -> NDArray[np.float64]:
    empty = ~np.isfinite(values).any(axis=axis)
    safe = np.where(np.expand_dims(empty, axis), 0.0, values)
    return np.asarray(np.nanmedian(safe, axis=axis))


def _beside_peers(known: Matrix, template: NDArray[np.int64]) -> Matrix:
    """Pull in what is far above every other run of its template on its engine."""
    found = known.copy()
    order = np.argsort(template, kind="stable")
    edges = np.flatnonzero(np.diff(template[order], prepend=-1))
    for start, end in zip(edges, [*edges[1:], len(order)], strict=True):
        if end - start <= _PEERS:
            continue
        rows = order[start:end]
        block = known[rows]
        count = np.isfinite(block).sum(axis=0)
        middle = _median(block, axis=0)
        spread = _median(np.abs(block - middle), axis=0) * 1.4826
        limit = middle + np.maximum(6 * spread, _ABSURD_HERE)
        found[rows] = np.where((count > _PEERS) & (block > limit), limit, block)
    return found

"""Forests and ridge regressions that predict how engines compare on a statement.

scikit-learn grows the trees; they are then laid out in plain arrays, so that one statement is
predicted in some hundred microseconds, a model can be stored without pickling, and nothing but
numpy is needed to use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Matrix = Any  # NDArray[np.float64]; rows are statements

_TREES = 80
_LEAF_ROWS = 3
_DEPTH = 12
_PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees of several targets in flat arrays.

    Attributes:
        roots: first node of each tree.
        feature: place of the vector a node asks about; a leaf asks about place 0.
        threshold: goes left when not greater; infinite at a leaf.
        next: of each node the two to go on with, left and right; a leaf goes on with itself.
        value: what a leaf predicts for each target.
        depth: steps from a root to the farthest leaf.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    next: NDArray[np.int64]
    value: NDArray[np.float64]
    depth: int

    def predict(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean over the trees of each target, for one statement."""
        node = self.roots
        for _ in range(self.depth):
            goes_right = vector.take(self.feature.take(node)) > self.threshold.take(node)
            node = self.next.take(node * 2 + goes_right)
        return np.asarray(self.value.take(node, axis=0).mean(axis=0))

    def predict_many(self, matrix: Matrix) -> Matrix:
        """The same for many statements."""
        rows = np.arange(len(matrix))[:, None]
        node = np.broadcast_to(self.roots, (len(matrix), len(self.roots)))
        for _ in range(self.depth):
            goes_right = matrix[rows, self.feature[node]] > self.threshold[node]
            node = self.next[node * 2 + goes_right]
        return self.value[node].mean(axis=1)


def grow(matrix: Matrix, targets: Matrix, weights: NDArray[np.float64], *, seed: int) -> Forest:
    """Grow trees that predict all targets at once."""
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 takes a second to import

    forest = ExtraTreesRegressor(
        n_estimators=_TREES,
        min_samples_leaf=_LEAF_ROWS,
        max_depth=_DEPTH,
        max_features=0.6,
        random_state=seed,
        n_jobs=1,
    )
    # scikit-learn wants a lone target flat.
    wanted = targets if targets.shape[1] > 1 else targets[:, 0]
    forest.fit(matrix, wanted, sample_weight=weights)
    return _flat([one.tree_ for one in forest.estimators_])


def _flat(trees: Sequence[Any]) -> Forest:
    counts = [tree.node_count for tree in trees]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    feature, threshold, following, value = [], [], [], []
    for tree, start in zip(trees, starts, strict=True):
        is_leaf = tree.children_left < 0
        itself = np.arange(tree.node_count) + start
        feature.append(np.where(is_leaf, 0, tree.feature))
        threshold.append(np.where(is_leaf, np.inf, tree.threshold))
        left = np.where(is_leaf, itself, tree.children_left + start)
        right = np.where(is_leaf, itself, tree.children_right + start)
        following.append(np.stack([left, right], axis=1).ravel())
        value.append(tree.value[:, :, 0])
    return Forest(
        roots=starts,
        feature=np.concatenate(feature).astype(np.int64),
        threshold=np.concatenate(threshold),
        next=np.concatenate(following).astype(np.int64),
        value=np.concatenate(value),
        depth=max(int(tree.max_depth) for tree in trees),
    )


@dataclass(frozen=True, slots=True)
class Ridge:
    """A penalised linear regression of several targets."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]  # place x target
    intercept: NDArray[np.float64]
    least: NDArray[np.float64]  # of each target: what was ever seen
    most: NDArray[np.float64]

    def predict(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """The prediction for one statement, or for many; never beyond what was seen."""
        found = ((vector - self.mean) / self.scale) @ self.weights + self.intercept
        return np.clip(found, self.least, self.most)


def fit_ridge(matrix: Matrix, targets: Matrix, weights: NDArray[np.float64]) -> Ridge:
    """Fit each target with the penalty that predicts left-out rows best."""
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    columns = [
        _one_ridge((matrix - mean) / scale, targets[:, number], weights)
        for number in range(targets.shape[1])
    ]
    known = [targets[np.isfinite(targets[:, number]), number] for number in range(targets.shape[1])]
    return Ridge(
        mean,
        scale,
        np.array([one[0] for one in columns]).T.reshape(matrix.shape[1], targets.shape[1]),
        np.array([one[1] for one in columns]),
        np.array([one.min() for one in known]),
        np.array([one.max() for one in known]),
    )


def _one_ridge(
    matrix: Matrix, target: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    known = np.isfinite(target)
    share = weights[known] / weights[known].sum()
    middle, center = share @ matrix[known], float(share @ target[known])
    centered, wanted = matrix[known] - middle, target[known] - center
    count = len(wanted)
    gram = (centered * share[:, None]).T @ centered * count
    squares, turn = np.linalg.eigh(gram)
    squares = np.maximum(squares, 0.0)
    along = turn.T @ ((centered * share[:, None]).T @ wanted) * count
    spread = float(share @ np.square(wanted)) * count
    best: tuple[float, NDArray[np.float64]] | None = None
    for penalty in _PENALTIES:
        steps = along / (squares + penalty)
        rest = spread - 2 * float(steps @ along) + float(np.square(steps) @ squares)
        freedom = max(1.0 - (float((squares / (squares + penalty)).sum()) + 1) / count, 0.05)
        error = rest / freedom**2
        if best is None or error < best[0]:
            best = error, turn @ steps
    assert best is not None  # noqa: S101 there is a penalty
    return best[1], center - float(middle @ best[1])

"""When to leave the default engine: a rule with a margin, chosen by what it would have brought.

The engine that is cheapest in total is the default. A rule leaves it for another when the expected
difference is large enough for its uncertainty. Rules are compared by the total they would have
reached on statements kept out of training, less a multiple of that total's standard error; when
none is better than the default by that measure, there is no rule, and the predictor abstains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

Matrix = Any  # NDArray[np.float64]

MARGINS = (0.0, 0.03, 0.07, 0.12, 0.2, 0.3, 0.5, 0.8, 1.2)
CAUTIONS = (0.0, 0.5, 1.0, 2.0)
_LEAST_SAVING = 0.002  # of the default's total: less is not worth a change
_MOST_CORRECTION = 0.7
_PARTS = 8


@dataclass(frozen=True, slots=True)
class Rule:
    """How predictions become choices.

    Attributes:
        source: which prediction is used: ridge, forest, blend, flat (no features at all).
        margin: least expected gain, as a difference of logarithms.
        caution: times the uncertainty that the gain must exceed beyond the margin.
        prior: how many runs the model's word counts beside the template's own.
        width: how near in size runs must be, in doublings; infinite: size does not matter.
        correction: added to each engine's prediction, since totals are sums and not medians.
        allowed: engines the default may be left for.
        least_runs: of a template, without which an engine is not taken for what it did there.
        is_residual: own runs tell what the model's word lacks, not what stands beside it.
        saving: share of the default's total that it saved out of fold.
        error: standard error of that share.
    """

    source: str
    margin: float
    caution: float
    prior: float
    width: float
    correction: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    saving: float = 0.0
    error: float = 0.0
    least_runs: float = 0.0
    is_residual: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """Predictions out of fold with what really happened.

    Attributes:
        values: what each engine cost; gaps filled.
        cluster: rows that stand or fall together.
        default: column of the default engine.
        kappa: standard errors that a saving must exceed.
    """

    values: Matrix
    cluster: NDArray[np.int64]
    default: int
    kappa: float


def correction_of(predicted: Matrix, trial: Trial) -> NDArray[np.float64]:
    """How far totals differ from what medians foretell, per engine; damped."""
    base = trial.values[:, trial.default]
    foretold = (np.exp(np.clip(predicted, -20, 20)) * base[:, None]).sum(axis=0)
    actual = trial.values.sum(axis=0)
    trust = len(base) / (len(base) + 100.0)
    found = trust * (np.log(np.maximum(actual, 1e-12)) - np.log(np.maximum(foretold, 1e-12)))
    found = np.clip(found, -_MOST_CORRECTION, _MOST_CORRECTION)
    found[trial.default] = 0.0
    return np.asarray(found)


def picks(rule: Rule, predicted: Matrix, doubt: Matrix, default: int) -> NDArray[np.int64]:
    """The engine a rule takes for each row.

    Args:
        rule: which rule.
        predicted: expected log difference to the default, row x engine; 0 for the default.
        doubt: standard deviation of that.
        default: column of the default.
    """
    score = predicted + rule.correction + rule.caution * doubt + rule.margin
    score = np.where(rule.allowed, score, np.inf)
    score[:, default] = 0.0
    return np.asarray(score.argmin(axis=1))


def best_rule(candidates: Iterable[tuple[Rule, Matrix, Matrix]], trial: Trial) -> Rule | None:
    """The candidate whose saving is largest for its uncertainty; None when none is worth it.

    Among thousands of rules one looks good by luck. So the choice itself is tried first: made on
    most of the clusters, counted on the others, in turns. Only when that is worth it,
    the choice is made on all of them.
    """
    tried: list[tuple[Rule, Matrix, Matrix]] = []
    saved: list[Matrix] = []
    clusters = int(trial.cluster.max()) + 1
    for rule, predicted, doubt in candidates:
        for margin in MARGINS:
            for caution in CAUTIONS if doubt.any() else CAUTIONS[:1]:
                one = replace(rule, margin=margin, caution=caution)
                by_row = _saved(one, predicted, doubt, trial)
                by_cluster = np.bincount(trial.cluster, weights=by_row, minlength=clusters)
                saved.append(by_cluster.astype(np.float32))
                tried.append((one, predicted, doubt))
    total = float(trial.values[:, trial.default].sum()) or 1.0
    sums = np.array(saved) / total
    if not _is_worth_choosing(sums, trial):
        return None
    worth = sums.sum(axis=1) - trial.kappa * np.sqrt(np.square(sums).sum(axis=1))
    rule, predicted, doubt = tried[int(worth.argmax())]
    return _without_losers(rule, predicted, doubt, trial)


def _is_worth_choosing(sums: Matrix, trial: Trial) -> bool:
    """Whether rules chosen on some clusters save on the others."""
    part = np.random.default_rng(len(sums)).permutation(sums.shape[1]) % _PARTS
    honest = np.zeros(sums.shape[1])
    for number in range(_PARTS):
        here = part == number
        seen = sums[:, ~here]
        worth = seen.sum(axis=1) - np.sqrt(np.square(seen).sum(axis=1))
        best = int(worth.argmax())
        if worth[best] > 0:
            honest[here] = sums[best, here]
    error = float(np.sqrt(np.square(honest).sum()))
    # A rule that stands out that far is no luck; then the choice need not be as sure as that.
    stands_out = float((sums.sum(axis=1) / np.sqrt(np.square(sums).sum(axis=1) + 1e-18)).max())
    needed = trial.kappa / 2 if stands_out > 2 * trial.kappa else trial.kappa
    return bool(honest.sum() - needed * error > _LEAST_SAVING)


def _saved(rule: Rule, predicted: Matrix, doubt: Matrix, trial: Trial) -> NDArray[np.float64]:
    chosen = picks(rule, predicted, doubt, trial.default)
    base = trial.values[:, trial.default]
    return np.asarray(base - trial.values[np.arange(len(chosen)), chosen])


def _without_losers(rule: Rule, predicted: Matrix, doubt: Matrix, trial: Trial) -> Rule | None:
    """The rule without engines that did not earn their place; None when none is left."""
    for _ in range(len(rule.allowed)):
        chosen = picks(rule, predicted, doubt, trial.default)
        saved = _saved(rule, predicted, doubt, trial)
        worst, loss = -1, 0.0
        for engine in np.flatnonzero(rule.allowed):
            here = saved[chosen == engine]
            bound = here.sum() - 0.5 * np.sqrt((here**2).sum())
            if engine != trial.default and len(here) and bound < loss:
                worst, loss = int(engine), float(bound)
        if worst < 0:
            total = float(trial.values[:, trial.default].sum()) or 1.0
            error = float(np.sqrt((saved**2).sum())) / total
            return replace(rule, saving=float(saved.sum()) / total, error=error)
        allowed = rule.allowed.copy()
        allowed[worst] = False
        rule = replace(rule, allowed=allowed)
    return None

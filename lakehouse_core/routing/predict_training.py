"""Learn from a history when to leave the default engine, and prove it before it is used.

Two situations are learnt apart, each with its own rule: a statement whose template has run before
(folds of single runs), and one of a template nobody has seen (folds of whole templates).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.routing.predict_forest import Forest, Ridge, fit_ridge, grow
from lakehouse_core.routing.predict_history import History, Logs, logs_of
from lakehouse_core.routing.predict_local import LocalEvidence, out_of_fold
from lakehouse_core.routing.predict_policy import Rule, Trial, best_rule, correction_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lakehouse_core.routing.features import FeatureSpace

Matrix = Any  # NDArray[np.float64]
_Candidate = tuple[Rule, Matrix, Matrix]

VERSION = 1
FOLDS = 5
_LEAST_ROWS = 12
_LEAST_RUNS, _LEAST_COVERAGE = 3, 0.05  # of an engine, beside the one that ran most
_LEAST_TEMPLATES = 8
_LEAST_FOREST_ROWS = 40
_MOST_ROWS = 6_000  # beyond, a sample teaches as much
_PRIORS = (0.3, 1.0, 3.0, 10.0)
_RESIDUAL_PRIORS = (3.0, 30.0)
_WIDTHS = (1.0, np.inf)
_KNOWN_KAPPA, _UNSEEN_KAPPA = 1.6, 1.6


@dataclass(frozen=True, slots=True)
class Model:
    """What predicts the log difference of every engine to the default."""

    default: int
    engines: int
    mean: NDArray[np.float64]
    ridge: Ridge | None
    forest: Forest | None

    def predict(self, vector: NDArray[np.float64], source: str) -> NDArray[np.float64]:
        """For one statement; 0 for the default."""
        others = self._others_of(vector, source)
        return np.concatenate([others[: self.default], [0.0], others[self.default :]])

    def _others_of(self, vector: NDArray[np.float64], source: str) -> NDArray[np.float64]:
        if source == "ridge" and self.ridge is not None:
            return self.ridge.predict(vector)
        if source == "forest" and self.forest is not None:
            return self.forest.predict(vector)
        if source == "blend" and self.forest is not None and self.ridge is not None:
            return (self.ridge.predict(vector) + self.forest.predict(vector)) / 2
        return self.mean

    def predict_many(self, matrix: Matrix) -> dict[str, Matrix]:
        """For many statements by source; 0 for the default."""
        found = {"flat": np.broadcast_to(self.mean, (len(matrix), len(self.mean)))}
        if self.ridge is not None:
            found["ridge"] = self.ridge.predict(matrix)
        if self.ridge is not None and self.forest is not None:
            found["forest"] = self.forest.predict_many(matrix)
            found["blend"] = (found["ridge"] + found["forest"]) / 2
        return {source: self._widened(others) for source, others in found.items()}

    def _widened(self, others: Matrix) -> Matrix:
        return np.insert(others, self.default, 0.0, axis=1)


@dataclass(frozen=True, slots=True)
class Learned:
    """What training found.

    Attributes:
        version: of this way of learning.
        digest: of the history it was learnt from.
        default: column of the engine that is cheapest in total.
        order: columns, cheapest in total first.
        model: predicts for templates, known or not.
        known: the rule for templates that have run; None: abstain.
        unseen: the rule for other templates; None: abstain.
        scatter: standard deviation of single log differences within a template, per engine.
        told: what models that had not seen a row said of it, row x engine, where the known rule
            needs it of the runs it was learnt from; it is not stored with the model.
    """

    version: int
    digest: str
    default: int
    order: tuple[int, ...]
    model: Model
    known: Rule | None
    unseen: Rule | None
    scatter: NDArray[np.float64]
    told: Matrix | None = None


@dataclass(frozen=True, slots=True)
class Trained:
    """A model with the engines and the space it was trained for."""

    engines: tuple[str, ...]
    space: FeatureSpace
    learned: Learned


def train(history: History, *, seed: int = 0, has_texts: bool = False) -> Learned:
    """Learn; the same history and seed give the same answer.

    Args:
        history: what was run.
        seed: of folds and forests.
        has_texts: the runs of a template come with what the model says of each (`Learned.told`);
            live profiles do not keep the texts of their runs.
    """
    digest, whole = digest_of(history), history
    history = _sampled(history, seed)
    logs = logs_of(history)
    values = np.exp(logs.filled)
    runs = np.isfinite(logs.known).sum(axis=0)
    # Of an engine that hardly ran everything would be guessed: it is no engine to rely on.
    is_told = runs >= max(_LEAST_RUNS, _LEAST_COVERAGE * runs.max(initial=0))
    totals = np.where(is_told, values.sum(axis=0), np.inf)
    order = tuple(int(one) for one in np.argsort(totals, kind="stable"))
    default = order[0]
    scatter = _scatter(history, logs, default)
    engines = len(history.engines)
    model = _fit(history, logs, default, seed)
    nothing = Learned(VERSION, digest, default, order, model, None, None, scatter)
    allowed = is_told & (np.arange(engines) != default)
    if len(values) < _LEAST_ROWS or engines < 2 or not allowed.any():
        return nothing
    past = _Past(history, logs, values, default, allowed)
    fold = np.random.default_rng(seed).integers(0, FOLDS, len(values))
    predicted = _out_of_fold_models(history, logs, fold, default, seed)
    known = _known_rule(past, scatter, fold, predicted, has_texts=has_texts)
    unseen = _unseen_rule(past, seed)
    told = None
    if known is not None and known.is_residual:
        is_whole = len(whole.template) == len(history.template)
        told = (
            predicted[known.source] if is_whole else model.predict_many(whole.matrix)[known.source]
        )
    return replace(nothing, known=known, unseen=unseen, told=told)


def combined(
    predicted: Matrix,
    local: LocalEvidence,
    prior: float,
    scatter: NDArray[np.float64],
    *,
    is_residual: bool = False,
) -> tuple[Matrix, Matrix]:
    """The model's word and the template's own runs in one, and how uncertain that is."""
    runs = local.runs + prior
    own = local.difference + predicted if is_residual else local.difference
    mean = (local.runs * own + prior * predicted) / runs
    return mean, scatter / np.sqrt(runs)


def digest_of(history: History) -> str:
    """Tells histories apart."""
    found = hashlib.blake2b(digest_size=8)
    for part in (history.template, history.matrix, history.size, history.values):
        found.update(np.ascontiguousarray(part).tobytes())
    found.update("\0".join(history.engines).encode())
    return found.hexdigest()


# --- fitting -------------------------------------------------------------------------------------


def _fit(history: History, logs: Logs, default: int, seed: int) -> Model:
    engines = len(history.engines)
    others = np.delete(np.arange(engines), default)
    targets = _targets(logs, default)[:, others]
    level = logs.filled[:, default]
    # Statements that cost much matter more, but none may decide alone.
    weights = np.clip(np.exp((level - np.median(level)) / 2), 0.3, 3.0) if len(level) else level
    mean = np.array(
        [float(np.nanmean(targets[:, one])) for one in range(len(others))]
        if len(targets)
        else [0.0] * len(others)
    )
    ridge = forest = None
    if len(targets) >= _LEAST_ROWS and len(others):
        ridge = fit_ridge(history.matrix, targets, weights)
    if len(targets) >= _LEAST_FOREST_ROWS and len(others):
        guessed = logs.filled[:, others] - logs.filled[:, default : default + 1]
        whole = np.where(np.isfinite(targets), targets, guessed)
        forest = grow(history.matrix, whole, weights, seed=seed)
    return Model(default, engines, mean, ridge, forest)


def _targets(logs: Logs, default: int) -> Matrix:
    """Log differences to the default; pairs that really ran where there are enough of them."""
    paired = logs.known - logs.known[:, default : default + 1]
    guessed = logs.filled - logs.filled[:, default : default + 1]
    enough = np.isfinite(paired).sum(axis=0) >= max(_LEAST_ROWS, 0.2 * len(paired))
    return np.where(enough, paired, guessed)


def _sampled(history: History, seed: int) -> History:
    if len(history.template) <= _MOST_ROWS:
        return history
    chosen = np.random.default_rng(seed).choice(len(history.template), _MOST_ROWS, replace=False)
    return history.rows(np.sort(chosen))


def _scatter(history: History, logs: Logs, default: int) -> NDArray[np.float64]:
    """How much single differences vary within a template, per engine."""
    difference = logs.filled - logs.filled[:, default : default + 1]
    count = np.bincount(history.template)
    squares, freedom = np.zeros(difference.shape[1]), 1e-9
    for engine in range(difference.shape[1]):
        mean = np.bincount(history.template, weights=difference[:, engine]) / np.maximum(count, 1)
        squares[engine] = ((difference[:, engine] - mean[history.template]) ** 2).sum()
    freedom += float(np.maximum(count - 1, 0).sum())
    overall = difference.std(axis=0) if len(difference) else np.zeros(difference.shape[1])
    return np.asarray(np.sqrt(squares / freedom)) if freedom > 1 else np.asarray(overall)


# --- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Past:
    """A history made ready, the default in it, and the engines it may be left for."""

    history: History
    logs: Logs
    values: Matrix
    default: int
    allowed: NDArray[np.bool_]


def _known_rule(
    past: _Past,
    scatter: NDArray[np.float64],
    fold: NDArray[np.int64],
    predicted: dict[str, Matrix],
    *,
    has_texts: bool,
) -> Rule | None:
    history, values, default = past.history, past.values, past.default
    widths = _WIDTHS if np.isfinite(history.size).any() else _WIDTHS[1:]
    locals_ = {width: _own_runs(past, fold, width) for width in widths}
    seen = np.delete(locals_[np.inf].runs, default, axis=1).max(axis=1) > 0
    if seen.sum() < _LEAST_ROWS:
        return None
    # Known templates come again: their rows vary, not the templates.
    trial = Trial(values[seen], np.arange(int(seen.sum())), default, _KNOWN_KAPPA)

    def beside(source: str, local: LocalEvidence, rule: Rule) -> Iterator[_Candidate]:
        model = predicted[source][seen]
        chosen = LocalEvidence(local.difference[seen], local.runs[seen])
        mean, doubt = combined(model, chosen, rule.prior, scatter, is_residual=rule.is_residual)
        for correction in (np.zeros(values.shape[1]), correction_of(mean, trial)):
            yield replace(rule, correction=correction), mean, doubt

    def candidates() -> Iterator[_Candidate]:
        zeros = np.zeros(values.shape[1])
        for source, model in predicted.items():
            for (width, local), prior in product(locals_.items(), _PRIORS):
                rule = Rule(source, 0.0, 0.0, prior, width, zeros, past.allowed)
                yield from beside(source, local, rule)
            if has_texts and source != "flat":
                rest = _own_runs(past, fold, np.inf, beyond=model)
                for prior in _RESIDUAL_PRIORS:
                    rule = Rule(
                        source, 0.0, 0.0, prior, np.inf, zeros, past.allowed, is_residual=True
                    )
                    yield from beside(source, rest, rule)

    return best_rule(candidates(), trial)


def _own_runs(
    past: _Past, fold: NDArray[np.int64], width: float, beyond: Matrix | None = None
) -> LocalEvidence:
    """For each row the runs of its template in other folds; of each what was not foretold."""
    history, known = past.history, past.logs.known
    logs = known if beyond is None else known - beyond
    return out_of_fold(
        history.template, logs, history.size, fold, default=past.default, width=width
    )


def _unseen_rule(past: _Past, seed: int) -> Rule | None:
    history, logs, values, default = past.history, past.logs, past.values, past.default
    templates = np.unique(history.template)
    if len(templates) < _LEAST_TEMPLATES:
        return None
    fold_of = np.random.default_rng(seed + 1).permutation(int(templates.max()) + 1) % FOLDS
    fold = fold_of[history.template]
    predicted = _out_of_fold_models(history, logs, fold, default, seed)
    trial = Trial(values, history.template, default, _UNSEEN_KAPPA)

    def candidates() -> Iterator[_Candidate]:
        for source, model in predicted.items():
            if source == "flat":
                continue
            doubt = np.zeros_like(model)
            for correction in (np.zeros(values.shape[1]), correction_of(model, trial)):
                rule = Rule(source, 0.0, 0.0, 0.0, np.inf, correction, past.allowed)
                yield rule, model, doubt

    return best_rule(candidates(), trial)


def _out_of_fold_models(
    history: History, logs: Logs, fold: NDArray[np.int64], default: int, seed: int
) -> dict[str, Matrix]:
    """Predictions for each row of models that have not seen its fold."""
    found: dict[str, Matrix] = {}
    for number in range(FOLDS):
        inside = fold == number
        if not inside.any() or inside.all():
            continue
        shown = Logs(logs.known[~inside], logs.filled[~inside])
        model = _fit(history.rows(~inside), shown, default, seed)
        for source, part in model.predict_many(history.matrix[inside]).items():
            found.setdefault(source, np.full(logs.filled.shape, np.nan))[inside] = part
    return {source: part for source, part in found.items() if np.isfinite(part).all()}

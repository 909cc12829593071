"""One statement, one choice: feasible engines → its template's runs → the model → abstain.

policy = RoutePolicy(engines, space, learned, runs_of)
policy.choose(shape, scan, feasible).engine
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lakehouse_core.routing.features import NO_SCAN
from lakehouse_core.routing.predict_training import combined

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from lakehouse_core.routing.features import FeatureSpace, ScanFacts
    from lakehouse_core.routing.predict_local import LocalEvidence, TemplateRuns
    from lakehouse_core.routing.predict_policy import Rule
    from lakehouse_core.routing.predict_training import Learned
    from lakehouse_core.sql.shape import StatementShape

_SILENT = 0.05

Basis = Literal["profile", "model", "abstained", "only_one"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a statement should run.

    Attributes:
        engine: the engine; on abstention the default, or what is next best when that cannot.
        basis: what the choice rests on.
        gain: expected share saved against the default; 0 on abstention.
        runs: how many runs of its template were looked at.
        reason: the same in words.
    """

    engine: str
    basis: Basis
    gain: float
    runs: float
    reason: str


class RoutePolicy:
    """Chooses by what was learnt; pure and quick, for any number of threads."""

    def __init__(
        self,
        engines: tuple[str, ...],
        space: FeatureSpace,
        learned: Learned,
        runs_of: Callable[[str], TemplateRuns | None],
    ) -> None:
        self.engines = engines
        self.learned = learned
        self._space = space
        self._runs_of = runs_of
        self._column = {name: place for place, name in enumerate(engines)}

    @property
    def default(self) -> str:
        """The engine that is cheapest in total."""
        return self.engines[self.learned.default]

    @property
    def is_flat(self) -> bool:
        """Whether it looks at runs alone, never at the statement."""
        rules = (self.learned.known, self.learned.unseen)
        return all(rule is None or rule.source == "flat" for rule in rules)

    def knows(self, template_id: str) -> bool:
        """Whether runs of a template are known."""
        return self._runs_of(template_id) is not None

    def choose(
        self,
        shape: StatementShape,
        scan: ScanFacts = NO_SCAN,
        feasible: Collection[str] | None = None,
        crowding: Mapping[str, float] | None = None,
    ) -> Choice:
        """The engine for a statement.

        Args:
            shape: the statement.
            scan: what it would read, as far as known.
            feasible: engines that can take it; None: all of them.
            crowding: how many times as long a statement takes on an engine as full as now.
        """
        allowed = self._allowed(feasible)
        fallback = next((one for one in self.learned.order if allowed[one]), None)
        if fallback is None:
            raise ValueError("no engine that can take the statement is known to the policy")
        if np.count_nonzero(allowed) == 1:
            name = self.engines[fallback]
            return Choice(name, "only_one", 0.0, 0.0, f"only {name} can take it")
        load = self._load(crowding)
        size = float(np.log2(1.0 + scan.bytes)) if scan.bytes is not None else np.nan
        runs = self._runs_of(shape.template_id) if self.learned.known is not None else None
        if runs is not None and self.learned.known is not None:
            rule = self.learned.known
            reference = _reference(runs, allowed, self.learned.default)
            local = runs.evidence(reference, size, rule.width, scan.wear)
            is_enough = (local.runs[0] >= max(rule.least_runs, 1e-6)) & allowed
            if np.count_nonzero(is_enough) > (1 if is_enough[reference] else 0):
                at = _Here(reference, is_enough, load)
                return self._by_runs(rule, local, shape, scan, at)
        if self.learned.unseen is None:
            name = self.engines[fallback]
            return Choice(name, "abstained", 0.0, 0.0, "too little is known of it")
        rule = self.learned.unseen
        predicted = self.learned.model.predict(self._space.vector(shape, scan), rule.source)
        standing = _Standing(rule, predicted, np.zeros_like(predicted), None)
        return self._taken(standing, _Here(self.learned.default, allowed, load))

    def _by_runs(
        self,
        rule: Rule,
        local: LocalEvidence,
        shape: StatementShape,
        scan: ScanFacts,
        at: _Here,
    ) -> Choice:
        learned, allowed, reference = self.learned, at.allowed, at.reference
        source, vector = rule.source, np.zeros(0)
        if rule.prior < _SILENT * float(local.runs[0][allowed].min()):
            source = "flat"  # beside so many runs the model's word changes nothing
        if source != "flat":
            vector = self._space.vector(shape, scan)
        model = learned.model.predict(vector, source)
        relative = model - model[reference]
        mean, doubt = combined(relative[None, :], local, rule.prior, learned.scatter)
        doubt[0, reference] = 0.0
        runs = float(np.where(allowed, local.runs[0], 0.0).max())
        return self._taken(_Standing(rule, mean[0], doubt[0], runs), at)

    def _taken(self, standing: _Standing, at: _Here) -> Choice:
        rule, runs, reference, allowed = standing.rule, standing.runs, at.reference, at.allowed
        expected = standing.predicted + rule.correction - rule.correction[reference]
        expected = expected + at.load - at.load[reference]
        may = allowed & (rule.allowed | (np.arange(len(allowed)) == self.learned.default))
        if not allowed[reference]:
            # The margin guards the engine one is used to; without it the best guess is all.
            best = int(np.where(allowed, expected, np.inf).argmin())
        else:
            score = np.where(may, expected + rule.caution * standing.doubt + rule.margin, np.inf)
            score[reference] = 0.0
            best = int(score.argmin())
        basis: Basis = "model" if runs is None else "profile"
        known = "a model of similar statements" if runs is None else f"{runs:.0f} runs of it"
        name, usual = self.engines[best], self.engines[reference]
        if best != reference:
            gain = 1.0 - float(np.exp(min(expected[best], 0.0)))
            reason = f"{known}: {gain:.0%} less than on {usual} expected"
            return Choice(name, basis, gain, runs or 0.0, reason)
        rival = np.where(may & (np.arange(len(may)) != reference), expected, np.inf).min()
        if rival < 0:
            reason = f"{known}: no engine is better than {name} by enough"
            return Choice(name, "abstained", 0.0, runs or 0.0, reason)
        return Choice(name, basis, 0.0, runs or 0.0, f"{known}: {name} is best")

    def _load(self, crowding: Mapping[str, float] | None) -> NDArray[np.float64]:
        if not crowding:
            return np.zeros(len(self.engines))
        return np.log([max(crowding.get(name, 1.0), 1.0) for name in self.engines])

    def _allowed(self, feasible: Collection[str] | None) -> NDArray[np.bool_]:
        if feasible is None:
            return np.ones(len(self.engines), np.bool_)
        allowed = np.zeros(len(self.engines), np.bool_)
        for name in feasible:
            place = self._column.get(name)
            if place is not None:
                allowed[place] = True
        return allowed


@dataclass(frozen=True, slots=True)
class _Standing:
    """What is expected of the engines, relative to one of them."""

    rule: Rule
    predicted: NDArray[np.float64]
    doubt: NDArray[np.float64]
    runs: float | None  # None: no run of the template


@dataclass(frozen=True, slots=True)
class _Here:
    """Which engine the others are compared with, which may be taken, and how full each is."""

    reference: int
    allowed: NDArray[np.bool_]
    load: NDArray[np.float64]


def _reference(runs: TemplateRuns, allowed: NDArray[np.bool_], default: int) -> int:
    """The default, or the engine that ran the template most where the default never did."""
    counts = runs.counts
    if counts[default] and allowed[default]:
        return default
    usable = np.where(allowed, counts, 0)
    return int(usable.argmax()) if usable.any() else default

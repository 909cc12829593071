"""One statement, one choice: feasible engines → its template's runs → the model → abstain.

policy = RoutePolicy(engines, space, learned, runs_of)
policy.choose(shape, scan, feasible).engine
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lakehouse_core.routing.features import NO_SCAN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from lakehouse_core.routing.features import FeatureSpace, ScanFacts
    from lakehouse_core.routing.predict_local import TemplateRuns
    from lakehouse_core.routing.predict_policy import Rule
    from lakehouse_core.routing.predict_training import Learned
    from lakehouse_core.sql.shape import StatementShape

_SILENT = 0.05
_NOTHING = np.zeros(0)

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
        self._scatter: list[float] = learned.scatter.tolist()
        self._rules = {
            id(rule): _Plain(rule.correction.tolist(), rule.allowed.tolist())
            for rule in (learned.known, learned.unseen)
            if rule is not None
        }

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
        runs: TemplateRuns | None = None,
    ) -> Choice:
        """The engine for a statement.

        Args:
            shape: the statement.
            scan: what it would read, as far as known.
            feasible: engines that can take it; None: all of them.
            crowding: how many times as long a statement takes on an engine as full as now.
            runs: of its template; None: those the policy knows.
        """
        allowed = [feasible is None or name in feasible for name in self.engines]
        fallback = next((one for one in self.learned.order if allowed[one]), None)
        if fallback is None:
            raise ValueError("no engine that can take the statement is known to the policy")
        if allowed.count(True) == 1:
            name = self.engines[fallback]
            return Choice(name, "only_one", 0.0, 0.0, f"only {name} can take it")
        load = self._load(crowding)
        rule = self.learned.known
        if runs is None and rule is not None:
            runs = self._runs_of(shape.template_id)
        if runs is not None and rule is not None:
            size = math.log2(1.0 + scan.bytes) if scan.bytes is not None else math.nan
            reference = _reference(runs, allowed, self.learned.default)
            difference, counts = runs.evidence(reference, size, rule.width, scan.wear)
            least = max(rule.least_runs, 1e-6)
            is_enough = [may and n >= least for may, n in zip(allowed, counts, strict=True)]
            if is_enough.count(True) > is_enough[reference]:
                at = _Here(reference, is_enough, load)
                return self._by_runs(rule, (difference, counts), shape, scan, at)
        rule = self.learned.unseen
        if rule is None:
            name = self.engines[fallback]
            return Choice(name, "abstained", 0.0, 0.0, "too little is known of it")
        predicted = self.learned.model.predict(self._space.vector(shape, scan), rule.source)
        standing = _Standing(rule, predicted.tolist(), [0.0] * len(self.engines), None)
        return self._taken(standing, _Here(self.learned.default, allowed, load))

    def _by_runs(
        self,
        rule: Rule,
        local: tuple[list[float], list[float]],
        shape: StatementShape,
        scan: ScanFacts,
        at: _Here,
    ) -> Choice:
        difference, counts = local
        told = [n for n, may in zip(counts, at.allowed, strict=True) if may]
        source = rule.source
        if not rule.is_residual and rule.prior < _SILENT * min(told):
            source = "flat"  # beside so many runs the model's word changes nothing
        vector = self._space.vector(shape, scan) if source != "flat" else _NOTHING
        model: list[float] = self.learned.model.predict(vector, source).tolist()
        usual, prior = model[at.reference], rule.prior
        # What runs say beyond the model, or what they say and the model beside them.
        word = 1.0 if rule.is_residual else 0.0
        mean = [
            (n * (own + word * (said - usual)) + prior * (said - usual)) / (n + prior)
            for own, n, said in zip(difference, counts, model, strict=True)
        ]
        doubt = [one / math.sqrt(n + prior) for one, n in zip(self._scatter, counts, strict=True)]
        doubt[at.reference] = 0.0
        return self._taken(_Standing(rule, mean, doubt, max(told)), at)

    def _taken(self, standing: _Standing, at: _Here) -> Choice:
        rule, runs, reference, allowed = standing.rule, standing.runs, at.reference, at.allowed
        plain = self._rules[id(rule)]
        base = plain.correction[reference] + at.load[reference]
        expected = [
            one + correction + load - base
            for one, correction, load in zip(
                standing.predicted, plain.correction, at.load, strict=True
            )
        ]
        places = range(len(expected))
        if not allowed[reference]:
            # The margin guards the engine one is used to; without it the best guess is all.
            best = min((one for one in places if allowed[one]), key=lambda one: expected[one])
            may = []
        else:
            may = [
                one
                for one in places
                if one != reference
                and allowed[one]
                and (plain.allowed[one] or one == self.learned.default)
            ]
            score = {
                one: expected[one] + rule.caution * standing.doubt[one] + rule.margin for one in may
            }
            best = min(may, key=lambda one: score[one], default=reference)
            if best != reference and score[best] >= 0:
                best = reference
        basis: Basis = "model" if runs is None else "profile"
        known = "a model of similar statements" if runs is None else f"{runs:.0f} runs of it"
        name, usual = self.engines[best], self.engines[reference]
        if best != reference:
            gain = 1.0 - math.exp(min(expected[best], 0.0))
            reason = f"{known}: {gain:.0%} less than on {usual} expected"
            return Choice(name, basis, gain, runs or 0.0, reason)
        if any(expected[one] < 0 for one in may):
            reason = f"{known}: no engine is better than {name} by enough"
            return Choice(name, "abstained", 0.0, runs or 0.0, reason)
        return Choice(name, basis, 0.0, runs or 0.0, f"{known}: {name} is best")

    def _load(self, crowding: Mapping[str, float] | None) -> list[float]:
        if not crowding:
            return [0.0] * len(self.engines)
        return [math.log(max(crowding.get(name, 1.0), 1.0)) for name in self.engines]


@dataclass(frozen=True, slots=True)
class _Plain:
    """The arrays of a rule as lists."""

    correction: list[float]
    allowed: list[bool]


@dataclass(frozen=True, slots=True)
class _Standing:
    """What is expected of the engines, relative to one of them."""

    rule: Rule
    predicted: list[float]
    doubt: list[float]
    runs: float | None  # None: no run of the template


@dataclass(frozen=True, slots=True)
class _Here:
    """Which engine the others are compared with, which may be taken, and how full each is."""

    reference: int
    allowed: list[bool]
    load: list[float]


def _reference(runs: TemplateRuns, allowed: list[bool], default: int) -> int:
    """The default, or the engine that ran the template most where the default never did."""
    counts = runs.counts
    if counts[default] and allowed[default]:
        return default
    usable = [n if may else 0.0 for n, may in zip(counts, allowed, strict=True)]
    most = max(usable)
    return usable.index(most) if most else default

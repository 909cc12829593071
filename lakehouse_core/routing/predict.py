"""The predictor the router asks: live profiles, a trained model, a promise to keep, a conscience.

    predictor = LearningPredictor(book, valuations={"latency": in_seconds, "cost": priced})
    predictor.choose("cost", request, facts, candidates).engine_id

Feasible engines → those fast enough for the group's promise → the template's own runs → the model
→ abstain. Now and then, within a budget and never where a promise was made, a read is sent to an
engine about which little is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.query import EngineId
from lakehouse_core.routing.features import NO_SCAN, FeatureSpace, ScanFacts
from lakehouse_core.routing.predict_choice import RoutePolicy
from lakehouse_core.routing.predict_explore import Budget, Explorer, Lot
from lakehouse_core.routing.predict_policy import Rule
from lakehouse_core.routing.predict_training import VERSION, Learned, Model
from lakehouse_core.routing.profiles import in_seconds, size_class
from lakehouse_core.routing.request import Preference
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.inspector import default_inspector
from lakehouse_core.sql.shape import StatementShape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from lakehouse_core.routing.predict_choice import Choice
    from lakehouse_core.routing.predict_local import TemplateRuns
    from lakehouse_core.routing.predict_training import Trained
    from lakehouse_core.routing.profiles import ProfileBook, Valuation
    from lakehouse_core.routing.request import (
        Candidate,
        Objective,
        Request,
        ScanEstimator,
        StatementFacts,
        Terms,
    )
    from lakehouse_core.sql.inspector import Inspector

_WORTH_A_WORD = 1.2
_POLICIES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Conscience:
    """When the predictor speaks at all.

    Attributes:
        least_runs: of a template on an engine, without which profiles are silent.
        margin: least share to be saved.
        caution: standard deviations beyond that.
        budget: what may be spent on learning.
    """

    least_runs: float = 3.0
    margin: float = 0.08
    caution: float = 1.0
    budget: Budget = field(default_factory=Budget)


class LearningPredictor:
    """Chooses among candidates by what their past says; the `Predictor` of the router."""

    def __init__(  # noqa: PLR0913 what it decides with
        self,
        book: ProfileBook,
        *,
        valuations: Mapping[Objective, Valuation] | None = None,
        trained: Mapping[Objective, Trained] | None = None,
        estimator: ScanEstimator | None = None,
        conscience: Conscience | None = None,
        inspector: Inspector | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._book = book
        self._valuations: Mapping[Objective, Valuation] = valuations or {"latency": in_seconds}
        self._trained = dict(trained or {})
        self._estimator = estimator
        self._conscience = conscience or Conscience()
        self._inspector = inspector or default_inspector()
        self._clock = clock
        self._explorer = Explorer()
        self._space = FeatureSpace()
        self._policies: Cache[object, RoutePolicy] = Cache(_POLICIES)

    def use(self, objective: Objective, trained: Trained | None) -> None:
        """Take another model, or none: the switch is one assignment."""
        models = dict(self._trained)
        models.pop(objective, None)
        if trained is not None:
            models[objective] = trained
        self._trained = models

    def choose(
        self,
        objective: Objective,
        request: Request,
        facts: StatementFacts,
        candidates: Sequence[Candidate],
        terms: Terms | None = None,
    ) -> Preference:
        """The candidate that serves the objective best, or none with the reason."""
        value_of = self._valuations.get(objective)
        if value_of is None:
            return Preference(None, f"{objective} is not predicted")
        engines = tuple(dict.fromkeys(str(one.engine_id) for one in candidates))
        if len(engines) < 2:
            return Preference(None, "only one engine can take it")
        now = self._clock()
        asked = _Asked(
            facts=facts,
            engines=engines,
            bound=None if terms is None else terms.latency_seconds,
            scan=self._scan(request, facts),
            crowding={str(one.engine_id): crowding(one) for one in candidates},
            now=now,
        )
        quick, promised = self._fast_enough(asked)
        if len(quick) == 1:
            return Preference(EngineId(quick[0]), promised)
        trained = self._trained.get(objective)
        if trained is not None and not set(engines) <= set(trained.engines):
            trained = None  # it knows nothing of one of them
        policy = self._policy(trained, engines)
        shape = StatementShape(facts.template_id, None, ())
        if not policy.is_flat:  # a model looks at the text, runs alone do not
            shape = self._inspector.shape(request.sql, request.dialect)
        # By the statement's own id: the shape's does not know the session.
        runs = self._book.runs_of(facts.template_id, policy.engines, value_of, now)
        choice = policy.choose(shape, asked.scan, quick, asked.crowding, runs)
        if asked.bound is None and facts.is_read_only:
            lot = self._lot(objective, request, terms)
            if lot.is_drawn:
                profiles = self._book.profiles_of(facts.template_id, value_of, now)
                tried = self._explorer.pick(lot, quick, choice, profiles)
                if tried is not None:
                    return Preference(EngineId(tried), f"little is known of {tried}: a try")
        # Where neither runs nor a model know anything of it, the group decides.
        is_known = trained is not None or choice.basis != "abstained" or choice.runs > 0
        engine = EngineId(choice.engine) if is_known else None
        return Preference(engine, self._reason(choice, asked, promised))

    def _reason(self, choice: Choice, asked: _Asked, promised: str) -> str:
        reason = choice.reason
        if choice.runs:
            reason = (
                f"{reason} ({self._book.told(asked.facts.template_id, asked.engines, asked.now)})"
            )
        full = [f"{one} counts {asked.crowding[one]:.1f} times" for one in asked.crowded]
        return "; ".join([reason, *full, *([promised] if promised else [])])

    def _lot(self, objective: Objective, request: Request, terms: Terms | None) -> Lot:
        budget, account = self._conscience.budget, objective
        if terms is not None:
            budget = replace(budget, share=terms.explore_share, worth=terms.explore_budget)
            return Lot(request.gateway_id, f"{terms.group}/{objective}", budget)
        return Lot(request.gateway_id, account, budget)

    def _fast_enough(self, asked: _Asked) -> tuple[tuple[str, ...], str]:
        """Engines whose 95th percentile keeps the promise; without evidence the quickest known."""
        bound, engines = asked.bound, asked.engines
        if bound is None:
            return engines, ""
        seconds = {one: self._p95(asked, one) for one in engines}
        known = {one: found for one, found in seconds.items() if found is not None}
        kept = tuple(one for one, found in known.items() if found <= bound)
        if len(kept) == 1:
            return kept, f"only {kept[0]} is known to take at most {bound:g} s (95th percentile)"
        if kept:
            return kept, f"within {bound:g} s"
        if known:
            quickest = min(known, key=lambda one: known[one])
            return (quickest,), f"none keeps {bound:g} s, {quickest} comes nearest"
        return engines, ""

    def _p95(self, asked: _Asked, engine: str) -> float | None:
        """Of scans as large as this one; a class more on either side where that is too little."""
        wanted = size_class(asked.scan.bytes)
        all_of_it = self._book.profiles_of(asked.facts.template_id, in_seconds, asked.now)
        own = [one for one in all_of_it if one.engine_id == engine and one.p95_seconds is not None]
        for apart in (0, 1):
            near = [
                one
                for one in own
                if wanted is None or one.size_class is None or abs(one.size_class - wanted) <= apart
            ]
            if near and sum(one.weight for one in near) >= self._conscience.least_runs:
                slowest = max(one.p95_seconds or 0.0 for one in near)
                return slowest * asked.crowding[engine]
        return None

    def _scan(self, request: Request, facts: StatementFacts) -> ScanFacts:
        if self._estimator is None:
            return NO_SCAN
        found = self._estimator.estimate(request, facts)
        return ScanFacts(bytes=found.bytes, files=found.files)

    def _policy(self, trained: Trained | None, engines: tuple[str, ...]) -> RoutePolicy:
        """The policy of a model, or of runs alone; made once."""
        key = engines if trained is None else trained.learned.digest
        known = self._policies.get(key)
        if known is not None:
            return known
        if trained is not None:
            made = RoutePolicy(trained.engines, trained.space, trained.learned, _none)
        else:
            learned = untrained(len(engines), self._conscience)
            made = RoutePolicy(engines, self._space, learned, _none)
        self._policies.put(key, made)
        return made


def _none(_: str) -> TemplateRuns | None:
    """The policy remembers nothing by itself."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One question and what surrounds it.

    Attributes:
        bound: seconds promised; None: none are.
        crowding: by engine, how many times as long a statement takes there now.
    """

    facts: StatementFacts
    engines: tuple[str, ...]
    bound: float | None
    scan: ScanFacts
    crowding: Mapping[str, float]
    now: datetime

    @property
    def crowded(self) -> list[str]:
        """Engines whose load is worth a word."""
        return [one for one in self.engines if self.crowding[one] >= _WORTH_A_WORD]


def crowding(candidate: Candidate) -> float:
    """How many times as long a statement takes on an engine as full as it is.

    Those that run share the engine, which tells more the nearer it is to its limit: 1.25 at half
    of it, 2 at the limit. Beyond that the statement waits for its turn, behind those who wait.
    """
    limit = candidate.limit
    if not limit:
        return 1.0
    beyond = candidate.running + 1 - limit
    queue = (beyond + candidate.waiting) / limit if beyond > 0 else 0.0
    return 1.0 + min(candidate.running / limit, 1.0) ** 2 + queue


@lru_cache(maxsize=256)
def untrained(engines: int, conscience: Conscience) -> Learned:
    """What is known before anything was learnt: profiles alone decide, with caution."""
    rule = Rule(
        source="flat",
        margin=float(-np.log1p(-conscience.margin)),
        caution=conscience.caution,
        prior=1.0,
        width=1.5,
        correction=np.zeros(engines),
        allowed=np.ones(engines, np.bool_),
        least_runs=conscience.least_runs,
    )
    model = Model(0, engines, np.zeros(engines - 1), None, None)
    return Learned(
        VERSION,
        "untrained",
        0,
        tuple(range(engines)),
        model,
        rule,
        None,
        np.full(engines, 0.3),
    )

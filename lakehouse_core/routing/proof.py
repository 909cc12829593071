"""A model tried before it is used: trained on the older runs, counted on the newer ones.

    proof = prove(past_runs(store, since), in_seconds, inspector)
    if proof is not None and proof.is_worth_using: save(path, proof.trained)

A run of the history happened on one engine. What it would have cost elsewhere is what its template
cost there among the newer runs, as far as known, else what the engines differ by at large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.routing.evaluate import runs_by_template
from lakehouse_core.routing.features import ScanFacts
from lakehouse_core.routing.predict_choice import RoutePolicy
from lakehouse_core.routing.predict_history import logs_of
from lakehouse_core.routing.predict_training import Trained, train
from lakehouse_core.routing.profiles_history import lessons_of

if TYPE_CHECKING:
    from lakehouse_core.routing.profiles import Valuation
    from lakehouse_core.routing.profiles_history import Lessons, PastRun
    from lakehouse_core.sql.inspector import Inspector

LEAST_RUNS = 60
_OLDER = 0.75


@dataclass(frozen=True, slots=True)
class Proof:
    """How a model did on runs that it had not seen.

    Attributes:
        trained: trained on all runs when it is worth using, else on the older ones.
        ours: total of its choices, in the unit of the objective.
        default: total of the engine that training took for the best single one.
        tried: runs it was tried on.
    """

    trained: Trained
    ours: float
    default: float
    tried: int

    @property
    def is_worth_using(self) -> bool:
        """Whether it is not worse than always taking the default."""
        return self.ours <= self.default * (1 + 1e-9)

    @property
    def name(self) -> str:
        """Version and digest."""
        return f"v{self.trained.learned.version}-{self.trained.learned.digest}"


def prove(past: list[PastRun], value_of: Valuation, inspector: Inspector) -> Proof | None:
    """Train and try; None when there is too little, or nothing to compare."""
    if len(past) < LEAST_RUNS:
        return None
    lessons = lessons_of(past, value_of, inspector)
    if lessons is None or not np.isfinite(lessons.history.values).any():
        return None
    proof = _tried(lessons)
    if not proof.is_worth_using:
        return proof
    trained = Trained(lessons.history.engines, lessons.space, train(lessons.history))
    return replace(proof, trained=trained)


def _tried(lessons: Lessons) -> Proof:
    history, shapes = lessons.history, lessons.shapes
    cut = int(len(shapes) * _OLDER)
    older = history.rows(np.arange(cut))
    learned = train(older)
    runs = runs_by_template(older, shapes[:cut])
    policy = RoutePolicy(history.engines, lessons.space, learned, runs.get)
    column = {name: place for place, name in enumerate(history.engines)}
    costs = np.exp(logs_of(history.rows(np.arange(cut, len(shapes)))).filled)
    sizes = np.exp2(history.size[cut:]) - 1.0
    ours = default = 0.0
    for shape, size, cost in zip(shapes[cut:], sizes, costs, strict=True):
        scan = ScanFacts(bytes=float(size) if np.isfinite(size) else None)
        ours += float(cost[column[policy.choose(shape, scan).engine]])
        default += float(cost[learned.default])
    trained = Trained(history.engines, lessons.space, learned)
    return Proof(trained, ours, default, len(shapes) - cut)

"""Offline evaluation: train on one part of a workload, route the rest, and count.

report = evaluate(read_workload(queries, timings, "seconds"))
report.total["ours"], report.ratio_to_oracle

The predictor is the one that routes live queries; only its evidence comes from the files.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.routing.features import NO_SCAN, FeatureSpace, ScanFacts
from lakehouse_core.routing.predict_choice import RoutePolicy
from lakehouse_core.routing.predict_history import History, logs_of
from lakehouse_core.routing.predict_local import MOST_RUNS, TemplateRuns
from lakehouse_core.routing.predict_training import train
from lakehouse_core.sql import Inspector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.routing.evaluate_data import Workload
    from lakehouse_core.routing.predict_choice import Choice
    from lakehouse_core.sql.shape import StatementShape

Matrix = Any  # NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What routing would have cost, in the unit of the objective.

    Attributes:
        total: of our choices, the best single engine (known in hindsight), the oracle, a random
            engine each time, and every engine alone.
        ratio_to_oracle: our total by the oracle's; 1 is perfect.
        saving_share: what we saved of what the oracle saves against the best single engine; None
            when there is nothing to save.
        p95: of single statements under our choices.
        p95_of: the same for the other policies.
        picked_best_share: statements that went to the engine that was best for them.
        abstained_share: statements left to the default for lack of evidence.
        known_share: statements whose template was in the training part.
        best_single_engine: which one it is.
        default_engine: which one training took for it.
        train_seconds: reading the texts of the training part and learning.
        decide_ms_p50: one decision, from the text on; the median.
        decide_ms_p95: the 95th percentile.
        train_queries: statements learnt from.
        test_queries: statements routed.
        model: version and digest, so that a result can be told from another.
    """

    total: dict[str, float]
    ratio_to_oracle: float
    saving_share: float | None
    p95: float
    p95_of: dict[str, float]
    picked_best_share: float
    abstained_share: float
    known_share: float
    best_single_engine: str
    default_engine: str
    train_seconds: float
    decide_ms_p50: float
    decide_ms_p95: float
    train_queries: int
    test_queries: int
    model: str


def evaluate(workload: Workload, *, seed: int = 0) -> tuple[Evaluation, list[Choice]]:
    """Train, route, count; also the choice for every statement of the test part, in order."""
    inspector = Inspector()
    started = time.perf_counter()
    policy = learn(workload, np.flatnonzero(~workload.is_test), inspector, seed=seed)
    train_seconds = time.perf_counter() - started
    tested = np.flatnonzero(workload.is_test)
    routed = _route(workload, tested, policy, inspector)
    return _counted(workload, tested, policy, routed, train_seconds), routed.choices


def learn(
    workload: Workload, rows: Sequence[int] | Any, inspector: Inspector, *, seed: int = 0
) -> RoutePolicy:
    """The policy that some rows of a workload teach."""
    shapes = [inspector.shape(workload.texts[row], workload.dialects[row]) for row in rows]
    templates = {shape.template_id: shape.template for shape in shapes}
    number = {template_id: place for place, template_id in enumerate(templates)}
    space = FeatureSpace.learned(templates.values())
    sizes = np.log2(1.0 + workload.scan_bytes[rows])
    history = History(
        engines=workload.engines,
        template=np.array([number[shape.template_id] for shape in shapes], np.int64),
        matrix=space.matrix(shapes, [_scan(workload, row) for row in rows]),
        size=sizes,
        values=workload.values[rows],
    )
    learned = train(history, seed=seed, has_texts=True)
    runs = runs_by_template(history, shapes, learned.told)
    return RoutePolicy(workload.engines, space, learned, runs.get)


@dataclass(frozen=True, slots=True)
class _Routed:
    """The choices for the test part, how long each took, and whether its template was known."""

    choices: list[Choice]
    milliseconds: list[float]
    known: list[bool]


def runs_by_template(
    history: History, shapes: Sequence[StatementShape], told: Matrix | None = None
) -> dict[str, TemplateRuns]:
    """The newest runs of each template, as a policy takes them; beyond what a model told."""
    logs = logs_of(history).known
    if told is not None:
        logs = logs - told
    rows: dict[str, list[int]] = {}
    for row, shape in enumerate(shapes):
        rows.setdefault(shape.template_id, []).append(row)
    return {
        template_id: TemplateRuns.of(
            logs[some[-MOST_RUNS:]],
            history.size[some[-MOST_RUNS:]],
            np.ones(len(some[-MOST_RUNS:])),
        )
        for template_id, some in rows.items()
    }


def _scan(workload: Workload, row: int) -> ScanFacts:
    known = workload.scan_bytes[row]
    return ScanFacts(bytes=float(known)) if np.isfinite(known) else NO_SCAN


def _route(workload: Workload, tested: Any, policy: RoutePolicy, inspector: Inspector) -> _Routed:
    routed = _Routed([], [], [])
    present = np.isfinite(workload.values)
    engines = workload.engines
    for row in tested:
        # An engine without a timing is one that cannot take the statement.
        feasible = [engines[column] for column in np.flatnonzero(present[row])]
        scan = _scan(workload, row)
        started = time.perf_counter()
        shape = inspector.shape(workload.texts[row], workload.dialects[row])
        routed.choices.append(policy.choose(shape, scan, feasible))
        routed.milliseconds.append((time.perf_counter() - started) * 1_000)
        routed.known.append(policy.knows(shape.template_id))
    return routed


def _counted(
    workload: Workload,
    tested: Any,
    policy: RoutePolicy,
    routed: _Routed,
    train_seconds: float,
) -> Evaluation:
    choices, milliseconds = routed.choices, routed.milliseconds
    values = workload.values[tested]
    engines = workload.engines
    rows = np.arange(len(values))
    column = {name: place for place, name in enumerate(engines)}
    picked = values[rows, [column[choice.engine] for choice in choices]]
    best = np.nanmin(values, axis=1)
    alone = {name: _alone(values, column[name], policy) for name in engines}
    totals = {name: float(one.sum()) for name, one in alone.items()}
    single = min(totals, key=lambda name: totals[name])
    at_random = np.nanmean(values, axis=1)
    saved, possible = totals[single] - picked.sum(), totals[single] - best.sum()
    return Evaluation(
        total={
            "ours": float(picked.sum()),
            "best_single": totals[single],
            "oracle": float(best.sum()),
            "random": float(at_random.sum()),
            **totals,
        },
        ratio_to_oracle=float(picked.sum() / best.sum()) if best.sum() > 0 else 1.0,
        saving_share=float(saved / possible) if possible > 0 else None,
        p95=float(np.quantile(picked, 0.95)),
        p95_of={
            "best_single": float(np.quantile(alone[single], 0.95)),
            "oracle": float(np.quantile(best, 0.95)),
            **{name: float(np.quantile(one, 0.95)) for name, one in alone.items()},
        },
        picked_best_share=float((picked <= best * (1 + 1e-9)).mean()),
        abstained_share=float(np.mean([one.basis == "abstained" for one in choices])),
        known_share=float(np.mean(routed.known)),
        best_single_engine=single,
        default_engine=policy.default,
        train_seconds=train_seconds,
        decide_ms_p50=float(np.quantile(milliseconds, 0.5)),
        decide_ms_p95=float(np.quantile(milliseconds, 0.95)),
        train_queries=int((~workload.is_test).sum()),
        test_queries=len(choices),
        model=f"v{policy.learned.version}-{policy.learned.digest}",
    )


def _alone(values: Matrix, column: int, policy: RoutePolicy) -> Any:
    """One engine for everything; what it cannot take goes to the next best of the training."""
    found = values[:, column].copy()
    for other in policy.learned.order:
        found = np.where(np.isfinite(found), found, values[:, other])
    return found

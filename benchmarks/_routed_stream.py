"""Routing as it happens: statements arrive one by one, and only the engine that ran one is known.

simulate("drift", seed=0) → regret against the best single engine and the oracle, before and after
whatever happens half-way. Every world is seeded.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.domain.query import EngineId, StatementKind
from lakehouse_core.routing.predict import Conscience, LearningPredictor
from lakehouse_core.routing.predict_explore import Budget
from lakehouse_core.routing.profiles import ProfileBook, Run
from lakehouse_core.routing.request import Candidate, Request, StatementFacts
from lakehouse_core.sql import Inspector

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

START = datetime(2026, 1, 5, tzinfo=UTC)
ENGINES = ("alpha", "beta", "gamma")
TEMPLATES = 12
STEPS = 3_000
WINDOW = 50  # runs of a template within which a change must be noticed


@dataclass
class World:
    """What is true."""

    seconds: NDArray[np.float64]  # template x engine
    price: NDArray[np.float64]  # per second, engine
    noise: float = 0.15
    failing: int | None = None


def _drift(world: World) -> None:
    """Each template's best engine becomes four times as slow."""
    best = world.seconds.argmin(axis=1)
    world.seconds[np.arange(TEMPLATES), best] *= 4


def _reprice(world: World) -> None:
    world.price = world.price * np.array([6.0, 1.0, 1.0])


def _fail(world: World) -> None:
    world.failing = 0


def _nothing(_: World) -> None:
    return


# Name → spread between engines, what happens half-way.
WORLDS: dict[str, tuple[float, Callable[[World], None]]] = {
    "steady": (0.8, _nothing),
    "drift": (0.8, _drift),
    "price_change": (0.4, _reprice),
    "failing_engine": (0.5, _fail),
    "poisoned": (0.8, _nothing),
    "equal_engines": (0.0, _nothing),
}


def simulate(name: str, *, seed: int = 0, steps: int = STEPS) -> dict[str, Any]:
    """Route a stream of statements and compare what it cost."""
    spread, happens = WORLDS[name]
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    base = np.exp(rng.normal(1, 1, (TEMPLATES, 1)))
    world = World(base * np.exp(rng.normal(0, spread, (TEMPLATES, len(ENGINES)))), np.ones(3))

    def valued(engine: str, seconds: Any, scan_bytes: Any) -> Any:
        del scan_bytes
        return seconds * world.price[ENGINES.index(engine)]

    inspector = Inspector()
    now = [START]
    book = ProfileBook()
    predictor = LearningPredictor(
        book,
        valuations={"cost": valued},
        conscience=Conscience(budget=Budget(share=0.05, worth=0.05)),
        inspector=inspector,
        clock=lambda: now[0],
    )
    candidates = [Candidate(one, EngineId(one), "any", "trino", 0, None) for one in ENGINES]
    costs: list[NDArray[np.float64]] = []
    ours: list[float] = []
    since = np.zeros(TEMPLATES)
    late: list[tuple[float, float]] = []
    for step in range(steps):
        if step == steps // 2:
            happens(world)
            since[:] = 0
        template = int(rng.integers(TEMPLATES))
        sql = f"SELECT c{template} FROM t WHERE x = {step}"  # noqa: S608 made up
        template_id = inspector.fingerprint(sql, "trino").template_id
        facts = StatementFacts(template_id, StatementKind.SELECT, ("t",))
        request = Request(sql=sql, dialect="trino", gateway_id=f"{seed}-{step}")
        found = predictor.choose("cost", request, facts, candidates)
        place = ENGINES.index(str(found.engine_id or ENGINES[0]))
        seconds = world.seconds[template] * np.exp(rng.normal(0, world.noise, 3))
        failed = np.array([engine == world.failing for engine in range(3)]) & (rng.random(3) < 0.3)
        cost = seconds * world.price
        cost = cost + failed * cost.max()
        told = seconds[place]
        if name == "poisoned" and step == steps // 2:
            told = 1e7
        engine, is_failed = ENGINES[place], bool(failed[place])
        book.record(Run(template_id, engine, now[0], float(told), failed=is_failed))
        costs.append(cost)
        ours.append(float(cost[place]))
        since[template] += 1
        if step >= steps // 2 and since[template] > WINDOW:
            expected = world.seconds[template] * world.price
            expected = expected + expected.max() * 0.3 * (np.arange(3) == world.failing)
            best = int(expected.argmin())
            late.append((float(cost[place]), float(cost[best])))
        now[0] += timedelta(seconds=30)
    return _summary(name, seed, np.array(costs), np.array(ours), late)


def _summary(
    name: str, seed: int, costs: Any, ours: Any, late: list[tuple[float, float]]
) -> dict[str, Any]:
    half = len(ours) // 2
    parts: dict[str, Any] = {"world": name, "seed": seed}
    for label, rows in (("before", slice(half // 2, half)), ("after", slice(half, None))):
        single = costs[rows].sum(axis=0).min()
        parts[f"{label}_above_best_single"] = float(ours[rows].sum() / single - 1)
        parts[f"{label}_above_oracle"] = float(ours[rows].sum() / costs[rows].min(axis=1).sum() - 1)
    # Against who knows each template's best engine, but not the luck of a single run.
    paid, wanted = np.array(late).sum(axis=0)
    parts["late_above_oracle"] = float(paid / wanted - 1)
    return parts

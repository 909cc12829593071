"""Made-up workloads with known structure: statements, and what each engine would need for them.

workload("scan_crossover", seed=1) → queries and timings as Arrow tables, in the form that
`lakehelm route evaluate` reads. Timings follow a cost model per shape; nothing in the product knows
these shapes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.random import Generator

TABLES = {f"lake.sales.fact{number}": 10.0 ** (7 + 4 * number / 9) for number in range(10)}
DIMENSIONS = tuple(f"lake.sales.dim{number}" for number in range(12))
AGGREGATES = ("SUM", "AVG", "MAX", "COUNT", "MIN")


@dataclass(frozen=True)
class Template:
    """A statement without its literals."""

    number: int
    fact: str
    joins: int
    aggregates: int
    window: bool
    sort: bool
    like: bool
    distinct: bool
    groups: int
    dimensions: tuple[str, ...]

    def text(self, rng: Generator, days: int) -> str:
        """One text of it over some days."""
        first = int(rng.integers(0, 300))
        start = np.datetime64("2024-01-01") + first
        items = [f"f.g{self.number}_{one}" for one in range(self.groups)]
        items += [
            f"{AGGREGATES[one % 5]}({'DISTINCT ' if self.distinct and one == 0 else ''}f.m{one})"
            f" AS a{one}"
            for one in range(self.aggregates)
        ]
        if self.window:
            items.append("ROW_NUMBER() OVER (PARTITION BY f.g0 ORDER BY f.m0 DESC) AS place")
        text = f"SELECT {', '.join(items) or 'f.c0, f.c1'} FROM {self.fact} f"  # noqa: S608 made up
        for number, name in enumerate(self.dimensions):
            text += f" JOIN {name} d{number} ON f.k{number} = d{number}.id"
        text += f" WHERE f.day >= DATE '{start}' AND f.day < DATE '{start + days}'"
        text += f" AND f.tenant = {int(rng.integers(1, 1000))} AND f.x{self.number} > 5"
        if self.like:
            text += f" AND f.note LIKE '%{int(rng.integers(1, 99))}%'"
        if self.groups and self.aggregates:
            text += " GROUP BY " + ", ".join(items[: self.groups])
        if self.sort:
            text += " ORDER BY 1 LIMIT 100"
        return text


def templates(rng: Generator, count: int) -> list[Template]:
    """Statements of many forms over a few tables."""
    found = []
    for number in range(count):
        joins = int(rng.integers(0, 7))
        found.append(
            Template(
                number=number,
                fact=str(rng.choice(list(TABLES))),
                joins=joins,
                aggregates=int(rng.integers(0, 4)),
                window=bool(rng.random() < 0.25),
                sort=bool(rng.random() < 0.5),
                like=bool(rng.random() < 0.3),
                distinct=bool(rng.random() < 0.25),
                groups=int(rng.integers(0, 4)),
                dimensions=tuple(rng.choice(DIMENSIONS, joins, replace=False)),
            )
        )
    return found


@dataclass(frozen=True)
class Shape:
    """How timings come about.

    Attributes:
        engines: name → (seconds to start, seconds per GB, factor per join, factor for windows).
        interaction: spread of what a template has in particular with an engine.
        noise: spread of single runs.
        tail: share of runs that take many times as long.
        seen: share of test statements whose template is in the training part.
        failing: engine → share of its runs that fail.
        missing: share of timings that are not there.
        logged: training statements ran on one engine only.
        tables: fact table → engine that has it cached.
    """

    engines: dict[str, tuple[float, float, float, float]]
    templates: int = 40
    train: int = 800
    test: int = 400
    interaction: float = 0.0
    noise: float = 0.15
    tail: float = 0.0
    seen: float = 1.0
    failing: dict[str, float] = field(default_factory=dict)
    missing: float = 0.0
    logged: bool = False
    cached: bool = False
    has_sizes: bool = True
    days: tuple[int, int] = (1, 30)
    poisoned: bool = False


ALIKE = dict.fromkeys(("alpha", "beta", "gamma"), (0.5, 1.0, 1.15, 1.5))
CROSSING = {
    "small": (0.05, 8.0, 1.2, 1.5),
    "middle": (1.5, 1.5, 1.2, 1.5),
    "large": (8.0, 0.4, 1.2, 1.5),
}
JOINING = {"hash": (0.3, 1.0, 1.05, 1.5), "loop": (0.1, 0.4, 1.7, 1.5)}
WINDOWING = {"steady": (0.3, 1.0, 1.15, 1.2), "brittle": (0.3, 0.7, 1.15, 6.0)}
DOMINANT = {"best": (0.2, 0.5, 1.1, 1.2), "slow": (1.0, 2.0, 1.2, 1.5), "slower": (2, 3, 1.2, 1.5)}
MANY = {f"e{number}": (0.3 * number, 3.0 / (1 + number), 1.1, 1.5) for number in range(8)}

SHAPES: dict[str, Shape] = {
    "template_interaction": Shape(ALIKE, interaction=0.8),
    "template_weak": Shape(ALIKE, interaction=0.25, noise=0.3),
    "template_heavy_tail": Shape(ALIKE, interaction=0.8, noise=0.4, tail=0.02),
    "template_few_runs": Shape(ALIKE, interaction=0.8, templates=150, train=450),
    "failing_engine": Shape(ALIKE, interaction=0.5, failing={"beta": 0.3}),
    "missing_timings": Shape(ALIKE, interaction=0.8, missing=0.4),
    "logged_only": Shape(ALIKE, interaction=0.8, logged=True, train=2_000),
    "poisoned": Shape(ALIKE, interaction=0.8, poisoned=True),
    "day_and_year": Shape(CROSSING, days=(1, 365), templates=20),
    "day_and_year_unsaid": Shape(CROSSING, days=(1, 365), templates=20, has_sizes=False),
    "scan_crossover": Shape(CROSSING, seen=0.0, templates=120, days=(1, 365)),
    "scan_unsaid": Shape(CROSSING, seen=0.0, templates=120, days=(1, 365), has_sizes=False),
    "join_crossover": Shape(JOINING, seen=0.0, templates=120),
    "window_crossover": Shape(WINDOWING, seen=0.0, templates=120),
    "cached_tables": Shape(ALIKE, seen=0.0, templates=120, cached=True),
    "half_seen": Shape(CROSSING, seen=0.5, templates=100, days=(1, 365), interaction=0.3),
    "many_engines": Shape(MANY, seen=0.5, templates=100, days=(1, 365), interaction=0.3),
    "unexplained": Shape(ALIKE, seen=0.0, interaction=0.8, templates=80),
    "unexplained_heavy": Shape(
        ALIKE, seen=0.0, interaction=0.8, templates=60, tail=0.02, noise=0.5
    ),
    "pure_noise": Shape(ALIKE, noise=0.6, seen=0.5),
    "noise_heavy_tail": Shape(ALIKE, noise=0.8, tail=0.03, seen=0.5),
    "dominant": Shape(DOMINANT, seen=0.5, noise=0.3, interaction=0.2),
    "few_rows": Shape(ALIKE, interaction=0.8, templates=8, train=30, test=200),
    "few_rows_unseen": Shape(CROSSING, seen=0.0, templates=30, train=40, days=(1, 365)),
    "equal_engines": Shape(ALIKE, noise=0.02, seen=0.5),
}


def workload(
    name: str, *, seed: int = 0, train: int | None = None, test: int | None = None
) -> tuple[pa.Table, pa.Table]:
    """Queries and timings of a shape; fewer of them where that is enough."""
    shape = SHAPES[name]
    shape = replace(shape, train=train or shape.train, test=test or shape.test)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    known = templates(rng, shape.templates)
    fresh = [replace(one, number=one.number + 1_000) for one in templates(rng, shape.templates)]
    special = {
        (one.number, engine): float(np.exp(rng.normal(0, shape.interaction)))
        for one in (*known, *fresh)
        for engine in shape.engines
    }
    owner = {table: str(rng.choice(list(shape.engines))) for table in TABLES}
    queries: list[dict[str, Any]] = []
    timings: list[dict[str, Any]] = []
    for row in range(shape.train + shape.test):
        is_test = row >= shape.train
        is_known = not is_test or rng.random() < shape.seen
        template = (known if is_known else fresh)[int(rng.integers(shape.templates))]
        days = int(np.exp(rng.uniform(*np.log(shape.days))))
        size = TABLES[template.fact] * days / 30 * float(rng.uniform(0.8, 1.2))
        query: dict[str, Any] = {
            "query_id": f"q{row}",
            "sql": template.text(rng, days),
            "dialect": "trino",
            "split": "test" if is_test else "train",
        }
        if shape.has_sizes:
            query["scan_bytes"] = int(size)
        queries.append(query)
        timings += _timings(shape, template, size, rng, special, owner, query["query_id"], is_test)
    if shape.poisoned:
        timings[7]["seconds"] = 1e9
    return pa.Table.from_pylist(queries), pa.Table.from_pylist(timings)


def _timings(  # noqa: PLR0913, PLR0917 the whole cost model
    shape: Shape,
    template: Template,
    size: float,
    rng: Generator,
    special: dict[tuple[int, str], float],
    owner: dict[str, str],
    query_id: str,
    is_test: bool,
) -> list[dict[str, Any]]:
    work = 1 + 0.2 * template.aggregates + 0.3 * template.sort + 0.5 * template.like
    shared = float(np.exp(rng.normal(0, 0.2)))
    only = str(rng.choice(list(shape.engines))) if shape.logged and not is_test else None
    found: list[dict[str, Any]] = []
    for engine, (start, per_gb, per_join, per_window) in shape.engines.items():
        seconds = start + per_gb * size / 1e9 * work
        seconds *= per_join**template.joins * (per_window if template.window else 1.0)
        seconds *= special[template.number, engine] * shared
        if shape.cached and owner[template.fact] == engine:
            seconds *= 0.3
        seconds *= float(np.exp(rng.normal(0, shape.noise)))
        if rng.random() < shape.tail:
            seconds *= float(rng.pareto(1.5) + 1) * 5
        failed = bool(rng.random() < shape.failing.get(engine, 0.0))
        is_missing = (only is not None and engine != only) or rng.random() < shape.missing
        if is_missing and not (engine == list(shape.engines)[-1] and not found):
            continue
        found.append(
            {
                "query_id": query_id,
                "engine": engine,
                "seconds": seconds * (0.5 if failed else 1.0),
                "cost_usd": seconds * 0.0001 + size / 1e12 * 5 * (engine == "large"),
                "failed": failed,
            }
        )
    return found

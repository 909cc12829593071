"""What is sent when and where: an endless sequence that a seed decides. Pure.

Who asks, what and where is drawn from the seed alone, also when an engine is away or slow: two runs
of one seed differ only in the times that pipelines write into their rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from lakehouse_core.demo.personas import PERSONAS, Persona, Role, personas_of
from lakehouse_core.demo.statements import DASHBOARDS, DIALECT, MISTAKES, QUESTIONS, Draw
from lakehouse_core.demo.writes import write_batch
from lakehouse_core.engines.base import Statement
from lakehouse_core.sql.retarget import retarget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.engine import EngineCapabilities

WRITE_EVERY_SECONDS = 30.0
# A demo left running for days shall not drown its tables in snapshots.
WRITES_BEFORE_SLOWING, SLOW_WRITE_EVERY_SECONDS = 240, 300.0
MISTAKE_SHARE = 0.08
_ROLE_WEIGHTS = {Role.BI: 7, Role.ANALYST: 3}
# Readers of the embedded engine cost least: on two cores most questions go there.
_READ_WEIGHTS = {"duckdb": 5}
_READ_WEIGHT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement of the plan.

    Attributes:
        after_seconds: when, counted from the start.
        engine_id: where: an engine, or the SQL endpoint in front of all of them.
        role: what for.
        statement: what, in the dialect of where it goes.
    """

    after_seconds: float
    engine_id: str
    role: Role
    statement: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """What decides the sequence.

    Attributes:
        engines: the engines that take part, and what they can do.
        rate_per_second: reading statements per second, over all engines.
        anchor: the instant where the lake's events end.
        endpoint: the name of the SQL endpoint, for the personas that use it; None: there is none,
            they ask the engines directly.
    """

    engines: Mapping[str, EngineCapabilities]
    seed: int
    rate_per_second: float
    anchor: datetime
    clock: Clock
    endpoint: str | None = None


def plan(settings: PlanSettings) -> Iterator[Step]:
    """The steps in the order of their time; it never ends."""
    reads, writes = _reads(settings), _writes(settings)
    read, write = next(reads), next(writes, None)
    while True:
        if write is not None and write.after_seconds <= read.after_seconds:
            yield write
            write = next(writes, None)
        else:
            yield read
            read = next(reads)


def _reads(settings: PlanSettings) -> Iterator[Step]:
    random = Random(f"reads-{settings.seed}")  # noqa: S311 a demo needs repeatable draws
    engines = sorted(settings.engines)
    weights = [_READ_WEIGHTS.get(settings.engines[name].dialect, _READ_WEIGHT) for name in engines]
    draw = Draw(random, settings.anchor)
    after_seconds = 0.0
    while True:
        (engine_id,) = random.choices(engines, weights)
        (role,) = random.choices(list(_ROLE_WEIGHTS), list(_ROLE_WEIGHTS.values()))
        persona = random.choice(personas_of(role))
        dialect = settings.engines[engine_id].dialect
        if persona.is_routed and settings.endpoint is not None:
            engine_id, dialect = settings.endpoint, DIALECT
        statement = _question(persona, draw, dialect)
        yield Step(after_seconds=after_seconds, engine_id=engine_id, role=role, statement=statement)
        after_seconds += random.expovariate(settings.rate_per_second)


def _question(persona: Persona, draw: Draw, dialect: str) -> Statement:
    random = draw.random
    if persona.role is Role.ANALYST and random.random() < MISTAKE_SHARE:
        sql = random.choice(MISTAKES)
        return _statement(persona, "scratch", sql)
    template = random.choice(DASHBOARDS if persona.role is Role.BI else QUESTIONS)
    sql = retarget(template.sql, template.values(draw), source=DIALECT, target=dialect)
    return _statement(persona, template.name, sql)


def _writes(settings: PlanSettings) -> Iterator[Step]:
    random = Random(f"writes-{settings.seed}")  # noqa: S311 as above
    writers = sorted(name for name, can in settings.engines.items() if can.can_write)
    pipelines: Sequence[Persona] = [p for p in PERSONAS if p.role is Role.ETL]
    number, after_seconds = 0, WRITE_EVERY_SECONDS / 3
    while writers:
        engine_id = writers[number % len(writers)]
        batch = write_batch(number, settings.clock(), random)
        sql = retarget(
            batch.template.sql,
            batch.values,
            source=DIALECT,
            target=settings.engines[engine_id].dialect,
        )
        persona = pipelines["order" in batch.template.name]
        yield Step(
            after_seconds=after_seconds,
            engine_id=engine_id,
            role=Role.ETL,
            statement=_statement(persona, batch.template.name, sql),
        )
        number += 1
        is_early = number < WRITES_BEFORE_SLOWING
        after_seconds += WRITE_EVERY_SECONDS if is_early else SLOW_WRITE_EVERY_SECONDS


def _statement(persona: Persona, what: str, sql: str) -> Statement:
    return Statement(sql=sql, user=persona.user, source=persona.source, tags=persona.tags(what))

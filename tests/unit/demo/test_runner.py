"""The workload on engines that misbehave: it never dies and says what it skipped."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from lakehouse_core.demo import runner
from lakehouse_core.demo.personas import Role
from lakehouse_core.demo.plan import Step
from lakehouse_core.demo.runner import Tally, Workload
from lakehouse_core.domain.errors import EngineUnavailableError, QueryFailedError
from lakehouse_core.engines.base import Statement
from tests.unit.demo.engines import MemoryEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

DEADLINE_SECONDS = 30.0


def step(engine: str, after: float = 0.0, role: Role = Role.BI) -> Step:
    statement = Statement(sql="SELECT 1", user="ana")
    return Step(after_seconds=after, engine_id=engine, role=role, statement=statement)


def paced(name: str, engine: MemoryEngine, count: int) -> Iterator[Step]:
    """Steps that each wait for the one before to arrive, so that no engine is behind."""
    for number in range(count):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(engine.asked) < number:
            assert time.monotonic() < deadline, "the engine was not asked"
            time.sleep(0.001)
        yield step(name)


def run(
    steps: Iterator[Step], *engines: MemoryEngine, said: list[str] | None = None
) -> tuple[dict[str, Tally], list[str]]:
    said = [] if said is None else said
    workload = Workload({str(engine.engine_id): engine for engine in engines}, said.append)
    tallies = workload.run(steps, None)
    return {tally.engine: tally for tally in tallies}, said


def test_statements_reach_their_engine_and_are_counted() -> None:
    engine = MemoryEngine("a")
    steps = [step("a"), step("a", role=Role.ETL)]

    tallies, said = run(iter(steps), engine)

    assert tallies["a"] == Tally("a", finished=2, written=1)
    assert engine.is_closed
    assert said[-1].endswith("a 2 ok")


def test_a_failed_statement_is_counted_and_told() -> None:
    def refuse(_: Statement) -> None:
        raise QueryFailedError("no such table\nat line 1")

    engine = MemoryEngine("a", refuse)
    tallies, said = run(paced("a", engine, 3), engine)

    assert tallies["a"].failed == 3
    assert said[0] == "a failed ana: no such table"


def test_an_engine_that_is_away_is_skipped_and_the_others_go_on() -> None:
    def be_away(_: Statement) -> None:
        away.is_healthy = False
        raise EngineUnavailableError("nobody there")

    away, here = MemoryEngine("away", be_away), MemoryEngine("here")
    said: list[str] = []

    def steps() -> Iterator[Step]:
        yield from paced("away", away, 1)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not said:
            assert time.monotonic() < deadline, "nobody noticed"
            time.sleep(0.001)
        for _ in range(5):
            yield step("away")
        yield from paced("here", here, 5)

    tallies, _ = run(steps(), away, here, said=said)

    assert tallies["away"].skipped_away == 6
    assert tallies["away"].is_away
    assert len(away.asked) == 1
    assert tallies["here"].finished == 5
    assert said[0] == "away is away, going on without it: nobody there"


def test_an_engine_that_comes_back_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PROBE_EVERY_SECONDS", 0.0)
    said: list[str] = []

    def be_away_once(_: Statement) -> None:
        if not said:
            raise EngineUnavailableError("restarting")

    engine = MemoryEngine("a", be_away_once)

    def steps() -> Iterator[Step]:
        yield step("a")
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not said:
            assert time.monotonic() < deadline, "nobody noticed"
            time.sleep(0.001)
        yield step("a")

    tallies, _ = run(steps(), engine, said=said)

    assert tallies["a"] == Tally("a", finished=1, skipped_away=1)
    assert said[:2] == ["a is away, going on without it: restarting", "a is back"]


def test_a_driver_that_raises_anything_does_not_end_the_run() -> None:
    def explode(_: Statement) -> None:
        raise RuntimeError("driver bug")

    engine = MemoryEngine("a", explode)
    tallies, said = run(paced("a", engine, 6), engine)

    assert tallies["a"].failed == 6
    assert "RuntimeError: driver bug" in said[0]


def test_an_engine_that_is_behind_is_not_piled_upon() -> None:
    released = threading.Event()
    engine = MemoryEngine("a", lambda _: assert_true(released.wait(DEADLINE_SECONDS)))

    def steps() -> Iterator[Step]:
        for _ in range(50):
            yield step("a")
        released.set()

    tallies, _ = run(steps(), engine)

    most = runner.WORKERS_PER_ENGINE + runner.BACKLOG_PER_ENGINE
    assert tallies["a"].skipped_busy >= 50 - most
    assert len(engine.asked) + tallies["a"].skipped_busy == 50


def test_the_run_ends_when_its_time_is_up_or_it_is_stopped() -> None:
    engine = MemoryEngine("a")
    workload = Workload({"a": engine}, lambda _: None)

    (timed,) = workload.run(iter([step("a"), step("a", after=10.0)]), seconds=5.0)
    assert timed.finished == 1

    workload = Workload({"a": MemoryEngine("a")}, lambda _: None)
    threading.Timer(0.05, workload.stop).start()
    (stopped,) = workload.run(iter([step("a", after=3_600.0)]), seconds=None)
    assert stopped.finished == 0


def assert_true(value: bool) -> None:
    assert value

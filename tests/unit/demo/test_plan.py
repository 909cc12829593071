"""The workload as a sequence: who asks what, where and when."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.demo.personas import PERSONAS, Role
from lakehouse_core.demo.plan import (
    WRITE_EVERY_SECONDS,
    WRITES_BEFORE_SLOWING,
    PlanSettings,
    Step,
    plan,
)
from lakehouse_core.demo.statements import DASHBOARDS, DIALECT, MISTAKES, QUESTIONS
from lakehouse_core.domain.query import StatementKind
from lakehouse_core.sql import inspect
from tests.factories import NOW
from tests.unit.demo.engines import capabilities

if TYPE_CHECKING:
    from typing import Any

pytestmark = pytest.mark.slow

ALL = {
    "duckdb": capabilities("duckdb", can_write=False),
    "spark": capabilities("spark"),
    "trino": capabilities("trino"),
}


@pytest.fixture(scope="module")
def taken() -> list[Step]:
    """Some twenty minutes of a workload."""
    return steps(1_300)


def steps(count: int, **given: Any) -> list[Step]:
    settings: dict[str, Any] = {
        "engines": ALL,
        "seed": 42,
        "rate_per_second": 1.0,
        "anchor": NOW,
        "clock": lambda: NOW,
    }
    return list(islice(plan(PlanSettings(**{**settings, **given})), count))


def test_one_seed_gives_one_sequence() -> None:
    assert steps(150) == steps(150)


def test_another_seed_gives_another_sequence() -> None:
    assert steps(50) != steps(50, seed=43)


def test_steps_come_in_the_order_of_their_time_at_the_asked_rate() -> None:
    reads = [step for step in steps(800, rate_per_second=5.0) if step.role is not Role.ETL]
    times = [step.after_seconds for step in reads]

    assert times == sorted(times)
    assert len(times) / times[-1] == pytest.approx(5.0, rel=0.15)


def test_every_engine_is_asked_and_only_writers_write(taken: list[Step]) -> None:
    assert set(Counter(step.engine_id for step in taken)) == set(ALL)
    assert {step.engine_id for step in taken if step.role is Role.ETL} == {"spark", "trino"}


def test_pipelines_write_at_a_steady_pace_and_slow_down_on_a_long_run() -> None:
    taken = steps(450, rate_per_second=0.02)
    writes = [step.after_seconds for step in taken if step.role is Role.ETL]
    gaps = [later - earlier for earlier, later in pairwise(writes)]

    assert set(gaps[: WRITES_BEFORE_SLOWING - 1]) == {WRITE_EVERY_SECONDS}
    assert min(gaps[WRITES_BEFORE_SLOWING:]) > WRITE_EVERY_SECONDS


def test_without_a_writer_nobody_writes() -> None:
    engines = {"duckdb": ALL["duckdb"]}

    assert Role.ETL not in {step.role for step in steps(100, engines=engines)}


def test_every_persona_has_its_say_with_its_team(taken: list[Step]) -> None:
    assert {s.statement.user for s in taken} == {p.user for p in PERSONAS}
    for persona in PERSONAS:
        mine = [s.statement for s in taken if s.statement.user == persona.user]
        assert {s.source for s in mine} == {persona.source}
        assert all(f"team:{persona.team}" in s.tags for s in mine)


def test_where_there_is_an_endpoint_some_ask_it_in_its_dialect_and_the_others_the_engines() -> None:
    taken = steps(400, endpoint="SQL endpoint")
    routed = {persona.user for persona in PERSONAS if persona.is_routed}

    asked = Counter((step.statement.user in routed, step.engine_id) for step in taken)
    assert set(asked) == {(True, "SQL endpoint"), *((False, name) for name in ALL)}
    direct = steps(400)
    assert [s.statement.tags for s in taken] == [s.statement.tags for s in direct]
    for step in taken:
        if step.engine_id == "SQL endpoint" and step.statement.sql not in MISTAKES:
            assert inspect(step.statement.sql, DIALECT).error is None, step.statement.sql


def test_dashboards_repeat_templates_with_other_literals(taken: list[Step]) -> None:
    texts = {
        step.statement.sql
        for step in taken
        if step.engine_id == "trino" and "dashboard:revenue" in step.statement.tags
    }
    templates = {inspect(text, "trino").template_id for text in texts}

    assert len(texts) > 10
    assert len(templates) == 1


def test_some_of_what_analysts_send_is_wrong(taken: list[Step]) -> None:
    asked = [step.statement.sql for step in taken if step.role is Role.ANALYST]
    wrong = [sql for sql in asked if sql in MISTAKES]

    assert set(wrong) == set(MISTAKES)
    assert 0.02 < len(wrong) / len(asked) < 0.2


def test_every_statement_is_understood_in_its_engines_dialect(taken: list[Step]) -> None:
    seen: Counter[str] = Counter()
    for step in taken:
        if step.statement.sql in MISTAKES:
            continue
        found = inspect(step.statement.sql, ALL[step.engine_id].dialect)
        assert found.error is None, step.statement.sql
        assert found.tables, step.statement.sql
        assert all(table.startswith("lake.demo.") for table in found.tables)
        seen[found.kind] += 1

    assert set(seen) == {StatementKind.SELECT, StatementKind.INSERT, StatementKind.MERGE}


@pytest.mark.parametrize("template", [*DASHBOARDS, *QUESTIONS], ids=lambda t: t.name)
def test_a_template_is_valid_where_it_was_written(template: Any) -> None:
    assert inspect(template.sql, DIALECT).error is None


def test_pipelines_never_repeat_a_key() -> None:
    clock = iter(NOW.replace(microsecond=0, second=0, minute=m) for m in range(60))
    inserts = [
        step.statement.sql
        for step in islice(
            plan(
                PlanSettings(
                    engines=ALL,
                    seed=1,
                    rate_per_second=1.0,
                    anchor=NOW,
                    clock=lambda: next(clock),
                )
            ),
            400,
        )
        if step.role is Role.ETL and "INSERT" in step.statement.sql
    ]

    assert len(inserts) == len(set(inserts)) > 5

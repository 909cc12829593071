"""Every statement of the demo's people on every engine: same rows, and writes that are seen."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.demo.statements import DASHBOARDS, DIALECT, MISTAKES, QUESTIONS, Draw
from lakehouse_core.demo.writes import write_batch
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.registry import open_engine
from lakehouse_core.sql.retarget import retarget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.config import Config
    from lakehouse_core.demo.statements import Template
    from lakehouse_core.engines.base import Engine

pytestmark = [pytest.mark.lake, pytest.mark.spark, pytest.mark.timeout(900)]

ANCHOR = datetime(2026, 11, 1, tzinfo=UTC)
SERVERS = [
    pytest.param("spark", id="spark"),
    pytest.param("trino", id="trino", marks=pytest.mark.trino),
]


@pytest.fixture(scope="module")
def duckdb(demo_lake: Config) -> Iterator[Engine]:
    engine = open_engine("duckdb", demo_lake)
    yield engine
    engine.close()


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, demo_lake: Config) -> Iterator[Engine]:
    """An engine with a server of its own, on the same lake."""
    request.getfixturevalue(f"{request.param}_server")
    engine = open_engine(request.param, demo_lake)
    yield engine
    engine.close()


def ask(engine: Engine, sql: str) -> list[dict[str, Any]]:
    return engine.execute(Statement(sql=sql, user="ana")).rows.to_pylist()


def comparable(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows without what engines may rightly do differently: types of averages, order of ties."""
    return sorted(tuple(_rounded(value) for value in row.values()) for row in rows)


def _rounded(value: Any) -> Any:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return round(float(value), 2)
    return str(value)


def test_all_engines_answer_every_question_alike(duckdb: Engine, server: Engine) -> None:
    draw = Draw(Random(7), ANCHOR)  # noqa: S311 repeatable draws
    for template in (*DASHBOARDS, *QUESTIONS):
        values = template.values(draw)

        def answer(engine: Engine, template: Template = template, values: Any = values) -> Any:
            dialect = engine.capabilities.dialect
            sql = retarget(template.sql, values, source=DIALECT, target=dialect)
            return comparable(ask(engine, sql))

        expected = answer(duckdb)
        assert expected, f"{template.name} finds nothing"
        assert answer(server) == expected, template.name


def test_every_mistake_is_one_on_every_engine(duckdb: Engine, server: Engine) -> None:
    for sql in MISTAKES:
        for engine in (duckdb, server):
            with pytest.raises(QueryFailedError):
                ask(engine, sql)


def test_what_pipelines_write_is_seen_by_the_others(duckdb: Engine, server: Engine) -> None:
    def state() -> list[dict[str, Any]]:
        return ask(
            duckdb,
            "SELECT (SELECT count(*) FROM demo.events) AS events, "
            "(SELECT count(*) FROM demo.churn) AS readings, "
            "(SELECT sum(version) FROM demo.orders_cdc WHERE order_id < 60000) AS versions",
        )

    seen = state()
    for number in range(4):
        batch = write_batch(number, utc_now(), Random(number))  # noqa: S311 as above
        sql = retarget(
            batch.template.sql,
            {**batch.values, **({"low": 1, "high": 40} if "low" in batch.values else {})},
            source=DIALECT,
            target=server.capabilities.dialect,
        )
        ask(server, sql)
        after = state()
        assert after != seen, batch.template.name
        seen = after

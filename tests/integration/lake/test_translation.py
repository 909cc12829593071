"""Statements called translated give the rows of the engine they were written for."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.registry import open_engine
from lakehouse_core.sql.translate import Outcome, Setting, translate
from tests.unit.sql import tpc
from tests.unit.sql.translate.corpus import STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.config import Config
    from lakehouse_core.engines.base import Engine

pytestmark = [pytest.mark.lake, pytest.mark.spark, pytest.mark.timeout(900)]

SERVERS = [
    pytest.param("spark", id="spark"),
    pytest.param("trino", id="trino", marks=pytest.mark.trino),
]
TPCH = Setting(catalog="lake", schema="demo")


@pytest.fixture(scope="module")
def duckdb(demo_lake: Config) -> Iterator[Engine]:
    engine = open_engine("duckdb", demo_lake)
    yield engine
    engine.close()


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, demo_lake: Config) -> Iterator[Engine]:
    request.getfixturevalue(f"{request.param}_server")
    engine = open_engine(request.param, demo_lake)
    yield engine
    engine.close()


def rows(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    found = engine.execute(Statement(sql=sql, user="ana")).rows.to_pylist()
    return sorted((tuple(_plain(value) for value in row.values()) for row in found), key=repr)


def _plain(value: Any) -> Any:
    """Numbers by value to the last digit that a sum of doubles keeps, dates by their day."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, int | Decimal):
        return float(f"{float(value):.10g}") if value % 1 else int(value)
    return str(value).removesuffix(" 00:00:00")


def qualified(sql: str, dialect: str) -> str:
    """The statement in its own dialect, with the names of the lake's tables."""
    import sqlglot  # noqa: PLC0415 the reference is made without our translation

    tree = sqlglot.parse_one(sql, read=dialect)
    ctes = {cte.alias.lower() for cte in tree.find_all(sqlglot.exp.CTE)}
    for table in tree.find_all(sqlglot.exp.Table):
        if table.name.lower() not in ctes:
            table.set("db", sqlglot.exp.to_identifier("demo"))
            table.set("catalog", sqlglot.exp.to_identifier("lake"))
    return tree.sql(dialect=dialect)


def test_what_is_called_translated_gives_equal_rows(duckdb: Engine, server: Engine) -> None:
    statements = [*STATEMENTS, *(("duckdb", text) for text in list(tpc.texts("tpch"))[::2])]
    engines = {engine.capabilities.dialect: engine for engine in (duckdb, server)}
    compared, wrong = 0, []
    for source, sql in statements:
        for target, engine in engines.items():
            if source not in engines or source == target:
                continue
            found = translate(sql, source, target, TPCH)
            if found.outcome is not Outcome.TRANSLATED:
                continue
            try:
                expected = rows(engines[source], qualified(sql, source))
                given = rows(engine, found.sql)
            except QueryFailedError as error:
                wrong.append((sql, found.sql, str(error)[:200]))
                continue
            compared += 1
            if given != expected:
                wrong.append((sql, found.sql, expected[:2], given[:2]))
    assert not wrong, wrong
    assert compared >= 20

"""Clauses of columns against DuckDB's bound plan, which shares nothing with sqlglot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks import usage
from benchmarks._bound_plan import uses
from lakehouse_core.duck import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

pytestmark = pytest.mark.duckdb

TABLES = "CREATE TABLE t (a INT, b INT, c INT); CREATE TABLE u (a INT, d INT)"


@pytest.fixture(scope="module")
def small() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        connection.execute(TABLES)
        yield connection


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM t WHERE b > 1 ORDER BY c", "filter t.b, order t.c, project t.a"),
        ("SELECT t.b FROM t, u WHERE t.a = u.a", "join t.a, join u.a, project t.b"),
        ("SELECT t.b FROM t JOIN u ON t.a = u.a", "join t.a, join u.a, project t.b"),
        ("SELECT b FROM t WHERE a < c", "filter t.a, filter t.c, project t.b"),
        ("SELECT a, sum(b) FROM t GROUP BY a", "group t.a, project t.a, project t.b"),
        ("SELECT a FROM t GROUP BY a HAVING sum(b) > 1", "group t.a, project t.a, project t.b"),
        ("SELECT x FROM (SELECT a AS x, b AS y FROM t) WHERE y = 1", "filter t.b, project t.a b"),
        (
            "SELECT b FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a)",
            "join t.a u.a, project t.b",
        ),
        ("SELECT b FROM t WHERE a IN (SELECT d FROM u)", "filter t.a, project t.b u.d"),
        (
            "SELECT sum(a) OVER (PARTITION BY b ORDER BY c) FROM t",
            "group t.b, order t.c, project t.a",
        ),
    ],
)
def test_the_oracle_reads_plans_as_it_says(
    small: duckdb.DuckDBPyConnection, sql: str, expected: str
) -> None:
    row = small.execute(usage.PLAN, [sql]).fetchone()
    assert row is not None
    found = sorted(uses(json.loads(row[0])))
    shown = ", ".join(f"{clause} {table}.{column}" for clause, table, column in found)
    assert shown == _written_out(expected)


def _written_out(text: str) -> str:
    """`project t.a b` as `project t.a, project t.b`."""
    out = []
    for part in text.split(", "):
        clause, *names = part.split(" ")
        table = ""
        for name in names:
            table = name.split(".")[0] if "." in name else table
            out.append(f"{clause} {table}.{name.split('.')[-1]}")
    return ", ".join(out)


@pytest.mark.slow
def test_usage_is_that_of_the_bound_plan_over_all_tpc_queries() -> None:
    found = usage.run()
    assert found["queries"] == {"tpch": 22, "tpcds": 99}
    assert found["figures"]["f1"] >= 0.98
    assert found["figures"]["f1_text_alone"] >= 0.98
    assert found["causes"].get(usage.UNEXPLAINED, 0) == 0
    for clause in ("filter", "join", "group", "order"):
        assert found["by_clause"][clause]["f1"] == 1.0, clause

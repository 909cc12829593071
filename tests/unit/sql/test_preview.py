from __future__ import annotations

import pytest

from lakehouse_core.sql.preview import previewed
from lakehouse_core.views.diffs import sql_diff


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t;", "SELECT * FROM t\nLIMIT 9"),
        ("SELECT 1 -- all of it", "SELECT 1\nLIMIT 9"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) SELECT * FROM a\nLIMIT 9"),
        ("SELECT 1 UNION ALL SELECT 2", "SELECT 1 UNION ALL SELECT 2\nLIMIT 9"),
        ("SELECT 'a;b' FROM t ORDER BY 1 ; ", "SELECT 'a;b' FROM t ORDER BY 1\nLIMIT 9"),
    ],
)
def test_a_query_without_limit_gets_one(sql: str, expected: str) -> None:
    assert previewed(sql, "trino", 9) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 LIMIT 5",
        "SELECT 1 OFFSET 2 ROWS",
        "SELECT 1 FETCH FIRST 3 ROWS ONLY",
        "SELECT 1; SELECT 2",
        "DROP TABLE t",
        "SHOW TABLES FROM lake.demo",
        "SELEC 1 FRM",
        "",
    ],
)
def test_everything_else_stays_as_it_is(sql: str) -> None:
    assert previewed(sql, "trino", 9) == sql


def test_a_diff_shows_what_a_translation_changed_and_not_the_layout() -> None:
    before = ("SELECT date_format(d, '%Y')\nFROM t WHERE a = 1", "trino")
    after = ("SELECT STRFTIME(d, '%Y') FROM t WHERE a = 1", "duckdb")
    lines = sql_diff(before, after).splitlines()
    assert [line.strip() for line in lines if line[0] == "+"] == ["+   STRFTIME(d, '%Y')"]
    assert "  FROM t" in lines
    assert sql_diff(("SELEC (", "trino"), ("SELEC )", "trino")) == "- SELEC (\n+ SELEC )"

"""Questions about the system catalog are told from questions about data."""

from __future__ import annotations

import pytest
import sqlglot

from lakehouse_core.sql.postgres.catalog import names_of_nothing, turned


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT version()",
        "select current_schema()",
        "SELECT pg_catalog.pg_backend_pid()",
        "SELECT relname FROM pg_class",
        "WITH t AS (SELECT * FROM pg_catalog.pg_class) SELECT * FROM t",
        "SELECT s.i FROM pg_class, pg_catalog.generate_series(1, 3) AS s(i)",
        "SELECT (information_schema._pg_expandarray(i.indkey)).n FROM pg_catalog.pg_index i",
        "SELECT array(SELECT x FROM pg_catalog.unnest(c.reloptions) x) FROM pg_class c",
        "SELECT x FROM pg_class, unnest(ARRAY[1, 2]) AS x",
        "SELECT * FROM information_schema.columns JOIN pg_namespace ON nspname = table_schema",
    ],
)
def test_a_question_about_names_is_one(sql: str) -> None:
    assert turned(sqlglot.parse_one(sql, dialect="postgres")) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT now()",
        "SELECT * FROM orders",
        "SELECT * FROM orders, pg_class",
        "SELECT * FROM read_csv('/etc/passwd')",
        "INSERT INTO pg_class SELECT 1",
        "SELECT version(), count(*) FROM range(3000000000)",
        "SELECT pg_backend_pid(), list(x) FROM range(10000000000) t(x)",
        "SELECT * FROM pg_class, duckdb_secrets()",
        "SELECT * FROM pg_class, LATERAL duckdb_settings()",
        "SELECT version(), (SELECT string_agg(name, ',') FROM duckdb_settings())",
        "SELECT version(), getenv('HOME')",
        "SELECT version(), unnest(range(1000000000))",
        "SELECT pg_catalog.version(), pg_catalog.getvariable('x')",
        "SELECT * INTO x FROM pg_class",
        "WITH d AS (DELETE FROM pg_class RETURNING oid) SELECT * FROM d",
        "CREATE TABLE x AS SELECT * FROM pg_class",
    ],
)
def test_all_else_is_not(sql: str) -> None:
    assert turned(sqlglot.parse_one(sql, dialect="postgres")) is None


def test_what_a_lake_has_none_of_is_an_empty_answer() -> None:
    tree = sqlglot.parse_one("SELECT polname, 1 AS n FROM pg_policy p JOIN pg_class c ON true")
    assert names_of_nothing(tree) == ["polname", "n"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM pg_policy",
        "SELECT relname FROM pg_class c LEFT JOIN pg_policy p ON true",
        "SELECT relname FROM pg_class UNION ALL SELECT polname FROM pg_policy",
    ],
)
def test_a_row_may_come_all_the_same(sql: str) -> None:
    assert names_of_nothing(sqlglot.parse_one(sql, dialect="postgres")) is None

"""Table names are replaced where they stand; everything that is not a plain read is refused."""

from __future__ import annotations

import pytest

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.domain.table import TableName
from lakehouse_core.sql.scans import (
    NOT_A_LAKE_TABLE,
    NOT_READ_ONLY,
    SYNTAX_ERROR,
    parse_scan,
    quote_text,
)

EVENTS = TableName("lake", ("demo",), "events")


def rendered(sql: str) -> str:
    scan = parse_scan(sql, dialect="duckdb", catalog="lake")
    return scan.render({table: f"scan({table})" for table in scan.tables})


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM lake.demo.events", 'SELECT * FROM scan(lake.demo.events) AS "events"'),
        ("SELECT * FROM demo.events e", "SELECT * FROM scan(lake.demo.events) e"),
        ("FROM demo.events", 'FROM scan(lake.demo.events) AS "events"'),
        ('SELECT 1 FROM "LAKE".demo."e v"', 'SELECT 1 FROM scan(lake.demo.e v) AS "e v"'),
        ("SELECT 1 FROM lake.a.b.c", 'SELECT 1 FROM scan(lake.a.b.c) AS "c"'),
        (
            "SELECT lake.demo.events.kind, demo.events.id FROM lake.demo.events, demo.events",
            (
                "SELECT events.kind, events.id FROM "
                'scan(lake.demo.events) AS "events", scan(lake.demo.events) AS "events"'
            ),
        ),
        (
            "SELECT e.payload.x.y FROM demo.events e -- demo.events\n WHERE a = 'demo.events'",
            (
                "SELECT e.payload.x.y FROM scan(lake.demo.events) e -- demo.events\n"
                " WHERE a = 'demo.events'"
            ),
        ),
        (
            "WITH events AS (SELECT 1 FROM demo.events) SELECT * FROM events",
            (
                'WITH events AS (SELECT 1 FROM scan(lake.demo.events) AS "events") '
                "SELECT * FROM events"
            ),
        ),
        (
            "SELECT '東京', (SELECT max(x) FROM demo.t) FROM range(3) r(i) JOIN demo.u USING (x)",
            (
                "SELECT '東京', (SELECT max(x) FROM scan(lake.demo.t) AS \"t\") "
                'FROM range(3) r(i) JOIN scan(lake.demo.u) AS "u" USING (x)'
            ),
        ),
        ("SELECT 1 UNION ALL VALUES (2);", "SELECT 1 UNION ALL VALUES (2);"),
        ("DESCRIBE SELECT 1 AS one", "DESCRIBE SELECT 1 AS one"),
        (
            "explain SELECT kind FROM demo.events",
            'explain SELECT kind FROM scan(lake.demo.events) AS "events"',
        ),
    ],
)
def test_only_names_of_lake_tables_are_replaced(sql: str, expected: str) -> None:
    assert rendered(sql) == expected


def test_each_table_is_named_once() -> None:
    scan = parse_scan(
        "SELECT 1 FROM demo.events a JOIN lake.demo.events b USING (id)",
        dialect="duckdb",
        catalog="lake",
    )

    assert scan.tables == (EVENTS,)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO demo.events VALUES (1)",
        "WITH x AS (DELETE FROM demo.events RETURNING *) SELECT * FROM x",
        "SELECT * INTO demo.copy FROM demo.events",
        "CREATE TABLE demo.t AS SELECT 1",
        "DROP TABLE demo.events",
        "COPY (SELECT 1) TO 'out.csv'",
        "ATTACH 'other.db'",
        "EXPLAIN ANALYZE DELETE FROM demo.events",
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN DELETE FROM demo.events",
        "SET threads = 1",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "CALL dbgen(sf = 1)",
        "SUMMARIZE demo.events",
    ],
)
def test_what_does_more_than_read_is_refused_with_a_way_out(sql: str) -> None:
    with pytest.raises(QueryFailedError, match="engine that writes") as failure:
        rendered(sql)

    assert failure.value.code == NOT_READ_ONLY


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hosts')",
        "SELECT * FROM '/etc/hosts'",
        "SELECT * FROM 'data.parquet'",
        "SELECT * FROM glob('*')",
        "SELECT * FROM demo.events, LATERAL read_csv(kind)",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM iceberg_scan('/elsewhere')",
        "SELECT * FROM quack_stop('x')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM events",
        "SELECT * FROM other.demo.events",
    ],
)
def test_what_is_no_table_of_the_lake_is_refused(sql: str) -> None:
    with pytest.raises(QueryFailedError, match="not a table of the lake") as failure:
        rendered(sql)

    assert failure.value.code == NOT_A_LAKE_TABLE


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "", "SELEC 1", "SELECT (", "'"])
def test_text_that_is_not_one_statement_is_refused(sql: str) -> None:
    with pytest.raises(QueryFailedError) as failure:
        rendered(sql)

    assert failure.value.code == SYNTAX_ERROR


def test_statements_nested_beyond_reason_are_refused_and_not_a_crash() -> None:
    with pytest.raises(QueryFailedError):
        rendered("SELECT " + "(" * 5_000 + "1" + ")" * 5_000)


def test_a_path_with_a_quote_stays_one_literal() -> None:
    assert quote_text("/lake/o'brien", "duckdb") == "'/lake/o''brien'"

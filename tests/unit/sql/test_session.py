"""Statements about the session, and parameters of prepared ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.sql.metadata import parse_metadata
from lakehouse_core.sql.session import (
    Deallocate,
    DescribePrepared,
    Execute,
    Prepare,
    SetSession,
    Show,
    Transaction,
    Use,
    bind_parameters,
    parse_session,
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("PREPARE \"P x\" FROM SELECT '?', ? -- end", Prepare("P x", "SELECT '?', ?")),
        ("execute p", Execute("p")),
        ("EXECUTE p USING 1, f(a, b), ARRAY[1, 2]", Execute("p", ("1", "f(a, b)", "ARRAY[1, 2]"))),
        ("EXECUTE IMMEDIATE 'SELECT ''x''' USING 3", Execute(None, ("3",), "SELECT 'x'")),
        ("DEALLOCATE PREPARE p;", Deallocate("p")),
        ("DESCRIBE  OUTPUT p", DescribePrepared("p", is_output=True)),
        ("/* c */ describe lake.demo.T", Show("columns", ("lake", "demo", "t"))),
        ("SHOW TABLES FROM lake.\"D\" LIKE 'a%'", Show("tables", ("lake", "D"), "a%")),
        ("SET SESSION hive.x = 'a''b'", SetSession("hive.x", "'a''b'")),
        ("RESET SESSION x", SetSession("x", None)),
        ("USE demo", Use(None, "demo")),
        ("COMMIT", Transaction("COMMIT")),
        ("SELECT 1", None),
        ("DESCRIBE SELECT 1", None),
        ('SHOW CREATE TABLE demo."T"', Show("create table", ("demo", "T"))),
        ("SHOW CREATE VIEW t", None),
        ("SHOW SESSION LIKE 'query%'", Show("session", (), "query%")),
        ("SET ROLE admin", None),
    ],
)
def test_statements_are_told_apart(sql: str, expected: object) -> None:
    assert parse_session(sql, "trino") == expected


@pytest.mark.parametrize(
    "sql", ["EXECUTE", "USE", "EXECUTE p USING 1,,2", "SET SESSION x", "EXECUTE IMMEDIATE 1"]
)
def test_what_cannot_be_understood_is_refused_in_words(sql: str) -> None:
    with pytest.raises(QueryFailedError):
        parse_session(sql, "trino")


def test_parameters_are_put_where_the_marks_are_and_nowhere_else() -> None:
    sql = "SELECT '?', \"?\", ? /* ? */, -? FROM t WHERE x = ? -- ?"
    bound = bind_parameters(sql, ("'a?b'", "-5", "1 + 2"), "trino")
    assert bound == "SELECT '?', \"?\",  'a?b'  /* ? */, - -5  FROM t WHERE x =  (1 + 2)  -- ?"
    assert bind_parameters("EXPLAIN SELECT '?', ?", ("1",), "trino") == "EXPLAIN SELECT '?',  1 "
    with pytest.raises(QueryFailedError, match="3 parameters, but 1"):
        bind_parameters(sql, ("1",), "trino")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
def test_a_text_parameter_stays_one_literal(value: str) -> None:
    literal = "'" + value.replace("'", "''") + "'"
    bound = bind_parameters("SELECT ?", (literal,), "trino")
    assert bound == f"SELECT  {literal} "
    assert parse_session(f"EXECUTE p USING {literal}", "trino") == Execute("p", (literal,))


def test_questions_about_names_are_recognized_and_others_left_alone() -> None:
    sql = "SELECT t.table_name FROM information_schema.tables t WHERE t.table_schema = 'x'"
    found = parse_metadata(sql, "trino", "lake")
    assert found is not None
    assert "\"information_schema.tables\" WHERE table_catalog = 'lake') AS t" in found
    assert parse_metadata(sql, "trino", None) is None
    for other in (
        "SELECT * FROM information_schema.tables, lake.demo.events",
        "SELECT * FROM system.runtime.queries",
        "SELECT * FROM TABLE(system.jdbc.tables(1))",
        "DELETE FROM information_schema.tables",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SELECT 1; SELECT * FROM information_schema.tables",
    ):
        assert parse_metadata(other, "trino", "lake") is None, other

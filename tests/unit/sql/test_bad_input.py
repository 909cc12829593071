"""No text stops the process: what is not understood has an error, a kind and a stable template."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.query import StatementKind
from lakehouse_core.sql import Inspector, dialect_names, inspect

DEEP = {
    "brackets": ("(", "1", ")"),
    "subqueries": ("(SELECT * FROM ", "t", ")"),
    "arrays": ("ARRAY[", "1", "]"),
    "functions": ("f(", "1", ")"),
    "cases": ("CASE WHEN a THEN ", "1", " END"),
    "nots": ("NOT ", "a", ""),
    "signs": ("- ", "1", ""),
    "types": ("CAST(a AS ARRAY(", "INT", "))"),
    "dates": ("date(", "a", ")"),
}
WORDS = st.sampled_from(
    [
        *("SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "UNION", "WITH", "AS", "IN", "JOIN"),
        *("ON", "CASE", "END", "OVER", "VALUES", "INSERT", "INTO", "UPDATE", "SET", "DELETE"),
        *("MERGE", "CALL", "EXPLAIN", "EXECUTE", "PIVOT", "(", ")", ",", ";", ".", "*", "="),
        *("1", "'a'", '"b"', "a", "b", "t"),
    ]
)
LIST = "SELECT a FROM t WHERE b IN ({items})"
INSERT = "INSERT INTO {table} VALUES {rows}"
CTE = "w{number} AS (SELECT x AS x FROM {source})"
CTES = "WITH {ctes} SELECT x FROM w{last} WHERE x = 1"
TAIL = "SELECT a FROM t WHERE b = {tail}"


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("", "empty statement"),
        ("  \n ", "empty statement"),
        (";;", "empty statement"),
        ("-- only a comment", "empty statement"),
        ("SELECT", "not a statement: it starts with 'SELECT'"),
        ("selec a", "not a statement: it starts with 'selec'"),
        ("selec a from", "line 1, column 12, near 'from'"),
        ("count at NativeMethodAccessorImpl.java:0", "line 1, column 33"),
        ("SELECT a FROM", "Expected table name but got the end at line 1, column 13"),
        ("SELECT a FROM t WHERE", "line 1, column"),
        ("SELECT a\nFROM t x y z", "line 2, column"),
        ("SELECT 'open", "cannot be split into tokens: Missing '"),
        ("SELECT 1; SELECT 2", "one statement at a time: found 2"),
        pytest.param(
            "SELECT " + "a+" * 60_000 + "a",
            "too much to analyse: 120002 tokens, limit 100000",
            marks=pytest.mark.slow,
        ),
        ("SELECT a" + "[1]" * 500, "subscripts in a row"),
        ("SELECT 1 FROM t" + " JOIN t" * 2_000 + " ON a = b" * 2_000, "joins"),
    ],
)
def test_text_that_is_not_understood_says_why(sql: str, error: str) -> None:
    found = Inspector().inspect(sql, "trino")
    assert error in (found.error or "")
    assert (found.kind, found.tables, found.columns) == (StatementKind.OTHER, (), ())
    assert found.template_id
    assert found == Inspector().inspect(sql, "trino")


def test_unparsed_text_is_evened_out() -> None:
    first = inspect("SELECT  a FROM t WHERE WHERE b = 1 -- x", "trino")
    second = inspect("select A from\nT where WHERE B = 'y'", "trino")
    other = inspect("select A from\nT where WHERE C = 'y'", "trino")
    assert first.error
    assert first.template_id == second.template_id != other.template_id


def test_text_without_tokens_is_evened_out() -> None:
    first = inspect("SELECT a, 5 FROM t /* x */ WHERE b = 'open", "trino")
    second = inspect("select  a, 6 from t WHERE b = 'open", "trino")
    assert first.error
    assert first.template == second.template


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["trino", "spark", "duckdb"])
@pytest.mark.parametrize("shape", DEEP, ids=str)
def test_deep_nesting_ends_in_an_answer(shape: str, dialect: str) -> None:
    start, middle, end = DEEP[shape]
    for depth in (1_000, 20_000):
        found = Inspector().inspect("SELECT " + start * depth + middle + end * depth, dialect)
        assert found.error
        assert found.template_id


def test_moderate_nesting_is_understood() -> None:
    found = inspect("SELECT " + "(" * 60 + "a" + ")" * 60 + " FROM t", "trino")
    assert (found.error, found.tables) == (None, ("t",))


@pytest.mark.slow
def test_long_lists_are_understood() -> None:
    items = ", ".join(f"'{number}'" for number in range(100_000))
    found = inspect(LIST.format(items=items), "trino")
    assert (found.error, found.template) == (None, "SELECT a FROM t WHERE b IN (?)")


@pytest.mark.slow
def test_oversized_text_is_told_by_its_beginning() -> None:
    rows = ", ".join(f"({number}, 'x')" for number in range(200_000))
    first = inspect(INSERT.format(table="a", rows=rows), "trino")
    second = inspect(INSERT.format(table="a", rows=rows + ", (1, 'y')"), "trino")
    other = inspect(INSERT.format(table="b", rows=rows), "trino")
    assert "characters, limit" in (first.error or "")
    assert first.template_id == second.template_id != other.template_id


def test_unknown_dialect_names_the_nearest() -> None:
    found = inspect("SELECT a FROM t WHERE b = 1", "trni")
    assert found.error == "unknown dialect 'trni'; the nearest known one is 'trino'"
    assert found.template == "SELECT a FROM t WHERE b = ?"


def test_answers_can_be_stored_and_piped_whatever_came_in() -> None:
    found = inspect("SELECT '\ud800', \udcff FROM \x00t WHERE \ufffe = 1", "trino")
    assert (found.template + str(found.tables) + str(found.columns)).encode()
    assert "\x00" not in found.template


def test_chain_of_many_ctes_ends() -> None:
    sources = ["t", *(f"w{number}" for number in range(1_499))]
    ctes = [CTE.format(number=number, source=source) for number, source in enumerate(sources)]
    found = inspect(CTES.format(ctes=", ".join(ctes), last=1_499), "trino")
    assert [(use.table, use.role) for use in found.columns] == [
        ("t", "filter_eq"),
        ("t", "project"),
    ]


@given(st.text(), st.sampled_from(dialect_names()))
def test_any_text_in_any_dialect_has_an_answer(text: str, dialect: str) -> None:
    found = Inspector().inspect(text, dialect)
    assert found.template_id
    assert "\n" not in (found.error or "")


@given(st.lists(WORDS, max_size=25), st.sampled_from(["trino", "spark", "duckdb", "snowflake"]))
def test_any_words_have_an_answer(words: list[str], dialect: str) -> None:
    found = Inspector().inspect(" ".join(words), dialect)
    assert found.template_id
    assert found.error is None or found.kind == StatementKind.OTHER


@given(st.text(alphabet=string.printable), st.sampled_from(["trino", "spark", "duckdb"]))
def test_any_tail_of_a_statement_has_an_answer(tail: str, dialect: str) -> None:
    assert Inspector().inspect(TAIL.format(tail=tail), dialect).template_id

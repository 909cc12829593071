"""What is bound stays a value, whatever it looks like."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.gateway.postgres import types as t
from lakehouse_core.gateway.postgres.numeric import numeric_bytes
from lakehouse_core.gateway.postgres.parameters import value_of
from lakehouse_core.sql.postgres.cursors import Declare
from lakehouse_core.sql.postgres.statements import Prepared, prepare, split


def answer(sql: str, oid: int, value: bytes | None, *, is_binary: bool = False) -> Any:
    """What DuckDB answers to a statement with one parameter."""
    bound = prepare(sql, (oid,)).bound([value_of(oid, value, is_binary=is_binary)])
    return fetched(bound)[0][0]


def fetched(statement: Prepared) -> list[Any]:
    assert statement.tree is not None
    return duckdb.sql(statement.tree.sql(dialect="duckdb")).fetchall()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_text_is_a_text(value: str) -> None:
    assert answer("SELECT $1", t.TEXT, value.encode()) == value


@pytest.mark.parametrize(
    ("oid", "sent", "expected"),
    [
        (t.INT4, b"-7", -7),
        (t.NUMERIC, b"12.340", Decimal("12.340")),
        (t.BOOL, b"t", True),
        (t.FLOAT8, b"1e300", 1e300),
        (t.DATE, b"2024-02-29", date(2024, 2, 29)),
        (t.BYTEA, b"\\x00ff", b"\x00\xff"),
        (0, b"x' OR '1'='1", "x' OR '1'='1"),
    ],
)
def test_a_value_as_text_has_its_type(oid: int, sent: bytes, expected: object) -> None:
    assert answer("SELECT $1", oid, sent) == expected


@pytest.mark.parametrize(
    ("oid", "sent", "expected"),
    [
        (t.INT8, struct.pack("!q", -(2**40)), -(2**40)),
        (t.FLOAT4, struct.pack("!f", 0.5), 0.5),
        (t.BOOL, b"\1", True),
        (t.NUMERIC, numeric_bytes(Decimal("-10000.0001")), Decimal("-10000.0001")),
        (t.DATE, struct.pack("!i", -1), date(1999, 12, 31)),
        (t.TIMESTAMP, struct.pack("!q", 1), datetime(2000, 1, 1, 0, 0, 0, 1)),  # noqa: DTZ001
        (t.VARCHAR, "ä'".encode(), "ä'"),
    ],
)
def test_a_value_in_binary_has_its_type(oid: int, sent: bytes, expected: object) -> None:
    assert answer("SELECT $1", oid, sent, is_binary=True) == expected


def test_a_moment_keeps_its_zone() -> None:
    found = value_of(t.TIMESTAMPTZ, struct.pack("!q", 0), is_binary=True)
    assert found == datetime(2000, 1, 1, tzinfo=UTC)
    assert "+00:00" in prepare("SELECT $1", ()).bound([found]).sql


def test_a_parameter_may_stand_anywhere_and_more_than_once() -> None:
    prepared = prepare("SELECT $2 || $1 WHERE $1 <> 'a' LIMIT $3", ())
    assert fetched(prepared.bound(["b", "c", 1])) == [("cb",)]


@pytest.mark.parametrize(
    ("oid", "sent", "is_binary"),
    [(t.INT4, b"x", False), (t.INT4, b"\0", True), (t.BOOL, b"maybe", False), (3802, b"x", True)],
)
def test_a_value_that_is_none_of_its_type_is_refused(
    oid: int, sent: bytes, is_binary: bool
) -> None:
    with pytest.raises(QueryFailedError):
        value_of(oid, sent, is_binary=is_binary)


def test_parameters_are_counted_by_their_highest_number() -> None:
    assert len(prepare("SELECT $3, $1", (23,)).oids) == 3


def test_a_prepared_statement_is_one_statement() -> None:
    with pytest.raises(QueryFailedError, match="multiple commands"):
        prepare("SELECT 1; SELECT 2", ())


def test_a_text_that_cannot_be_parsed_is_left_to_the_router() -> None:
    (found,) = split("SELEC 1 FROM FROM")
    assert found.tree is None
    assert found.sql == "SELEC 1 FROM FROM"


def test_statements_of_one_text_run_one_by_one() -> None:
    assert [one.sql for one in split("SELECT 1; SELECT ';' AS x;")] == [
        "SELECT 1",
        "SELECT ';' AS x",
    ]


def test_statements_of_one_text_stay_as_they_were_written() -> None:
    text = "-- a; b\nselect  A; /* ; */ CLOSE c ;; FETCH 2 FROM c; declare x CURSOR FOR select  1"
    *found, declared = split(text)
    assert [one.sql for one in found] == ["-- a; b\nselect  A", "/* ; */ CLOSE c", "FETCH 2 FROM c"]
    assert (declared.cursor, declared.sql) == (Declare("x", "select  1", False, False), "select  1")
    (broken,) = split("DELETE FROM t; SELEC 1 FROM FROM")
    assert broken.tree is None

"""Values travel as text and arrive as they were; a placeholder is one only where SQL says so."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core import duck
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.store.literals import bind, identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
OFFSETS = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(
    lambda offset: timezone(timedelta(minutes=offset // timedelta(minutes=1)))
)
TIMES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=OFFSETS)  # noqa: DTZ001
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    TEXT,
    st.integers(-(2**127) + 1, 2**127 - 1),
    st.floats(allow_nan=False),
    st.decimals(-(10**20), 10**20, places=9),
    st.dates(),
    TIMES,
    st.timedeltas(timedelta(days=-100_000), timedelta(days=100_000)),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duck.connect() as connection:
        yield connection


def ask(engine: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = engine.execute(sql).fetchone()
    assert row is not None
    return row[0]


@given(value=SCALARS)
def test_every_value_arrives_as_it_was(engine: duckdb.DuckDBPyConnection, value: Any) -> None:
    assert ask(engine, bind("SELECT $value", {"value": value})) == value


@given(values=st.lists(TEXT))
def test_lists_of_texts_arrive_as_they_were(
    engine: duckdb.DuckDBPyConnection, values: list[str]
) -> None:
    assert ask(engine, bind("SELECT $values", {"values": values})) == values
    assert ask(engine, bind("SELECT $values", {"values": tuple(values)})) == values


def test_floats_that_are_not_numbers_keep_their_meaning(engine: duckdb.DuckDBPyConnection) -> None:
    assert math.isnan(ask(engine, f"SELECT {literal(math.nan)}"))
    assert ask(engine, f"SELECT {literal(-math.inf)}") == -math.inf


def test_a_time_keeps_its_type_and_an_enum_its_value(engine: duckdb.DuckDBPyConnection) -> None:
    moment = literal(datetime(2026, 11, 16, tzinfo=UTC))
    assert ask(engine, f"SELECT typeof({moment})") == "TIMESTAMP WITH TIME ZONE"
    assert ask(engine, f"SELECT typeof({literal(Decimal('1.50'))})") == "DECIMAL(3,2)"
    assert ask(engine, f"SELECT typeof({literal(date(2026, 11, 16))})") == "DATE"
    assert ask(engine, f"SELECT {literal(QueryStatus.FAILED)}") == "failed"


@given(payload=TEXT)
def test_a_value_never_becomes_sql(engine: duckdb.DuckDBPyConnection, payload: str) -> None:
    hostile = f"{payload}'; DROP TABLE t; --"
    assert ask(engine, bind("SELECT $v || ''", {"v": hostile})) == hostile


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT '$v', $v",
        "SELECT 'it''s $v', $v",
        "SELECT $$ $v $$, $v",
        "SELECT $tag$ $v $tag$, $v",
        "SELECT e'\\'$v', $v",
        "SELECT 'é😀$v', $v",
        'SELECT 1 AS "$v", $v -- $v',
        "SELECT 1 /* $v */, $v",
    ],
)
def test_only_placeholders_are_replaced(engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    row = engine.execute(bind(sql, {"v": "X"})).fetchone()
    assert row is not None
    assert row[1] == "X"
    assert "X" not in str(row[0])


def test_a_placeholder_may_be_a_keyword() -> None:
    assert bind("SELECT $end, $limit, $endless", {"end": 1, "limit": 2, "endless": 3}) == (
        "SELECT 1, 2, 3"
    )


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(StoreError, match=r"\$engine; given: other"):
        bind("SELECT $engine", {"other": 1})


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 a naive time is the point
        2**127,
        Decimal("NaN"),
        Decimal(10) ** 40,
        b"bytes",
        "lone \ud800 surrogate",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
    ],
)
def test_what_has_no_exact_literal_is_refused(value: Any) -> None:
    with pytest.raises(StoreError):
        literal(value)


@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_quoted_name_is_data(engine: duckdb.DuckDBPyConnection, name: str) -> None:
    description = engine.execute(f"SELECT 1 AS {identifier(name)}").description
    assert description[0][0] == name

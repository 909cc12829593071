"""Columns cut off to a unit of time are tested as ranges, which no row that counts falls out of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.sql.condition import ALWAYS, ColumnTest, Either, Every
from lakehouse_core.sql.inspector import Inspector
from lakehouse_core.sql.truncation import untruncated

if TYPE_CHECKING:
    from lakehouse_core.sql.condition import Condition

SELECT = "SELECT 1 FROM lake.a.t WHERE "
COMPARED: dict[str, Any] = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


def cut(unit: str, moment: datetime) -> datetime:
    """As engines do it, written another way than the code."""
    day = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 no zone is the point
    size = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}.get(unit)
    if size is not None:
        return day + timedelta(seconds=int((moment - day).total_seconds()) // size * size)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
    return day.replace(month=month, day=1)


def holds(condition: Condition, at: datetime) -> bool:
    if isinstance(condition, ColumnTest):
        return bool(COMPARED[condition.operator](at, condition.values[0]))
    parts = [holds(part, at) for part in condition.parts]
    return any(parts) if isinstance(condition, Either) else all(parts)


MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31))  # noqa: DTZ001 as above


@given(
    at=MOMENTS,
    value=MOMENTS,
    is_cut=st.booleans(),
    unit=st.sampled_from(UNITS),
    operator=st.sampled_from(sorted(COMPARED)),
)
def test_row_that_fulfils_the_comparison_is_in_the_range(
    at: datetime, value: datetime, is_cut: bool, unit: str, operator: Any
) -> None:
    given_value = cut(unit, value) if is_cut else value
    found = untruncated("at", unit, operator, (given_value,), is_negated=False)
    assert found != ALWAYS
    if COMPARED[operator](cut(unit, at), given_value):
        assert holds(found, at), (unit, operator, at, given_value, found)


@given(at=MOMENTS, value=MOMENTS, operator=st.sampled_from(("=", "<", "<=", ">", ">=")))
def test_day_is_exact(at: datetime, value: datetime, operator: Any) -> None:
    day = value.date()
    found = untruncated("at", "day", operator, (day,), is_negated=False)
    assert holds(found, at) == COMPARED[operator](at.date(), day)


@pytest.mark.parametrize(
    ("dialect", "condition", "first", "last"),
    [
        ("trino", "date(at) = DATE '2026-01-02'", "2026-01-02", "2026-01-03"),
        ("duckdb", "at::DATE = '2026-01-02'", "2026-01-02", "2026-01-03"),
        ("spark", "date_trunc('month', at) = '2026-02-01'", "2026-02-01", "2026-03-01"),
        ("spark", "trunc(at, 'quarter') = '2026-04-01'", "2026-04-01", "2026-07-01"),
        ("snowflake", "to_date(at) = '2026-01-02'", "2026-01-02", "2026-01-03"),
        ("trino", "CAST(at AS DATE) = current_date", "2026-05-05", "2026-05-06"),
    ],
)
def test_dialects_are_read_alike_and_known_texts_as_new_ones(
    dialect: str, condition: str, first: str, last: str
) -> None:
    reads = Inspector()
    for _ in range(2):
        at = datetime(2026, 5, 5, 12, tzinfo=UTC)
        scans = reads.scans(SELECT + condition, dialect, at=at, truncations=True)
        assert scans is not None
        (part,) = scans[0].condition.parts  # type: ignore[union-attr]
        assert isinstance(part, Every)
        limits = [one.values[0].isoformat()[:10] for one in part.parts]  # type: ignore[union-attr]
        assert limits == [first, last]
        # An estimate must never say too little, and not every engine sees through it.
        plain = reads.scans(SELECT + condition, dialect, at=at)
        assert plain is not None
        assert set(plain[0].condition.parts) == {ALWAYS}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "condition",
    [
        "date(at) <> DATE '2026-01-01'",
        "date(at) IS NULL",
        "date(at) = ?",
        "date_trunc('day', at) = TIMESTAMP '2026-01-01 00:00:00 UTC'",
        "date_trunc('fortnight', at) = DATE '2026-01-01'",
        "date(at + INTERVAL '1' DAY) = DATE '2026-01-01'",
        "NOT date(at) BETWEEN DATE '2026-01-01' AND DATE '2026-02-01'",
    ],
)
def test_what_is_no_range_demands_nothing(condition: str) -> None:
    scans = Inspector().scans(SELECT + condition, "trino", truncations=True)
    assert scans is not None
    assert not any(part != ALWAYS for part in scans[0].condition.parts)  # type: ignore[union-attr]

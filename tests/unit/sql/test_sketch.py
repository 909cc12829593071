"""Sketches of literals: bounded, and the same whatever the order and number of collections."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.sql.literal import canonical
from lakehouse_core.sql.records import LiteralValue, Predicate
from lakehouse_core.sql.sketch import BUCKETS, LiteralCell, cells, estimated_distinct, merged

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from lakehouse_core.sql.literal import Constant

DAY = date(2026, 3, 1)


def predicate(value: Constant, operator: str = "=") -> Predicate:
    return Predicate("lake.demo.t", "a", "filter_eq", operator, (canonical(value),))  # type: ignore[arg-type] # any operator


def sketch(values: Iterable[Constant], day: date = DAY) -> list[LiteralCell]:
    return merged(cell for value in values for cell in cells("x", [predicate(value)], day))


def content(found: Sequence[LiteralCell]) -> set[LiteralCell]:
    return set(found)


NUMBERS = st.integers(-(10**9), 10**9).map(Decimal)
DAYS = st.dates(date(1900, 1, 1), date(2200, 1, 1))
WORDS = st.text(st.characters(codec="ascii", exclude_characters="\x00"), max_size=5)
USES = st.lists(
    st.tuples(NUMBERS | DAYS | WORDS | st.booleans() | st.none(), st.integers(0, 9)), max_size=200
)


def rows(uses: list[tuple[Constant, int]]) -> list[LiteralCell]:
    return [
        cell
        for value, days in uses
        for cell in cells("x", [predicate(value)], DAY + timedelta(days=days))
    ]


@given(USES, st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(
    uses: list[tuple[Constant, int]], choice: random.Random
) -> None:
    once = rows(uses)
    again = [*once, *once[: len(once) // 2]]
    choice.shuffle(again)
    assert content(merged(again)) == content(merged(once))


@given(USES, USES)
def test_sketches_of_parts_join_to_the_sketch_of_the_whole(
    left: list[tuple[Constant, int]], right: list[tuple[Constant, int]]
) -> None:
    joined = merged([*merged(rows(left)), *merged(rows(right))])
    assert content(joined) == content(merged(rows(left + right)))


@given(st.lists(NUMBERS, min_size=1) | st.lists(DAYS, min_size=1) | st.lists(WORDS, min_size=1))
def test_the_ends_and_the_last_day_are_exact(values: list[Constant]) -> None:
    found = {cell.part: cell for cell in sketch(values)}
    ordered = sorted(values)  # type: ignore[type-var] # all of one kind
    assert found["min"].literals == (canonical(ordered[0]).text,)
    assert found["max"].literals == (canonical(ordered[-1]).text,)
    assert found["last"].last_used_on == DAY


def test_many_values_need_no_more_room_than_few() -> None:
    found = sketch(Decimal(number) for number in range(4_000))
    assert sum(cell.part == "sample" for cell in found) == BUCKETS
    assert len(found) == BUCKETS + 3


@pytest.mark.slow
def test_distinct_values_are_estimated_whatever_their_frequency() -> None:
    for count in (5, 40, 400, 3_000):
        values = [Decimal(number * 7) for number in range(count)] * 2
        revisions = [cell.revision for cell in sketch(values) if cell.part == "sample"]
        assert 0.6 * count <= estimated_distinct(revisions) <= 1.7 * count


def test_what_is_unknown_or_null_has_a_day_only() -> None:
    unknown = Predicate("t", "a", "filter_eq", "=", (LiteralValue("unknown"),))
    assert [cell.part for cell in cells("x", [unknown], DAY)] == ["last"]
    assert [cell.part for cell in sketch([None])] == ["last"]


def test_a_column_without_table_is_left_out() -> None:
    nowhere = Predicate("", "a", "filter_eq", "=", (LiteralValue("number", "1"),))
    assert list(cells("x", [nowhere], DAY)) == []


def test_the_values_of_one_condition_stay_together() -> None:
    pair = (LiteralValue("number", "1"), LiteralValue("number", "9"))
    between = Predicate("t", "a", "filter_range", "between", pair, count=2)
    found = {cell.part: cell for cell in cells("x", [between], DAY)}
    assert found["sample"].literals == ("1", "9")
    assert (found["min"].literals, found["max"].literals) == (("1",), ("9",))

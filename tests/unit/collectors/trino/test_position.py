from __future__ import annotations

import pytest

from collectors.trino.position import QueryNumber, TrinoPosition
from lakehouse_core.domain.errors import SourceError


def query_id(number: int, coordinator: str = "aaaaa", day: str = "20261116") -> str:
    return f"{day}_000000_{number:05}_{coordinator}"


def after(*seen: int) -> TrinoPosition:
    position = TrinoPosition()
    position.finish_listing([query_id(n) for n in seen])
    return position


def test_a_position_comes_back_as_it_was() -> None:
    position = TrinoPosition({"a", "b"}, {"c": {"query_id": "c"}}, "a")
    assert TrinoPosition.parse(position.dump()) == position


def test_what_trino_forgot_is_forgotten() -> None:
    position = TrinoPosition({query_id(1), query_id(2)})
    position.finish_listing([query_id(2), query_id(3)])
    assert position.settled == {query_id(2)}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"v":99}', "not json", '{"v":1,"settled":3}'])
def test_a_position_of_somebody_else_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(SourceError, match="watermark"):
        TrinoPosition.parse(text)


def test_queries_that_came_and_went_are_a_gap() -> None:
    gap = after(1, 2, 3).gap([query_id(n) for n in (9, 10)])
    assert gap is not None
    assert gap.missing == 5


def test_a_gap_over_midnight_is_told_with_both_days() -> None:
    gap = after(1, 2, 3).gap([query_id(n, day="20261117") for n in (7, 8)])
    assert gap is not None
    assert gap.missing == 7
    assert "before number 7 of 20261117, and any after number 3 of 20261116" in gap.reason


@pytest.mark.parametrize(
    "listed",
    [
        [query_id(n) for n in (2, 3, 4)],
        [query_id(4)],
        # A number that was handed out but never used is not history that was dropped.
        [query_id(n) for n in (3, 5, 9)],
        [],
        # After a restart numbers start anew.
        [query_id(7, coordinator="bbbbb")],
        # Numbers start anew each day: nothing is missing before the first.
        [query_id(n, day="20261117") for n in (0, 1)],
        [query_id(2), query_id(7, day="20261117")],
        [query_id(7, day="20261115")],
        ["odd-id"],
    ],
)
def test_no_gap_is_claimed_without_proof(listed: list[str]) -> None:
    assert after(1, 2, 3).gap(listed) is None


def test_ids_made_by_other_rules_have_no_number() -> None:
    assert QueryNumber.parse("my-query") is None
    assert QueryNumber.parse(query_id(12)) == QueryNumber("20261116", 12, "aaaaa")


def test_another_coordinator_is_a_restart_once() -> None:
    position = after(1, 2, 3)
    listed = [query_id(0, coordinator="bbbbb", day="20261117")]
    restart = position.restart(listed)
    assert restart is not None
    assert (restart[0].number, restart[1]) == (3, "bbbbb")
    position.finish_listing(listed)
    assert position.restart(listed) is None


@pytest.mark.parametrize("listed", [[], [query_id(4)], ["odd-id"], [query_id(0, day="20261117")]])
def test_the_same_coordinator_or_nothing_is_no_restart(listed: list[str]) -> None:
    assert after(1, 2, 3).restart(listed) is None
    assert TrinoPosition().restart(listed) is None

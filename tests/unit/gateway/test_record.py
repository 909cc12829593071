"""Records of statements: one that cannot be written neither loses nor blocks the others."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.gateway.flight import Flight
from lakehouse_core.gateway.record import SpoolRecorder
from tests.factories import NOW
from tests.unit.routing.conftest import on_loop, statement

if TYPE_CHECKING:
    import pyarrow as pa

NO_ZONE = NOW.replace(tzinfo=None)  # a time that the store refuses


class Kept:
    """Where rows end up; refuses those of a table while `away` names it."""

    def __init__(self) -> None:
        self.ids: dict[str, list[str]] = defaultdict(list)
        self.away: str | None = None
        self.error: Exception = StoreError("the spool cannot be written")

    def __call__(self, table: str, rows: pa.Table) -> None:
        if table == self.away:
            raise self.error
        column = "gateway_id" if table == "routing_decision" else "action_id"
        self.ids[table] += rows.column(column).to_pylist()


def flight(number: int, *, is_bad: bool = False) -> Flight:
    request = statement(gateway_id=f"g{number}")
    made = Flight(request=request, submitted_at=NO_ZONE if is_bad else NOW)
    made.end(QueryStatus.FINISHED)
    return made


@pytest.mark.parametrize("bad", [(3,), (0, 9), tuple(range(10))])
@on_loop
async def test_what_cannot_be_written_is_counted_and_the_rest_is_kept(bad: tuple[int, ...]) -> None:
    kept = Kept()
    recorder = SpoolRecorder(lambda _: {}, kept, "chain")
    for number in range(10):
        recorder.note(flight(number, is_bad=number in bad))
    await recorder.close()
    good = [f"g{number}" for number in range(10) if number not in bad]
    assert kept.ids["routing_decision"] == good
    assert kept.ids["query_audit"] == good
    assert (recorder.lost, recorder.waiting) == (len(bad), 0)


@on_loop
async def test_a_store_that_is_away_loses_nothing_that_can_be_written() -> None:
    kept = Kept()
    kept.away = "routing_decision"
    recorder = SpoolRecorder(lambda _: {}, kept, "chain")
    for number in range(4):
        recorder.note(flight(number, is_bad=number == 2))
    await recorder.close()
    assert recorder.waiting >= 3
    assert recorder.lost + recorder.waiting == 4


@on_loop
async def test_an_error_nobody_thought_of_is_counted_too() -> None:
    kept = Kept()
    kept.away, kept.error = "query_audit", OSError("no such device")
    recorder = SpoolRecorder(lambda _: {}, kept, "chain")
    for number in range(3):
        recorder.note(flight(number))
    await recorder.close()
    assert (recorder.lost, recorder.waiting) == (3, 0)

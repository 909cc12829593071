"""What the gateway learns from: its own runs as they end, and those that the store heard of."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.errors import EngineError, EngineUnavailableError
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus, StatementKind, TemplateId
from lakehouse_core.gateway.flight import Flight
from lakehouse_core.gateway.learning import Learner, LearningRecorder, run_of
from lakehouse_core.routing.profiles import ProfileBook
from lakehouse_core.routing.request import Decision, Request, ScanEstimate, StatementFacts
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW
from tests.stores import new_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

FACTS = StatementFacts(TemplateId("t"), StatementKind.SELECT, ("lake.demo.t",))


def flight(status: QueryStatus = QueryStatus.FINISHED, **more: Any) -> Flight:
    """Two seconds in the queue, three on the engine."""
    facts = more.pop("facts", FACTS)
    decision = Decision(
        gateway_id="g1",
        engine_id=EngineId("trino"),
        source_dialect="trino",
        sql="SELECT 1",
        facts=facts,
        estimate=ScanEstimate(files=4, bytes=100),
    )
    given = {"submitted": 1.0, "decided": 1.0, "admitted": 3.0, "ended": 6.0, "attempts": 1}
    return Flight(
        request=Request(sql="SELECT 1", dialect="trino", gateway_id="g1"),
        submitted_at=NOW,
        decision=decision,
        status=status,
        **(given | more),
    )


def test_a_run_lasts_from_its_place_to_its_end() -> None:
    run = run_of(flight())
    assert run is not None
    assert (run.seconds, run.failed, run.name) == (3.0, False, "g1")
    assert (run.estimated_bytes, run.wear) == (100, 2.0)


@pytest.mark.parametrize(
    ("over", "is_failed"),
    [
        (flight(QueryStatus.FAILED, error=EngineUnavailableError("gone")), True),
        (flight(QueryStatus.FAILED, error=EngineError("no such column")), None),
        (flight(QueryStatus.FAILED, error=RuntimeError("broken in the gateway")), None),
        (flight(QueryStatus.CANCELLED), None),
        (flight(admitted=None), None),
        (flight(facts=StatementFacts(TemplateId("t"), StatementKind.INSERT)), None),
    ],
)
def test_what_is_no_fault_of_the_engine_says_nothing(over: Flight, is_failed: bool | None) -> None:
    run = run_of(over)
    assert (None if run is None else run.failed) == is_failed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerStore]:
    with new_store(tmp_path) as opened:
        yield opened


def add(store: OwnerStore, *names: str, gateway_id: str | None = None) -> None:
    events = [
        QueryEvent(
            engine_id=EngineId("trino"),
            query_id=name,
            status=QueryStatus.FINISHED,
            submitted_at=NOW,
            collected_at=NOW,
            elapsed_ms=1_000.0,
            template_id=TemplateId("t"),
            statement_kind=StatementKind.SELECT,
            gateway_id=gateway_id,
        )
        for name in names
    ]
    store.upsert("query_event", to_arrow("query_event", events))


class Kept:
    """A recorder that only remembers."""

    def __init__(self) -> None:
        self.flights: list[Flight] = []

    def note(self, flight: Flight) -> None:
        self.flights.append(flight)


def test_a_run_counts_once_whoever_tells_of_it(store: OwnerStore) -> None:
    book, kept = ProfileBook(), Kept()
    learner = Learner(store, book, lambda: NOW + timedelta(minutes=1))
    LearningRecorder(kept, learner).note(flight())
    assert len(kept.flights) == 1
    add(store, "engine-id", gateway_id="g1")  # the same run, as the store has it
    add(store, "past-us")
    assert learner.catch_up() == 1
    assert learner.catch_up() == 0
    add(store, "later")
    assert learner.catch_up() == 1
    assert book.told("t", ("trino",), NOW).startswith("trino 3 (")


def test_a_store_that_is_away_stops_nobody(store: OwnerStore) -> None:
    learner = Learner(store, ProfileBook(), lambda: NOW + timedelta(minutes=1))
    add(store, "first")
    store.close()
    assert learner.catch_up() == 0

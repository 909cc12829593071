"""Runs of the query history become profiles and a model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus, StatementKind, TemplateId
from lakehouse_core.domain.routed import RoutedQuery
from lakehouse_core.routing.predict_choice import RoutePolicy
from lakehouse_core.routing.profiles import ProfileBook, in_seconds
from lakehouse_core.routing.profiles_history import learn_from, past_runs
from lakehouse_core.sql import Inspector
from lakehouse_core.store.rows import to_arrow
from tests.stores import emptied

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

NOW = datetime(2026, 3, 1, tzinfo=UTC)
INSPECTOR = Inspector()


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    return emptied(shared_store)


def event(number: int, engine: str, seconds: float, sql: str, **more: object) -> QueryEvent:
    given: dict[str, object] = {
        "status": QueryStatus.FINISHED,
        "statement_kind": StatementKind.SELECT,
        "bytes_scanned": 1_000_000,
    }
    at = NOW - timedelta(minutes=1_000 - number)
    return QueryEvent(
        engine_id=EngineId(engine),
        query_id=f"{engine}-{number}",
        submitted_at=at,
        collected_at=at,
        elapsed_ms=seconds * 1_000,
        template_id=TemplateId(INSPECTOR.fingerprint(sql, "trino").template_id),
        dialect="trino",
        sql_text=sql,
        **(given | more),
    )


def test_only_reads_that_tell_about_the_engine_are_taken(store: OwnerStore) -> None:
    sql = "SELECT a FROM t WHERE x = 1"
    events = [
        event(1, "trino", 2.0, sql),
        event(2, "trino", 3.0, sql, status=QueryStatus.FAILED, error_class="internal_error"),
        event(3, "trino", 4.0, sql, status=QueryStatus.FAILED, error_class="user_error"),
        event(6, "trino", 4.5, sql, status=QueryStatus.FAILED, error_class="gateway_error"),
        event(4, "trino", 5.0, sql, status=QueryStatus.CANCELLED),
        event(5, "trino", 6.0, sql, statement_kind=StatementKind.INSERT),
    ]
    store.upsert("query_event", to_arrow("query_event", events))
    found = [one.run for one in past_runs(store, NOW - timedelta(days=1))]
    assert [(run.seconds, run.failed) for run in found] == [(2.0, False), (3.0, True)]
    assert past_runs(store, NOW) == []


def test_the_newest_runs_are_kept_in_order(store: OwnerStore) -> None:
    sql = "SELECT a FROM t WHERE x = 1"
    events = [event(number, "trino", float(number), sql) for number in range(10)]
    store.upsert("query_event", to_arrow("query_event", events))
    found = past_runs(store, NOW - timedelta(days=1), runs=3)
    assert [one.run.seconds for one in found] == [7.0, 8.0, 9.0]


@pytest.mark.slow
def test_a_history_in_which_each_statement_ran_once_teaches(store: OwnerStore) -> None:
    rng = np.random.default_rng(0)
    events = []
    for number in range(120):
        column, engine = ("a", "b")[number % 2], ("trino", "duckdb")[(number // 2) % 2]
        seconds = 1.0 if (column == "a") == (engine == "trino") else 5.0
        sql = f"SELECT {column} FROM t WHERE x = {number}"  # noqa: S608 made up
        events.append(event(number, engine, seconds * float(np.exp(rng.normal(0, 0.1))), sql))
    store.upsert("query_event", to_arrow("query_event", events))
    past = past_runs(store, NOW - timedelta(days=1))
    trained = learn_from(past, in_seconds, INSPECTOR)
    assert trained is not None
    book = ProfileBook()
    book.record_all(one.run for one in past)
    policy = RoutePolicy(
        trained.engines,
        trained.space,
        trained.learned,
        lambda template: book.runs_of(template, trained.engines, in_seconds, NOW),
    )
    for column, engine in (("a", "trino"), ("b", "duckdb")):
        shape = INSPECTOR.shape(f"SELECT {column} FROM t WHERE x = 7", "trino")  # noqa: S608 made up
        assert policy.choose(shape).engine == engine


def test_one_engine_leaves_nothing_to_compare(store: OwnerStore) -> None:
    events = [event(number, "trino", 1.0, "SELECT a FROM t") for number in range(20)]
    store.upsert("query_event", to_arrow("query_event", events))
    assert learn_from(past_runs(store, NOW - timedelta(days=1)), in_seconds, INSPECTOR) is None


@pytest.mark.slow
def test_a_failed_run_costs_the_run_that_must_follow(store: OwnerStore) -> None:
    """Three times its own, it would be cheap when it fails at once."""
    events = []
    for number in range(120):
        column, engine = "abcdefghij"[number % 10], ("trino", "duckdb")[(number // 10) % 2]
        sql = f"SELECT {column} FROM t WHERE x = {number}"  # noqa: S608 made up
        is_failed = engine == "trino" and number % 3 == 0
        more = {"status": QueryStatus.FAILED, "error_class": "external"} if is_failed else {}
        seconds = 0.01 if is_failed else 3.0 if engine == "trino" else 2.5
        events.append(event(number, engine, seconds, sql, **more))
    store.upsert("query_event", to_arrow("query_event", events))
    trained = learn_from(past_runs(store, NOW - timedelta(days=1)), in_seconds, INSPECTOR)
    assert trained is not None
    assert trained.engines[trained.learned.default] == "duckdb"


def test_a_run_without_its_wait_knows_what_it_was_to_read(store: OwnerStore) -> None:
    asked = event(1, "trino", 5.0, "SELECT a FROM t", queued_ms=3_000.0, gateway_id="g1")
    none = event(2, "trino", 5.0, "SELECT a FROM t", bytes_scanned=0)
    store.upsert("query_event", to_arrow("query_event", [asked, none]))
    routed = RoutedQuery(
        gateway_id="g1",
        submitted_at=asked.submitted_at,
        ended_at=asked.submitted_at,
        protocol="trinoHttp",
        status="finished",
        source_dialect="trino",
        attempts=1,
        trace="[]",
        estimated_files=8,
        estimated_bytes=1_000,
    )
    store.upsert("routing_decision", to_arrow("routing_decision", [routed]))
    first, second = (one.run for one in past_runs(store, NOW - timedelta(days=1)))
    assert (first.seconds, first.size_bytes, first.wear, first.name) == (2.0, 1_000.0, 3.0, "g1")
    assert (second.scan_bytes, second.size_bytes, second.wear) == (0.0, 0.0, None)


def test_only_what_is_new_is_read_again(store: OwnerStore) -> None:
    events = [event(number, "trino", 1.0, "SELECT a FROM t") for number in range(4)]
    store.upsert("query_event", to_arrow("query_event", events))
    since = NOW - timedelta(days=1)
    newer = past_runs(store, since, after=events[2].collected_at, has_texts=False)
    assert [one.run.name for one in newer] == ["trino-2", "trino-3"]
    assert [one.text for one in newer] == [None, None]

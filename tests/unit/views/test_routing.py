"""What the router did, from the rows the gateway keeps."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.domain.routed import RoutedQuery
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.routing import routing_report, show_trace
from tests.factories import NOW, query_event
from tests.unit.views.conftest import clock

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf


def routed(gateway_id: str, *steps: tuple[str, str, str], **given: Any) -> RoutedQuery:
    trace = [{"stage": a, "subject": b, "result": c, "detail": ""} for a, b, c in steps]
    values: dict[str, Any] = {
        "submitted_at": NOW - timedelta(minutes=5),
        "ended_at": NOW - timedelta(minutes=4),
        "protocol": "trinoHttp",
        "status": "finished",
        "source_dialect": "trino",
        "attempts": 1,
        "cluster_group": "interactive",
        "engine_id": "duckdb",
        "user_name": "ana",
    }
    return RoutedQuery(gateway_id=gateway_id, trace=json.dumps(trace), **values | given)


FIRST = ("rule", "routers[0] header", "no match")
SECOND = ("rule", "routers[1] tags", "group batch")
FALLBACK = ("fallback", "routingFallback", "group interactive")


def test_a_rule_counts_statements_it_decided_each_once(store: Shelf) -> None:
    store.add(
        "routing_decision",
        routed("a", FIRST, SECOND, SECOND, cluster_group="batch", attempts=2),
        routed("b", ("rule", "routers[0] header", "denied"), cluster_group=None, denial="rule"),
        routed("c", ("rule", "routers[0] header", "failed"), FALLBACK, queue_ms=40.0),
        routed("d", FIRST, SECOND, submitted_at=NOW - timedelta(days=2)),
    )
    seen = routing_report(store, Filters(window="24h"), clock)
    assert {one.rule: (one.hits, one.denied) for one in seen.rules} == {
        "routers[0] header": (1, 1),
        "routers[1] tags": (1, 0),
        "routingFallback": (1, 0),
    }
    assert seen.statements == 3
    batch = seen.service_of("batch")
    assert batch is not None
    assert (batch.statements, batch.sent_again, batch.queue_p95_ms) == (1, 1, None)
    refused = next(one for one in seen.groups if one.group is None)
    assert (refused.denied, refused.failed) == (1, 0)
    assert seen.hits_of("routers[9] x") is None


def test_decisions_of_one_user_and_engine(store: Shelf) -> None:
    store.add("routing_decision", routed("a"), routed("b", user_name="bo"))
    seen = routing_report(store, Filters(engine="duckdb"), clock, user="bo")
    assert [one.gateway_id for one in seen.decisions] == ["b"]
    assert routing_report(store, Filters(engine="spark"), clock).decisions == ()


def test_a_trace_has_its_steps_and_what_the_engine_got(store: Shelf) -> None:
    event = query_event(
        engine_id=EngineId("duckdb"), query_id="q1", sql_text="SELECT 1", translated_sql="SELECT 2"
    )
    store.add("query_event", event)
    store.add("routing_decision", routed("a", FIRST, FALLBACK, query_id="q1"))
    seen = show_trace(store, " a ")
    assert [step.result for step in seen.steps] == ["no match", "group interactive"]
    assert (seen.sql_text, seen.translated_sql) == ("SELECT 1", "SELECT 2")
    assert show_trace(store, "q1").routed.gateway_id == "a"


def test_a_refused_statement_is_told_from_the_audit(store: Shelf) -> None:
    store.add("routing_decision", routed("a", status="failed", denial="guard", engine_id=None))
    detail = json.dumps({"sql": "DROP TABLE ?", "denial": "analyst may only read"})
    store.add_rows(
        "query_audit",
        {
            "chain": "c",
            "seq": 1,
            "noted_at": NOW,
            "actor": "ana",
            "verb": "denied",
            "action_id": "a",
            "detail": detail,
            "prev_hash": "",
            "hash": "h",
        },
    )
    seen = show_trace(store, "a")
    assert (seen.sql_text, seen.denial_message) == ("DROP TABLE ?", "analyst may only read")


def test_an_id_nobody_knows_is_told(store: Shelf) -> None:
    with pytest.raises(NotFoundError, match="'x' is recorded"):
        show_trace(store, "x")

"""Explaining is deciding: same code, same answer, and nothing changes by it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.query import EngineId
from lakehouse_core.routing.explain import BadQuestionError, explain, request_from, to_document
from lakehouse_core.routing.request import EngineStanding, ScanEstimate
from tests.unit.routing.conftest import on_loop, statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.routing.request import Request, StatementFacts
    from lakehouse_core.routing.router import Router
    from tests.unit.routing.conftest import Fleet

SETTINGS: dict[str, Any] = {
    "clusterGroups": {"g": {"members": ["trino", "trino-2"], "maxRunningQueries": 1}},
    "routers": [{"type": "userGroup", "userToGroup": {"ana": "g"}}],
}


class Scans:
    """Every statement reads two files."""

    def estimate(self, request: Request, facts: StatementFacts) -> ScanEstimate:
        del request, facts
        return ScanEstimate(files=2, bytes=5 * 10**11, basis="the test")


@on_loop
async def test_it_says_what_the_real_path_does_and_changes_nothing(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    fleet.standings["trino-2"] = EngineStanding(
        observed=ObservedState.UNHEALTHY, reason="no answer"
    )
    router = route(**SETTINGS)
    told = [explain(router, statement("SELECT 1 FROM lake.a.b")) for _ in range(3)]
    assert told[0] == told[1] == told[2]
    assert [rule.hits for rule in router.plan.rules] == [0]
    real = router.decide(statement("SELECT 1 FROM lake.a.b"))
    assert (told[0].engine_id, told[0].trace) == (real.engine_id, real.trace)
    assert told[0].tables == ("lake.a.b",)
    assert [(m.member, m.obstacle) for m in told[0].members] == [
        ("trino", None),
        ("trino-2", "it is unhealthy: no answer"),
    ]
    await router.acquire(statement(), router.decide(statement()))
    full = explain(router, statement())
    assert full.capacity.would_queue
    assert (full.capacity.member_running, full.capacity.member_limit) == (1, 1)
    assert router.waiting() == 0
    assert router.running(EngineId("trino")) == 1


def test_it_says_what_would_be_read_and_what_that_costs(route: Callable[..., Router]) -> None:
    router = route(**SETTINGS)
    told = explain(router, statement(), Scans(), {"trino": Decimal(5)})
    assert (told.estimate.files, told.estimate.cost_usd) == (2, Decimal("2.5"))
    assert explain(router, statement(), Scans()).estimate.cost_usd is None
    assert explain(router, statement()).estimate.bytes is None


def test_as_a_document_it_is_plain_json_with_exact_money(route: Callable[..., Router]) -> None:
    told = explain(route(**SETTINGS), statement(), Scans(), {"trino": Decimal("0.1")})
    document = json.loads(json.dumps(to_document(told)))
    assert document["estimate"]["cost_usd"] == "0.05"
    assert document["trace"][0]["stage"] == "rule"
    assert document["capacity"]["would_queue"] is False


def test_a_denial_is_explained_as_well(route: Callable[..., Router]) -> None:
    told = explain(route(**SETTINGS), statement(user="ben"))
    assert not told.would_run
    assert told.denial is not None
    assert told.denial.kind == "no_route"
    assert told.trace[-1].stage == "denied"


def test_a_question_is_a_statement_with_its_circumstances() -> None:
    asked = request_from(
        {
            "sql": "SELECT 1",
            "user": "ana",
            "groups": ["bi"],
            "tags": ["etl"],
            "headers": {"X-Env": "prod"},
            "endpoint": None,
        }
    )
    assert (asked.dialect, asked.groups, asked.tags) == ("trino", ("bi",), ("etl",))
    assert asked.headers == {"x-env": "prod"}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "JSON object"),
        ({}, "sql is missing"),
        ({"sql": "  "}, "sql is missing"),
        ({"sql": 1}, "sql: expected text"),
        ({"sql": "x", "tags": "etl"}, "tags: expected a list of texts"),
        ({"sql": "x", "headers": {"a": 1}}, "headers: expected texts by name"),
        ({"sql": "x", "run": True}, "Unknown: run"),
    ],
)
def test_anything_else_is_refused_in_words(document: object, said: str) -> None:
    with pytest.raises(BadQuestionError, match=said):
        request_from(document)

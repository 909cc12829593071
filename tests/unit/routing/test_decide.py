"""The decision: who may take a statement, who gets it, what is sent, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.engine import ConfiguredState, ObservedState
from lakehouse_core.routing.request import (
    EngineStanding,
    Everything,
    StatementFacts,
    Translation,
    Verdict,
)
from lakehouse_core.routing.trials import Assigned, TrialBook
from tests.unit.routing.conftest import on_loop, statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.routing.request import Decision, Request
    from lakehouse_core.routing.router import Router
    from tests.unit.routing.conftest import Fleet

Make = "Callable[..., Router]"
READ = "SELECT count(*) FROM lake.demo.events"


def group(*members: str, **given: Any) -> dict[str, Any]:
    return {"routingFallback": "g", "clusterGroups": {"g": {"members": members, **given}}}


def said(decision: Decision, stage: str) -> list[str]:
    return [str(step) for step in decision.trace if step.stage == stage]


def denial(decision: Decision) -> tuple[str, str]:
    assert decision.denial is not None
    return decision.denial.kind, decision.denial.message


@pytest.mark.parametrize(
    ("standing", "why"),
    [
        (
            EngineStanding(
                configured=ConfiguredState.MAINTENANCE, reason="maintenance by ana: new disks"
            ),
            "maintenance by ana: new disks",
        ),
        (EngineStanding(configured=ConfiguredState.INACTIVE), "it is inactive"),
        (
            EngineStanding(observed=ObservedState.UNHEALTHY, reason="no answer within 8 s"),
            "it is unhealthy: no answer within 8 s",
        ),
        (EngineStanding(observed=ObservedState.PENDING), "it is pending"),
    ],
)
def test_an_engine_out_of_service_gets_no_new_statement(
    route: Callable[..., Router], fleet: Fleet, standing: EngineStanding, why: str
) -> None:
    router = route(**group("trino", "trino-2", strategy={"type": "failover"}))
    assert router.decide(statement(READ)).engine_id == "trino"
    fleet.standings["trino"] = standing
    decision = router.decide(statement(READ))
    assert decision.engine_id == "trino-2"
    assert said(decision, "feasibility") == [f"feasibility trino: left out ({why})"]
    fleet.standings["trino-2"] = standing
    kind, message = denial(router.decide(statement(READ)))
    assert kind == "unavailable"
    assert message == (f"No engine of group g can take it now: trino: {why}; trino-2: {why}")


def test_an_engine_nobody_has_looked_at_lately_still_works(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    fleet.standings["trino"] = EngineStanding(observed=ObservedState.UNKNOWN)
    assert route(**group("trino")).decide(statement(READ)).engine_id == "trino"


@pytest.mark.parametrize(
    ("sql", "members", "engine", "why"),
    [
        (
            "INSERT INTO lake.demo.events SELECT 1",
            ("duckdb", "trino"),
            "trino",
            "it takes no insert statements",
        ),
        (
            "EXPLAIN ANALYZE INSERT INTO lake.demo.events SELECT 1",
            ("duckdb", "trino"),
            "trino",
            "it takes no explain statements",
        ),
        (
            "SELECT * FROM archive.old.events",
            ("trino", "other"),
            "other",
            "it does not reach catalog archive",
        ),
        (
            "SELECT * FROM tpch.tiny.nation",
            ("duckdb", "trino"),
            "trino",
            "catalog tpch is none of ours; only an engine of its dialect may know it",
        ),
        (
            "SELECT FROM WHERE (",
            ("duckdb", "trino"),
            "trino",
            "the text is not understood, so that only an engine of its dialect may get it",
        ),
        (READ, ("athena", "trino"), "trino", "its history is read, nothing is sent to it"),
    ],
)
def test_only_members_that_can_take_the_statement_are_considered(
    route: Callable[..., Router], sql: str, members: tuple[str, ...], engine: str, why: str
) -> None:
    decision = route(**group(*members, strategy={"type": "failover"})).decide(statement(sql))
    assert decision.engine_id == engine
    assert said(decision, "feasibility") == [f"feasibility {members[0]}: left out ({why})"]


def test_what_no_member_ever_takes_is_not_worth_another_try(route: Callable[..., Router]) -> None:
    write = statement("INSERT INTO lake.demo.events SELECT 1", dialect="duckdb")
    assert denial(route(**group("duckdb", "athena")).decide(write))[0] == "no_route"
    assert denial(route(**group("duckdb")).decide(write)) == (
        "no_route",
        "No engine of group g takes it: duckdb: it takes no insert statements",
    )


def test_a_switched_off_group_gives_way_to_its_fallback(route: Callable[..., Router]) -> None:
    groups = {
        "g": {"members": ["trino"], "enabled": False, "fallbackGroup": "h"},
        "h": {"members": ["trino-2"]},
    }
    decision = route(clusterGroups=groups, routingFallback="g").decide(statement(READ))
    assert (decision.group, decision.engine_id) == ("h", "trino-2")


@pytest.mark.parametrize(
    ("user", "groups", "is_allowed"),
    [("ana", (), True), ("ben", ("bi",), True), ("ben", ("x",), False), (None, (), False)],
)
def test_a_group_takes_those_it_allows(
    route: Callable[..., Router], user: str | None, groups: tuple[str, ...], is_allowed: bool
) -> None:
    allowed = {"allowUsers": ["ana"], "allowGroups": ["bi"]}
    router = route(**group("trino", authorization=allowed))
    decision = router.decide(statement(READ, user=user, groups=groups))
    if is_allowed:
        assert decision.engine_id == "trino"
    else:
        assert denial(decision) == (
            "authorization",
            f"User {user or 'unknown'} may not use group g",
        )


def test_a_fallback_that_does_not_take_the_user_is_left_out(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    fleet.standings["trino"] = EngineStanding(observed=ObservedState.UNHEALTHY)
    groups = {
        "g": {"members": ["trino"], "fallbackGroup": "h"},
        "h": {"members": ["trino-2"], "authorization": {"allowUsers": ["ben"]}},
    }
    router = route(clusterGroups=groups, routingFallback="g")
    assert denial(router.decide(statement(READ)))[0] == "unavailable"
    assert router.decide(statement(READ, user="ben")).engine_id == "trino-2"


# --- endpoints ------------------------------------------------------------------------------------

ENDPOINTS = {
    "bi": {"path": "/bi", "group": "g", "priority": 9},
    "etl": {"port": 8181, "pool": ["spark"], "authorization": {"allowGroups": ["etl"]}},
    "open": {"path": "/open"},
}


def test_an_endpoint_has_its_own_group_pool_priority_and_users(
    route: Callable[..., Router],
) -> None:
    router = route(**group("trino", priority=1), endpoints=ENDPOINTS)
    through = router.decide(statement(READ, endpoint="bi"))
    assert (through.group, through.priority) == ("g", 9)
    assert said(through, "endpoint") == ["endpoint bi: entered (group g)"]
    assert said(through, "fallback") == []
    pooled = router.decide(statement(READ, endpoint="etl", groups=("etl",), dialect="spark"))
    assert (pooled.group, pooled.engine_id) == ("endpoint:etl", "spark")
    assert denial(router.decide(statement(READ, endpoint="etl")))[0] == "authorization"
    plain = router.decide(statement(READ, endpoint="open"))
    assert (plain.group, plain.priority) == ("g", 1)
    assert denial(router.decide(statement(READ, endpoint="nope"))) == (
        "no_route",
        "There is no endpoint 'nope'",
    )


def test_an_endpoint_may_have_a_fallback_of_its_own(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    fleet.standings["trino"] = EngineStanding(observed=ObservedState.UNHEALTHY)
    groups = {"g": {"members": ["trino"]}, "h": {"members": ["trino-2"]}}
    endpoints = {"bi": {"path": "/bi", "fallbackGroup": "h"}}
    router = route(clusterGroups=groups, routingFallback="g", endpoints=endpoints)
    assert router.decide(statement(READ, endpoint="bi")).engine_id == "trino-2"
    assert denial(router.decide(statement(READ)))[0] == "unavailable"


# --- what is sent ---------------------------------------------------------------------------------


@dataclass
class Interpreter:
    """Translates everything, surely or with doubts."""

    doubts: frozenset[str] = frozenset()

    def translate(
        self, sql: str, source: str, target: str, *, catalog: str | None, schema: str | None
    ) -> Translation:
        del source, catalog, schema
        if target in self.doubts:
            return Translation(f"{sql} /* {target}? */", "doubtful", "division differs")
        return Translation(f"{sql} /* {target} */", "translated")


def test_the_text_is_translated_for_the_engine_that_gets_it(route: Callable[..., Router]) -> None:
    router = route(ports={"translator": Interpreter()}, **group("duckdb"))
    decision = router.decide(statement(READ))
    assert (decision.target_dialect, decision.translation) == ("duckdb", "translated")
    assert decision.sql == f"{READ} /* duckdb */"
    same = router.decide(statement(READ, dialect="duckdb"))
    assert (same.translation, same.sql) == ("not_needed", READ)


def test_a_doubtful_translation_stays_on_an_engine_of_its_dialect(
    route: Callable[..., Router],
) -> None:
    ports = {"translator": Interpreter(frozenset({"duckdb"}))}
    settings = group("duckdb", "trino", strategy={"type": "failover"})
    decision = route(ports=ports, **settings).decide(statement(READ))
    assert (decision.engine_id, decision.sql) == ("trino", READ)
    assert said(decision, "translation") == ["translation duckdb: doubtful (division differs)"]


@on_loop
async def test_it_rather_waits_for_its_dialect_than_to_be_translated_in_doubt(
    route: Callable[..., Router],
) -> None:
    ports = {"translator": Interpreter(frozenset({"duckdb"}))}
    router = route(ports=ports, **group("duckdb", "trino", maxRunningQueries=1))
    lease = await router.acquire(statement(READ), router.decide(statement(READ)))
    assert lease.decision.engine_id == "trino"
    second = router.decide(statement(READ))
    assert (second.engine_id, second.capacity.would_queue) == ("trino", True)


@pytest.mark.parametrize(
    ("translation", "kind"),
    [
        ({}, None),
        ({"mode": "strict"}, "translation"),
        ({"errorOnUnsupported": True}, "translation"),
    ],
)
def test_without_an_engine_of_its_dialect_it_is_best_effort_or_refused(
    route: Callable[..., Router], translation: dict[str, Any], kind: str | None
) -> None:
    ports = {"translator": Interpreter(frozenset({"duckdb"}))}
    router = route(ports=ports, **group("duckdb"), translation=translation)
    decision = router.decide(statement(READ))
    if kind is None:
        assert (decision.engine_id, decision.translation) == ("duckdb", "doubtful")
        assert decision.sql.endswith("/* duckdb? */")
    else:
        assert denial(decision) == (kind, "It cannot be translated: division differs")
        assert decision.sql == READ


class Censor:
    """Lets through what has no secrets in it, and limits it."""

    def sight(self, request: Request) -> Everything:
        del request
        return Everything()

    def check(self, sql: str, dialect: str, request: Request, facts: StatementFacts) -> Verdict:
        del dialect, facts
        if "secret" in sql:
            return Verdict(False, sql, "forbidden_table", f"{request.role} may not read it")
        return Verdict(True, f"{sql} LIMIT 10")


def test_the_guard_sees_and_shapes_the_final_text(route: Callable[..., Router]) -> None:
    router = route(ports={"guard": Censor(), "translator": Interpreter()}, **group("duckdb"))
    assert router.decide(statement(READ)).sql == f"{READ} /* duckdb */ LIMIT 10"
    refused = router.decide(statement("SELECT * FROM lake.hr.secret", role="analyst"))
    assert denial(refused) == ("guard", "analyst may not read it")
    assert said(refused, "guard") == ["guard forbidden_table: denied (analyst may not read it)"]


def test_tags_of_the_group_are_added_where_the_request_has_none(
    route: Callable[..., Router],
) -> None:
    tags = {"team": "bi", "cost": None, "year": 2026}
    router = route(**group("trino", defaultTags=tags))
    decision = router.decide(statement(READ, tags=("team:x",)))
    assert decision.tags == ("team:x", "cost", "year:2026")


# --- without configuration ------------------------------------------------------------------------


def test_without_routing_every_engine_is_a_group_and_all_are_the_default(
    route: Callable[..., Router],
) -> None:
    router = route()
    names = ["duckdb", "spark", "trino", "trino-2", "other", "default"]
    assert list(router.plan.layout.groups) == names
    for dialect in ("duckdb", "spark"):
        assert router.decide(statement(READ, dialect=dialect)).engine_id == dialect


# --- hostile texts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
        f"SELECT * FROM t WHERE a IN ({','.join(map(str, range(20_000)))})",  # noqa: S608 a text
        f"SELECT {', '.join(f'c{i}' for i in range(10_000))} FROM t",  # noqa: S608 as above
        "SELECT '\x00'",
        "SELECT \ud800",
        "",
        "';DROP TABLE x; --",
    ],
    ids=["nested", "long list", "wide", "nul", "surrogate", "empty", "injection"],
)
def test_any_text_is_decided_on(route: Callable[..., Router], sql: str) -> None:
    decision = route(**group("duckdb", "trino")).decide(statement(sql))
    assert decision.denial is None
    assert decision.sql == sql
    assert decision.engine_id == "trino" or decision.facts.error is None


def test_a_trial_chooses_the_member_and_the_trace_names_it(route: Callable[..., Router]) -> None:
    trials = TrialBook()
    router = route({"trials": trials}, **group("trino", "trino-2", strategy={"type": "failover"}))
    before = router.decide(statement(READ, gateway_id="g1"))
    trials.put(before.facts.template_id, Assigned("route-1", "trino-2", 100))
    tried = router.decide(statement(READ, gateway_id="g1"))
    assert (before.engine_id, tried.engine_id) == ("trino", "trino-2")
    assert said(tried, "strategy") == [
        "strategy g: trino-2 (trial route-1: 100 % of this template go to trino-2)"
    ]
    insert = statement(f"INSERT INTO lake.demo.events {READ}", gateway_id="g1")
    assert router.decide(insert).engine_id == "trino"


def test_a_trial_does_not_lead_out_of_the_group(route: Callable[..., Router]) -> None:
    trials = TrialBook()
    router = route({"trials": trials}, **group("trino", strategy={"type": "failover"}))
    template = router.decide(statement(READ)).facts.template_id
    trials.put(template, Assigned("route-1", "duckdb", 100))
    assert router.decide(statement(READ)).engine_id == "trino"

"""A client that names its engine gets that one, where rules, groups and its role let it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.domain.engine import ConfiguredState
from lakehouse_core.governance.guard import Guard
from lakehouse_core.governance.roles import policies_of
from lakehouse_core.governance.routed import RoutedGuard, RoutedTranslator
from lakehouse_core.routing.request import EngineStanding
from tests.unit.routing.conftest import statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.routing.request import Decision
    from lakehouse_core.routing.router import Router
    from tests.unit.routing.conftest import Fleet

READ = "SELECT count(*) FROM lake.demo.events"
TWO_GROUPS: dict[str, Any] = {
    "routingFallback": "fast",
    "clusterGroups": {
        "fast": {"members": ["duckdb", "trino"], "fallbackGroup": "batch"},
        "batch": {"members": ["trino", "spark"]},
    },
}


def asks(router: Router, engine: str, **given: Any) -> Decision:
    header = given.pop("header", "x-lakehelm-engine")
    return router.decide(statement(READ, headers={header: engine}, **given))


def guarded(*, chooses: bool) -> dict[str, Any]:
    governance = GovernanceConfig.model_validate(
        {"default_role": "r", "roles": {"r": {"chooses_engine": chooses}}}
    )
    guard = RoutedGuard(Guard(policies_of(governance)), governance)
    return {"guard": guard, "translator": RoutedTranslator()}


@pytest.mark.parametrize("header", ["x-lakehelm-engine", "lakehelm.engine"])
@pytest.mark.parametrize(
    ("engine", "group"), [("duckdb", "fast"), ("trino", "fast"), ("spark", "batch")]
)
def test_every_engine_of_a_reachable_group_can_be_named(
    route: Callable[..., Router], engine: str, group: str, header: str
) -> None:
    router = route(**TWO_GROUPS, ports=guarded(chooses=True))
    decision = asks(router, engine, header=header)
    assert (decision.engine_id, decision.group, decision.denial) == (engine, group, None)
    assert [str(step) for step in decision.trace if step.stage == "override"] == [
        f"override {engine}: group {group} (the client asks for this engine)"
    ]


def test_a_role_that_does_not_choose_is_told_so(route: Callable[..., Router]) -> None:
    router = route(**TWO_GROUPS, ports=guarded(chooses=False))
    denial = asks(router, "spark").denial
    assert denial is not None
    assert denial.kind == "authorization"
    assert denial.message == (
        "User ana may not use engine spark by name: its role lacks chooses_engine"
    )
    assert router.decide(statement(READ)).denial is None


def test_an_engine_that_nobody_knows_is_named_with_those_there_are(
    route: Callable[..., Router],
) -> None:
    denial = asks(route(**TWO_GROUPS), "presto").denial
    assert denial is not None
    assert denial.kind == "no_route"
    assert denial.message == (
        "User ana can reach no engine 'presto'; there are duckdb, trino, spark"
    )


def test_a_group_that_does_not_let_in_is_no_way_to_its_engine(
    route: Callable[..., Router],
) -> None:
    groups = TWO_GROUPS["clusterGroups"]
    closed = {**groups, "batch": {**groups["batch"], "authorization": {"allowUsers": ["eve"]}}}
    router = route(**{**TWO_GROUPS, "clusterGroups": closed})
    denial = asks(router, "spark").denial
    assert denial is not None
    assert denial.message == "User ana can reach no engine 'spark'; there are duckdb, trino"
    assert asks(router, "spark", user="eve").engine_id == "spark"


def test_rules_that_deny_are_not_passed_by(route: Callable[..., Router]) -> None:
    denying = {
        "type": "queryRegex",
        "rules": [{"regex": "events", "action": "deny", "error": "not these"}],
    }
    denial = asks(route(**TWO_GROUPS, routers=[denying]), "spark").denial
    assert denial is not None
    assert (denial.kind, denial.message) == ("rule", "not these")


def test_an_engine_out_of_service_is_not_replaced_by_another(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    fleet.standings["duckdb"] = EngineStanding(configured=ConfiguredState.MAINTENANCE)
    denial = asks(route(**TWO_GROUPS), "duckdb").denial
    assert denial is not None
    assert denial.kind == "unavailable"
    assert denial.message == ("No engine of group fast can take it now: duckdb: it is maintenance")


def test_an_endpoint_with_a_group_of_its_own_is_not_left(route: Callable[..., Router]) -> None:
    groups = {**TWO_GROUPS["clusterGroups"], "alone": {"members": ["duckdb"]}}
    endpoints = {"bi": {"path": "/bi", "group": "alone"}, "all": {"path": "/all"}}
    router = route(**{**TWO_GROUPS, "clusterGroups": groups}, endpoints=endpoints)
    denial = asks(router, "spark", endpoint="bi").denial
    assert denial is not None
    assert denial.message == "User ana can reach no engine 'spark'; there are duckdb"
    assert asks(router, "spark", endpoint="all").engine_id == "spark"

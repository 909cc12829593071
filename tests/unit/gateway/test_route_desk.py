"""The router over HTTP: explains without running, shows hits and load, takes new rules or none."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from starlette.applications import Starlette

from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.gateway.routing import RouteDesk
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.router import Router
from tests.unit.routing.conftest import Fleet, plan_of, statement
from tests.unit.routing.test_explain import Scans

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.routing.decide import Plan

SETTINGS: dict[str, Any] = {
    "clusterGroups": {"g": {"members": ["trino"]}},
    "routers": [{"type": "userGroup", "userToGroup": {"ana": "g"}}],
}


class Site:
    """The desk behind an application, and the plan it would load."""

    def __init__(self) -> None:
        self.router = Router(plan_of(**SETTINGS), Ports(fleet=Fleet()))
        self.load: Callable[[], Plan] = lambda: plan_of(clusterGroups={"h": {"members": ["trino"]}})
        desk = RouteDesk(self.router, self._plan, Scans(), {"trino": Decimal(5)})
        self.app = Starlette(routes=desk.routes())

    def _plan(self) -> Plan:
        return self.load()

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                return await client.request(method, path, **given)

        return asyncio.run(send())


def test_a_statement_is_explained_and_nothing_counts() -> None:
    site = Site()
    answer = site.ask("POST", "/v1/route/explain", json={"sql": "SELECT 1", "user": "ana"}).json()
    assert (answer["engine_id"], answer["group"]) == ("trino", "g")
    assert answer["trace"][0]["result"] == "group g"
    assert answer["estimate"]["cost_usd"] == "2.5"
    assert site.ask("GET", "/v1/route/rules").json()["rules"][0]["hits"] == 0


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"sql": 1}', b'{"sql": "x", "y": 1}', b"\xff"]
)
def test_what_is_no_question_is_refused(body: bytes) -> None:
    answer = Site().ask("POST", "/v1/route/explain", content=body)
    assert answer.status_code == 400


def test_too_much_is_refused() -> None:
    answer = Site().ask("POST", "/v1/route/explain", content=b" " * (4 * 2**20 + 1))
    assert answer.status_code == 413


def test_rules_show_their_hits_and_groups_their_load() -> None:
    site = Site()
    lease = site.router.try_acquire(statement(), site.router.decide(statement()))
    assert lease is not None
    seen = site.ask("GET", "/v1/route/rules").json()
    assert seen["rules"] == [
        {"rule": "routers[0] userGroup", "says": {"userToGroup": {"ana": "g"}}, "hits": 1}
    ]
    (group,) = seen["groups"]
    assert (group["running"], group["running_limit"], group["waiting"]) == (1, 2, 0)
    assert group["members"][0]["running"] == 1


def test_new_rules_are_taken_over_and_wrong_ones_are_not() -> None:
    site = Site()

    def wrong() -> Plan:
        raise ConfigError("routing.yaml:3: routers[0].type: no such type")

    good, site.load = site.load, wrong
    refused = site.ask("POST", "/v1/route/reload")
    assert (refused.status_code, refused.json()["is_done"]) == (409, False)
    assert "routing.yaml:3" in refused.json()["message"]
    assert list(site.router.plan.layout.groups) == ["g"]
    site.load = good
    assert site.ask("POST", "/v1/route/reload").status_code == 200
    assert list(site.router.plan.layout.groups) == ["h"]

"""New rules are taken as a whole or not at all; statements that run or wait go on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config import load_config
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.routing.build import make_plan, remake_plan
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.router import Router
from tests.unit.routing.conftest import Fleet, on_loop, plan_of, statement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.routing.decide import Plan

ONE = {"clusterGroups": {"g": {"members": ["trino"]}}, "routingFallback": "g"}
TWO = {"clusterGroups": {"h": {"members": ["trino-2"]}}, "routingFallback": "h"}


def test_bad_rules_leave_those_of_before_in_force(tmp_path: Path, demo_config: Config) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text("clusterGroups: {g: {members: [trino]}}\nroutingFallback: g\n")
    routing = demo_config.routing.model_copy(update={"file": file})
    config = demo_config.model_copy(update={"routing": routing})
    router = Router(make_plan(config), Ports(fleet=Fleet()))
    assert router.decide(statement()).group == "g"
    file.write_text("clusterGroups: {h: {members: [nobody]}}\nroutingFallback: h\n")
    reload = router.reload(lambda: make_plan(config))
    assert not reload.is_done
    assert f"{file}:1: clusterGroups.h.members[0]" in reload.message
    assert router.decide(statement()).group == "g"
    file.write_text("clusterGroups: {h: {members: [trino]}}\nroutingFallback: h\n")
    assert router.reload(lambda: make_plan(config)).is_done
    assert router.decide(statement()).group == "h"


@on_loop
async def test_statements_that_run_keep_their_places(route: Callable[..., Router]) -> None:
    router = route(**ONE)
    lease = await router.acquire(statement(), router.decide(statement()))
    assert router.reload(lambda: plan_of(**TWO)).is_done
    assert router.running(lease.place.engine_id) == 1
    lease.release("finished")
    assert router.running(lease.place.engine_id) == 0


@on_loop
async def test_statements_that_wait_are_decided_by_the_new_rules(
    route: Callable[..., Router],
) -> None:
    router = route(**ONE)
    held = [await router.acquire(statement(), router.decide(statement())) for _ in range(2)]
    waits = asyncio.create_task(router.acquire(statement(), router.decide(statement())))
    await asyncio.sleep(0)
    assert router.waiting() == 1
    router.reload(lambda: plan_of(**TWO))
    lease = await waits
    assert lease.decision.engine_id == "trino-2"
    for one in (*held, lease):
        one.release("finished")


@on_loop
async def test_a_decision_of_the_old_rules_is_made_anew(route: Callable[..., Router]) -> None:
    router = route(**ONE)
    decision = router.decide(statement())
    router.reload(lambda: plan_of(**TWO))
    lease = await router.acquire(statement(), decision)
    assert lease.decision.engine_id == "trino-2"


def test_rules_in_the_configuration_itself_are_read_again(
    tmp_path: Path, repository: Path, demo_config: Config
) -> None:
    file = tmp_path / "lakehelm.yaml"
    text = (repository / "config" / "lakehelm.yaml").read_text()
    router = Router(make_plan(demo_config), Ports(fleet=Fleet()))
    assert router.decide(statement()).group == "interactive"

    def read() -> Plan:
        return remake_plan(demo_config, load_config(file, {}).config)

    file.write_text(text.replace("routingFallback: interactive", "routingFallback: batch"))
    assert router.reload(read).is_done
    assert router.decide(statement()).group == "batch"
    file.write_text(text.replace("routingFallback: interactive", "routingFallback: nowhere"))
    reload = router.reload(read)
    line = text.splitlines().index("  routingFallback: interactive") + 1
    assert not reload.is_done
    assert f"lakehelm.yaml:{line}: routing.routingFallback" in reload.message
    assert router.decide(statement()).group == "batch"


def test_an_engine_that_was_not_there_at_the_start_is_told(
    tmp_path: Path, repository: Path, demo_config: Config
) -> None:
    file = tmp_path / "lakehelm.yaml"
    text = (repository / "config" / "lakehelm.yaml").read_text()
    text = text.replace("engines:\n", "engines:\n  duck2: {type: duckdb, catalog: lake}\n", 1)
    file.write_text(text.replace("members: [duckdb, trino]", "members: [duck2, trino]"))
    fresh = load_config(file, {}).config
    with pytest.raises(ConfigError, match=r"clusterGroups\.interactive\.members\[0\].*restart"):
        remake_plan(demo_config, fresh)

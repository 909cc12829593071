"""The demo's own rules: what its people send is measured on every engine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lakehouse_core.demo.personas import PERSONAS
from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.governance.routed import RoutedTranslator
from lakehouse_core.routing.build import make_plan
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.request import EngineStanding
from lakehouse_core.routing.router import Router
from tests.unit.routing.conftest import Fleet, on_loop, statement

if TYPE_CHECKING:
    from lakehouse_core.config import Config

ENGINES = {"duckdb", "spark", "trino"}
SQL = "SELECT count(*) FROM lake.demo.events"


def test_dashboards_and_questions_have_groups_of_all_engines(demo_config: Config) -> None:
    router = Router(make_plan(demo_config), Ports(fleet=Fleet()))
    groups = {
        persona.user: router.decide(statement(SQL, tags=persona.tags("any"))).group
        for persona in PERSONAS
        if persona.is_routed
    }

    assert set(groups.values()) == {"dashboards", "questions"}
    for name in set(groups.values()):
        assert name is not None
        assert set(demo_config.routing.clusterGroups[name].members) == ENGINES


@on_loop
async def test_every_engine_gets_dashboards_also_when_another_is_away(demo_config: Config) -> None:
    async def served(fleet: Fleet) -> Counter[str]:
        router = Router(make_plan(demo_config), Ports(fleet=fleet, translator=RoutedTranslator()))
        counts: Counter[str] = Counter()
        for _ in range(40):
            asked = statement(SQL, tags=("dashboard:pages",))
            lease = await router.acquire(asked, router.decide(asked))
            counts[str(lease.decision.engine_id)] += 1
            lease.release("finished")
        return counts

    assert await served(Fleet()) == {"trino": 20, "duckdb": 10, "spark": 10}
    away = EngineStanding(observed=ObservedState.UNHEALTHY)
    assert await served(Fleet({"trino": away})) == {"duckdb": 20, "spark": 20}

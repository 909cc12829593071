"""The router picks only an engine that may take the statement, and finds one when there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.engine import ConfiguredState, ObservedState
from lakehouse_core.domain.query import EngineId
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.request import EngineStanding
from lakehouse_core.routing.router import Router
from tests.unit.routing.conftest import CAN, ENGINES, Fleet, plan_of, statement
from tests.unit.routing.test_decide import Interpreter

if TYPE_CHECKING:
    from lakehouse_core.routing.request import Request

STATEMENTS = (
    "SELECT 1",
    "SELECT * FROM lake.a.b",
    "SELECT * FROM archive.a.b",
    "INSERT INTO lake.a.b SELECT 1",
    "DELETE FROM archive.a.b",
)
standings = st.builds(
    EngineStanding,
    configured=st.sampled_from(ConfiguredState),
    observed=st.sampled_from(ObservedState),
)
kinds = st.sampled_from(
    ("roundRobin", "leastLoaded", "failover", "costOptimized", "latencyOptimized")
)


def may_take(name: str, standing: EngineStanding, request: Request) -> bool:
    """By hand, from what the names and texts of this test mean."""
    is_in_service = (
        standing.configured is ConfiguredState.ACTIVE
        and standing.observed in (ObservedState.HEALTHY, ObservedState.UNKNOWN)
        and name in CAN
    )
    is_write = request.sql.startswith(("INSERT", "DELETE"))
    catalog = "archive" if "archive" in request.sql else "lake" if "lake" in request.sql else None
    reaches = catalog is None or ENGINES[name].catalog == catalog
    return is_in_service and reaches and (not is_write or CAN[name].can_write)


@given(
    members=st.lists(st.sampled_from(sorted(ENGINES)), min_size=1, unique=True),
    states=st.dictionaries(st.sampled_from(sorted(ENGINES)), standings),
    sql=st.sampled_from(STATEMENTS),
    kind=kinds,
)
def test_only_an_eligible_engine_is_chosen_and_one_is_whenever_there_is_one(
    members: list[str], states: dict[str, EngineStanding], sql: str, kind: str
) -> None:
    group = {"members": members, "strategy": {"type": kind}}
    plan = plan_of(clusterGroups={"g": group}, routingFallback="g")
    router = Router(plan, Ports(fleet=Fleet(dict(states)), translator=Interpreter()))
    request = statement(sql)
    decision = router.decide(request)
    eligible = [
        name for name in members if may_take(name, states.get(name, EngineStanding()), request)
    ]
    if eligible:
        assert decision.denial is None
        assert decision.engine_id in [EngineId(name) for name in eligible]
        assert set(decision.candidates) == set(eligible)
    else:
        assert decision.denial is not None
        assert decision.engine_id is None

"""A small fleet of engines, and routers over it."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.models import AthenaEngine, DuckDBEngine, SparkEngine, TrinoEngine
from lakehouse_core.config.routing import RoutingConfig
from lakehouse_core.domain.engine import EngineCapabilities
from lakehouse_core.routing.decide import Plan, Ports
from lakehouse_core.routing.groups import lay_out
from lakehouse_core.routing.request import EngineStanding, Request
from lakehouse_core.routing.router import Router
from lakehouse_core.routing.rules import compile_rules
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from lakehouse_core.config.models import EngineConfig
    from lakehouse_core.domain.query import EngineId

ENGINES: dict[str, EngineConfig] = {
    "duckdb": DuckDBEngine(type="duckdb", catalog="lake", max_running=2),
    "spark": SparkEngine(type="spark", catalog="lake", max_running=2),
    "trino": TrinoEngine(type="trino", catalog="lake", max_running=2),
    "trino-2": TrinoEngine(type="trino", catalog="lake", max_running=2, port=8086),
    "other": TrinoEngine(type="trino", catalog="archive", max_running=2, port=8087),
    "athena": AthenaEngine(type="athena", catalog="lake", region="eu-central-1"),
}
CAN = {
    name: EngineCapabilities(
        dialect=engine.type,
        can_write=engine.type != "duckdb",
        can_cancel=True,
        reports_bytes=True,
        has_own_history=True,
    )
    for name, engine in ENGINES.items()
    if engine.type != "athena"
}


@dataclass
class Fleet:
    """Engines that are well unless said otherwise."""

    standings: dict[str, EngineStanding] = field(default_factory=dict)

    def standing(self, engine_id: EngineId) -> EngineStanding:
        return self.standings.get(engine_id, EngineStanding())


@dataclass
class Hands:
    """A clock that somebody turns."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


def plan_of(engines: dict[str, EngineConfig] | None = None, **routing: Any) -> Plan:
    """A plan of a routing section, as `make_plan` makes one of a whole configuration."""
    settings = RoutingConfig.model_validate(routing)
    return Plan(
        rules=compile_rules(settings.routers),
        layout=lay_out(settings, engines or ENGINES, CAN, ("lake", "archive")),
        is_strict=settings.translation.is_strict,
        source="the test",
    )


def statement(sql: str = "SELECT 1", **given: Any) -> Request:
    return Request(**{"sql": sql, "dialect": "trino", "user": "ana", **given})


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test on a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def whole() -> None:
            await test(*args, **kwargs)

        asyncio.run(whole())

    return run


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def route(fleet: Fleet, hands: Hands) -> Callable[..., Router]:
    """Makes a router of a routing section; `ports` beside it."""

    def make(ports: dict[str, Any] | None = None, **routing: Any) -> Router:
        return Router(plan_of(**routing), Ports(fleet=fleet, **(ports or {})), hands)

    return make

"""Shadow runs: once more on another engine, within a budget, and in nobody's way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from lakehouse_core.domain.errors import EngineUnavailableError
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.gateway.learning import run_of
from lakehouse_core.gateway.record import to_event, to_routed
from lakehouse_core.gateway.service import QueryService
from lakehouse_core.gateway.shadow import (
    ENOUGH_RUNS,
    PROTOCOL,
    SOURCE,
    ShadowingRecorder,
    ShadowRuns,
    is_drawn,
)
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.profiles import ProfileBook, Run
from lakehouse_core.routing.request import Request
from lakehouse_core.routing.router import Router
from tests.factories import NOW
from tests.unit.gateway.postgres.site import RowsEngine
from tests.unit.gateway.trino.site import Notes
from tests.unit.routing.conftest import Fleet, plan_of

if TYPE_CHECKING:
    from lakehouse_core.engines.base import Statement
    from lakehouse_core.gateway.flight import Flight

READ = "SELECT x FROM lake.demo.t WHERE x > 1"
ALWAYS = {"share": 0.5, "budget": 0.5}
DRAWN = next(f"g{n}" for n in range(100) if is_drawn(f"g{n}", 0.5))


class Gone(RowsEngine):
    """An engine that is not there."""

    def stream(self, statement: Statement) -> Any:
        self.asked.append(statement)
        raise EngineUnavailableError("it is gone")


def priced(engine_id: str, seconds: Any, sizes: Any) -> Any:
    """The second engine is dear."""
    del sizes
    return seconds * (1_000.0 if engine_id == "trino-2" else 1.0)


class Two:
    """Two engines of one dialect; the first answers."""

    def __init__(self, second: RowsEngine | None = None, price: Any = None, **shadow: Any) -> None:
        group = {
            "members": ["trino", "trino-2"],
            "strategy": {"type": "failover"},
            "shadow": shadow,
        }
        plan = plan_of(clusterGroups={"all": group}, routingFallback="all")
        self.router = Router(plan, Ports(fleet=Fleet()))
        self.notes, self.book = Notes(), ProfileBook()
        self.first, self.second = RowsEngine(), second or RowsEngine()
        recorder = ShadowingRecorder(self.notes)
        engines = {EngineId("trino"): self.first, EngineId("trino-2"): self.second}
        self.service = QueryService(self.router, engines, recorder)
        value = price or (lambda _engine, seconds, _sizes: seconds)
        self.shadows = recorder.shadows = ShadowRuns(self.router, self.service, self.book, value)

    async def ask(self, sql: str = READ, gateway_id: str = DRAWN) -> Flight:
        """Run a statement as a client does; the flight of its answer."""
        request = Request(sql=sql, dialect="trino", gateway_id=gateway_id, user="ana", source="bi")
        query = await self.service.submit(request)
        async for _ in query:
            pass
        return query.flight

    async def settled(self) -> list[Flight]:
        """What was recorded, once nothing runs any more."""
        while self.service.running or self.shadows._tasks:
            await asyncio.sleep(0.01)
        return self.notes.flights

    def worth(self, times: int = 1_000) -> None:
        """Reads of the group were worth so many seconds before."""
        self.shadows._accounts["all"].worth = [float(times)] * 2


def run(two: Two, *steps: Any) -> list[Flight]:
    async def go() -> list[Flight]:
        two.worth()
        for step in steps:
            await step()
        flights = await two.settled()
        await two.service.close()
        return list(flights)

    return asyncio.run(go())


def test_a_read_runs_once_more_and_is_nobodys_query() -> None:
    two = Two(**ALWAYS)
    answered, again = run(two, two.ask)
    assert [len(two.first.asked), len(two.second.asked)] == [1, 1]
    assert (answered.request.protocol, answered.request.source) == ("trinoHttp", "bi")
    event, routed = to_event(again), to_routed(again)
    assert event is not None
    assert (event.engine_id, event.source, event.user_name) == ("trino-2", SOURCE, "ana")
    assert f"shadow_of:{DRAWN}" in event.tags
    assert (routed.protocol, routed.status) == (PROTOCOL, "finished")
    assert f'"stage": "shadow", "subject": "{DRAWN}"' in routed.trace
    evidence = run_of(again)
    assert evidence is not None
    assert (evidence.engine_id, evidence.failed) == ("trino-2", False)
    assert two.router.running(EngineId("trino-2")) == 0


@pytest.mark.parametrize("sql", ["INSERT INTO lake.demo.t VALUES (1)", "EXPLAIN SELECT 1"])
def test_only_plain_reads_are_run_again(sql: str) -> None:
    two = Two(**ALWAYS)
    assert len(run(two, lambda: two.ask(sql))) == 1
    assert not two.second.asked


def test_nothing_is_run_again_unless_configured_or_drawn() -> None:
    missed = next(f"m{n}" for n in range(100) if not is_drawn(f"m{n}", 0.5))
    for two, gateway_id in ((Two(), DRAWN), (Two(**ALWAYS), missed)):
        assert len(run(two, lambda two=two, one=gateway_id: two.ask(gateway_id=one))) == 1
        assert not two.second.asked


def test_the_share_of_lots_is_kept() -> None:
    drawn = sum(is_drawn(f"q{number}", 0.05) for number in range(20_000))
    assert drawn / 20_000 == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("price", [None, priced])
def test_the_budget_of_time_and_money_is_kept(price: Any) -> None:
    two = Two(price=price, share=0.5, budget=0.5)
    account = two.shadows._accounts["all"]

    async def ask_often() -> None:
        # Nothing of the time, or of the money, was worth anything so far.
        account.worth = [0.0, 1e9] if price is None else [1e9, 0.0]
        for number in range(40):
            await two.ask(gateway_id=f"q{number}")
            await two.settled()

    run(two, ask_often)
    assert two.shadows.counts["over_budget"] > 0
    short = 0 if price is None else 1
    longest = max((one.ended or 0) - (one.admitted or 0) for one in two.notes.flights)
    most = longest * (1 if price is None else 1_000)
    assert account.spent[short] <= 0.5 * account.worth[short] + most


def test_a_shadow_takes_no_place_that_others_may_need() -> None:
    two = Two(**ALWAYS)

    async def busy() -> None:
        request = Request(sql=READ, dialect="trino", gateway_id="held")
        decision = two.router.decide_shadow(
            request, two.router.decide(request), EngineId("trino-2")
        )
        lease = two.router.try_acquire(request, decision)
        assert lease is not None
        await two.ask()
        lease.release("finished")

    assert len(run(two, busy)) == 1
    assert two.shadows.counts["no_room"] == 1


def test_a_shadow_that_takes_too_long_is_stopped() -> None:
    two = Two(**ALWAYS)

    async def hang() -> None:
        group = two.router.plan.layout.groups["all"]
        group.shadow = group.shadow.model_copy(update={"timeoutSecs": 0})
        two.second.go.clear()
        await two.ask()

    flights = run(two, hang)
    assert two.second.stopped
    assert flights[-1].status is QueryStatus.CANCELLED
    assert run_of(flights[-1]) is None


def test_an_engine_that_is_gone_disturbs_nobody() -> None:
    two = Two(Gone(), **ALWAYS)
    answered, again = run(two, two.ask)
    assert answered.status is QueryStatus.FINISHED
    assert again.status is QueryStatus.FAILED
    assert len(two.first.asked) == 1  # it is not sent on
    evidence = run_of(again)
    assert evidence is not None
    assert evidence.failed


def unpriced(engine_id: str, seconds: Any, sizes: Any) -> Any:
    """A price book that is broken."""
    raise ZeroDivisionError(engine_id)


def test_a_fault_of_a_shadow_never_touches_what_was_answered() -> None:
    two = Two(price=unpriced, **ALWAYS)

    async def ask() -> None:
        await asyncio.wait_for(two.ask(), 5)

    with capture_logs() as logs:
        (answered,) = run(two, ask)
    assert answered.status is QueryStatus.FINISHED
    assert two.shadows.counts["broken"] == 1
    assert [(one["log_level"], one["gateway_id"]) for one in logs] == [("error", DRAWN)]


def test_a_fault_while_a_shadow_runs_is_told_and_its_place_given_back() -> None:
    asked: list[str] = []

    def unpriced_at_last(engine_id: str, seconds: Any, sizes: Any) -> Any:
        asked.append(engine_id)
        return unpriced(engine_id, seconds, sizes) if len(asked) > 2 else seconds

    two = Two(price=unpriced_at_last, **ALWAYS)
    with capture_logs() as logs:
        answered, again = run(two, two.ask)
    assert [answered.status, again.status] == [QueryStatus.FINISHED] * 2
    assert dict(two.shadows.counts) == {"run": 1, "broken": 1}
    assert [one["log_level"] for one in logs] == ["error"]
    assert two.shadows._running["all"] == 0
    assert two.router.running(EngineId("trino-2")) == 0


def test_what_is_known_well_enough_is_not_run_again() -> None:
    two = Two(**ALWAYS)
    decision = two.router.decide(Request(sql=READ, dialect="trino"))
    template = decision.facts.template_id
    two.book.record_all(Run(template, "trino-2", NOW, 1.0) for _ in range(ENOUGH_RUNS))
    assert len(run(two, two.ask)) == 1

"""Places: limits hold, nobody is lost, the most urgent goes first, whatever happens in between."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.engine import ConfiguredState, ObservedState
from lakehouse_core.domain.errors import Transient
from lakehouse_core.domain.query import EngineId
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.lease import Lease, NoCapacityError, RoutingError
from lakehouse_core.routing.request import EngineStanding
from lakehouse_core.routing.router import Router
from tests.unit.routing.conftest import ENGINES, Fleet, Hands, on_loop, plan_of, statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.routing.breaker import Ending
    from lakehouse_core.routing.request import Request

DOWN = EngineStanding(observed=ObservedState.UNHEALTHY, reason="gone")


def group(*members: str, **given: Any) -> dict[str, Any]:
    return {"routingFallback": "g", "clusterGroups": {"g": {"members": members, **given}}}


async def place(router: Router, request: Request | None = None) -> Lease:
    request = request or statement()
    return await router.acquire(request, router.decide(request))


def waits(router: Router, request: Request | None = None) -> asyncio.Task[Lease]:
    return asyncio.get_running_loop().create_task(place(router, request))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


# --- one by one -----------------------------------------------------------------------------------


@on_loop
async def test_a_full_group_lets_wait_and_a_place_that_is_free_goes_to_who_waits(
    route: Callable[..., Router],
) -> None:
    router = route(**group("trino", maxRunningQueries=1))
    first = await place(router)
    second = waits(router)
    await settle()
    assert (second.done(), router.waiting("g")) == (False, 1)
    first.release("finished")
    lease = await second
    assert [step.stage for step in lease.decision.trace][-1] == "queue"
    assert router.waiting() == 0
    lease.release("finished")
    lease.release("finished")  # twice is once
    assert router.running(EngineId("trino")) == 0


@on_loop
async def test_a_full_queue_refuses_at_once(route: Callable[..., Router]) -> None:
    router = route(**group("trino", maxRunningQueries=1, maxQueuedQueries=1))
    first = await place(router)
    second = waits(router)
    await settle()
    with pytest.raises(
        NoCapacityError, match="Group g is full: 1 statements wait already"
    ) as error:
        await place(router)
    assert error.value.decision.denial is not None
    assert error.value.decision.denial.kind == "queue_full"
    first.release("finished")
    (await second).release("finished")


@on_loop
async def test_a_queue_of_none_refuses_as_well(route: Callable[..., Router]) -> None:
    router = route(**group("trino", maxRunningQueries=1, maxQueuedQueries=0))
    await place(router)
    with pytest.raises(NoCapacityError):
        await place(router)


@on_loop
async def test_who_waits_too_long_is_told_so(route: Callable[..., Router]) -> None:
    router = route(**group("trino", maxRunningQueries=1))
    router.plan.layout.groups["g"].wait_seconds = 0.01
    first = await place(router)
    with pytest.raises(NoCapacityError, match=r"No engine of group g was free within 0\.01 s"):
        await place(router)
    assert router.waiting() == 0
    first.release("finished")
    assert (await place(router)).is_held


@on_loop
async def test_who_goes_away_leaves_the_line(route: Callable[..., Router]) -> None:
    router = route(**group("trino", maxRunningQueries=1))
    first = await place(router)
    gone, stays = waits(router), waits(router)
    await settle()
    gone.cancel()
    await settle()
    assert router.waiting() == 1
    first.release("finished")
    assert (await stays).is_held


@on_loop
async def test_a_place_that_came_as_the_client_went_is_given_on(
    route: Callable[..., Router],
) -> None:
    router = route(**group("trino", maxRunningQueries=1))
    first = await place(router)
    gone, stays = waits(router), waits(router)
    await settle()
    first.release("finished")  # `gone` has its place, but has not run yet
    gone.cancel()
    await settle()
    assert gone.cancelled()
    assert (await stays).is_held


@on_loop
async def test_the_most_urgent_goes_first_across_groups(route: Callable[..., Router]) -> None:
    groups = {
        name: {"members": ["trino"], "priority": rank, "maxRunningQueries": 2}
        for name, rank in {"low": 1, "high": 5}.items()
    }
    users = {"type": "userGroup", "userToGroup": {"ana": "low", "ben": "high"}}
    endpoints = {"vip": {"path": "/vip", "group": "low", "priority": 9}}
    router = route(clusterGroups=groups, routers=[users], endpoints=endpoints)
    held = [await place(router) for _ in range(2)]
    came = [statement(), statement(user="ben"), statement(), statement(endpoint="vip")]
    tasks = [waits(router, request) for request in came]
    await settle()
    order = []
    for _ in came:
        held.pop().release("finished")
        await settle()
        (done,) = [index for index, t in enumerate(tasks) if t.done() and index not in order]
        order.append(done)
        held.append(tasks[done].result())
    assert order == [3, 1, 0, 2]


@on_loop
async def test_a_full_group_spills_into_its_fallback(route: Callable[..., Router]) -> None:
    groups = {
        "g": {"members": ["trino"], "maxRunningQueries": 1, "fallbackGroup": "h"},
        "h": {"members": ["trino-2"], "maxRunningQueries": 1},
    }
    router = route(clusterGroups=groups, routingFallback="g")
    first, second = await place(router), await place(router)
    assert (first.decision.group, second.decision.group) == ("g", "h")
    stages = [step.stage for step in second.decision.trace]
    assert stages == ["fallback", "capacity", "spill", "strategy"]
    third = waits(router)
    await settle()
    assert router.waiting("g") == 1
    second.release("finished")  # whichever is free first
    assert (await third).decision.group == "h"


@on_loop
async def test_an_endpoint_has_limits_of_its_own(route: Callable[..., Router]) -> None:
    endpoints = {"bi": {"path": "/bi", "maxRunningQueries": 1, "maxQueuedQueries": 1}}
    router = route(**group("trino", "trino-2"), endpoints=endpoints)
    first = await place(router, statement(endpoint="bi"))
    second = waits(router, statement(endpoint="bi"))
    await settle()
    assert not second.done()
    with pytest.raises(NoCapacityError, match="Endpoint bi is full"):
        await place(router, statement(endpoint="bi"))
    others = [await place(router) for _ in range(3)]
    first.release("finished")
    for lease in (*others, await second):
        lease.release("finished")


@on_loop
async def test_denied_is_no_capacity_only_when_it_may_help_to_come_again(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    router = route(**group("trino", authorization={"allowUsers": ["ben"]}))
    with pytest.raises(RoutingError) as refused:
        await place(router)
    assert not isinstance(refused.value, Transient)
    fleet.standings["trino"] = DOWN
    with pytest.raises(NoCapacityError, match="it is unhealthy: gone"):
        await place(router, statement(user="ben"))


@on_loop
async def test_an_engine_in_maintenance_is_drained_and_its_load_moves(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    router = route(**group("trino", "trino-2", strategy={"type": "failover"}))
    running = await place(router)
    fleet.standings["trino"] = EngineStanding(configured=ConfiguredState.MAINTENANCE)
    router.fleet_changed()
    assert (await place(router)).decision.engine_id == "trino-2"
    assert router.running(EngineId("trino")) == 1
    running.release("finished")
    assert router.running(EngineId("trino")) == 0


@on_loop
async def test_who_waits_is_served_when_an_engine_comes_back(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    fleet.standings["trino-2"] = DOWN
    router = route(**group("trino", "trino-2", maxRunningQueries=1))
    await place(router)
    second = waits(router)
    await settle()
    assert not second.done()
    del fleet.standings["trino-2"]
    router.fleet_changed()
    assert (await second).decision.engine_id == "trino-2"


@on_loop
async def test_one_who_cannot_use_the_free_place_does_not_block_the_others(
    route: Callable[..., Router],
) -> None:
    router = route(**group("duckdb", "spark", maxRunningQueries=1))
    reading, writing = (
        statement(dialect="duckdb"),
        statement("INSERT INTO lake.demo.t SELECT 1", dialect="spark"),
    )
    on_duckdb, on_spark = await place(router, reading), await place(router, writing)
    writer, reader = waits(router, writing), waits(router, reading)
    await settle()
    on_duckdb.release("finished")
    assert (await reader).decision.engine_id == "duckdb"
    assert not writer.done()
    on_spark.release("finished")
    assert (await writer).decision.engine_id == "spark"


def test_load_of_others_counts_for_the_least_loaded(fleet: Fleet) -> None:
    settings = group("trino", "trino-2", strategy={"type": "leastLoaded"})
    router = Router(plan_of(**settings), Ports(fleet=fleet))
    fleet.standings["trino"] = EngineStanding(running=7)
    router.fleet_changed()
    assert router.decide(statement()).engine_id == "trino-2"


# --- engines that die -----------------------------------------------------------------------------


@on_loop
async def test_a_reading_statement_goes_to_another_engine_and_a_writing_one_does_not(
    route: Callable[..., Router],
) -> None:
    router = route(**group("trino", "trino-2", strategy={"type": "failover"}))
    first = await place(router)
    first.release("unavailable", "connection reset")
    again = router.decide_again(statement(), first.decision, "connection reset")
    assert again.engine_id == "trino-2"
    assert "retry trino: failed (connection reset)" in [str(step) for step in again.trace]
    last = router.decide_again(statement(), again, "reset too")
    assert last.denial is not None
    assert last.denial.kind == "unavailable"
    write = statement("INSERT INTO lake.demo.t SELECT 1")
    denied = router.decide_again(write, router.decide(write), "connection reset").denial
    assert denied is not None
    assert denied.message.endswith("It may have changed something, so it is not sent again")


@on_loop
async def test_a_failed_engine_is_not_given_the_statement_again_after_a_wait(
    route: Callable[..., Router],
) -> None:
    router = route(**group("trino", "trino-2", maxRunningQueries=1))
    busy = [await place(router) for _ in range(2)]
    failed = router.decide(statement())
    again = router.decide_again(statement(), failed, "reset")
    task = asyncio.get_running_loop().create_task(router.acquire(statement(), again))
    await settle()
    for lease in busy:
        if lease.decision.engine_id == failed.engine_id:
            lease.release("finished")
    await settle()
    assert not task.done()
    for lease in busy:
        lease.release("finished")
    assert (await task).decision.engine_id != failed.engine_id


@on_loop
async def test_a_member_that_fails_is_left_alone_and_tried_with_one_statement(
    route: Callable[..., Router], hands: Hands
) -> None:
    breaker = {"minRequests": 2, "initialBackoffSecs": 5}
    router = route(
        **group("trino", "trino-2", strategy={"type": "failover"}, circuitBreaker=breaker)
    )
    for _ in range(2):
        (await place(router)).release("unavailable", "connection refused")
    decision = router.decide(statement())
    assert decision.engine_id == "trino-2"
    assert "its circuit is open for 5 s more: connection refused" in str(decision.trace[1])
    hands.now = hands.now.replace(minute=hands.now.minute + 1)
    probe = await place(router)
    assert probe.decision.engine_id == "trino"
    assert (await place(router)).decision.engine_id == "trino-2"  # one probe, no herd
    probe.release("finished")
    assert (await place(router)).decision.engine_id == "trino"


# --- everything at once ---------------------------------------------------------------------------


class Story:
    """A random hour of a gateway; everything it does is checked as it happens."""

    def __init__(self, seed: int, *, queue: int | None) -> None:
        self.chance = random.Random(seed)  # noqa: S311 a story, not a secret
        self.fleet = Fleet()
        self.clock = Hands()
        groups = {
            "g": {
                "members": ["trino", "trino-2"],
                "maxRunningQueries": 2,
                "maxQueuedQueries": queue,
                "fallbackGroup": "h",
                "circuitBreaker": {"minRequests": 3, "initialBackoffSecs": 1},
            },
            "h": {"members": ["trino-2", "other"], "maxRunningQueries": 1, "priority": 3},
        }
        users = {"type": "userGroup", "userToGroup": {"ben": "h"}}
        endpoints = {"bi": {"path": "/bi", "group": "g", "maxRunningQueries": 3, "priority": 7}}
        self.settings: dict[str, Any] = {
            "clusterGroups": groups,
            "routers": [users],
            "routingFallback": "g",
            "endpoints": endpoints,
        }
        self.router = Router(plan_of(**self.settings), Ports(fleet=self.fleet), self.clock)
        self.held: list[Lease] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.came = self.served = self.refused = self.left = 0

    async def client(self, request: Request) -> None:
        try:
            lease = await place(self.router, request)
        except RoutingError:
            self.refused += 1
            return
        except asyncio.CancelledError:
            self.left += 1
            raise
        self.served += 1
        self.held.append(lease)
        self.check()

    def check(self) -> None:
        """The limits, counted by hand."""
        running = Counter(lease.place.engine_id for lease in self.held)
        members = Counter((lease.place.group, lease.place.member) for lease in self.held)
        for name, engine in ENGINES.items():
            # A place may be somebody's who has not heard of it yet.
            held = running[EngineId(name)]
            assert held <= self.router.running(EngineId(name)) <= engine.max_running
        for (name, _), count in members.items():
            assert count <= self.settings["clusterGroups"][name]["maxRunningQueries"]
        assert sum(lease.place.endpoint == "bi" for lease in self.held) <= 3

    def act(self) -> None:
        chance = self.chance
        kind = chance.choices(
            ("come", "end", "go", "switch", "reload", "time"), (10, 8, 2, 2, 1, 2)
        )[0]
        if kind == "come":
            self.came += 1
            user, way = chance.choice(("ana", "ben")), chance.choice((None, None, "bi"))
            request = statement(user=user, endpoint=way)
            self.tasks.add(asyncio.get_running_loop().create_task(self.client(request)))
        elif kind == "end" and self.held:
            endings: tuple[Ending, ...] = ("finished", "failed", "cancelled", "unavailable")
            lease = self.held.pop(chance.randrange(len(self.held)))
            lease.release(chance.choices(endings, (8, 2, 1, 2))[0], "x")
        elif kind == "go" and self.tasks:
            chance.choice(sorted(self.tasks, key=id)).cancel()
        elif kind == "switch":
            engine = chance.choice(("trino", "trino-2", "other"))
            self.fleet.standings[engine] = chance.choice((EngineStanding(), DOWN))
            self.router.fleet_changed()
        elif kind == "reload":
            assert self.router.reload(lambda: plan_of(**self.settings)).is_done
        else:
            self.clock.now = self.clock.now.replace(
                microsecond=0, second=(self.clock.now.second + 1) % 60
            )

    async def end(self) -> None:
        """All engines are well and all statements end: nobody may be left waiting."""
        self.fleet.standings.clear()
        self.clock.now = self.clock.now.replace(hour=(self.clock.now.hour + 1) % 24, day=28)
        for _ in range(400):
            self.router.fleet_changed()
            await settle()
            while self.held:
                self.held.pop().release("finished")
            if all(task.done() for task in self.tasks):
                break


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), queue=st.sampled_from((None, 0, 4)))
def test_no_request_is_lost_and_no_limit_exceeded_whatever_happens(
    seed: int, queue: int | None
) -> None:
    async def tell() -> None:
        story = Story(seed, queue=queue)
        for _ in range(120):
            story.act()
            for _ in range(story.chance.randrange(3)):
                await asyncio.sleep(0)
            story.check()
            assert story.router.waiting("g") <= (10_000 if queue is None else queue)
        await story.end()
        assert all(task.done() for task in story.tasks)
        assert story.router.waiting() == 0
        assert all(story.router.running(EngineId(e)) == 0 for e in ENGINES)
        never = sum(task.cancelled() for task in story.tasks) - story.left
        assert story.came == story.served + story.refused + story.left + never

    asyncio.run(tell())


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), count=st.integers(2, 40))
def test_whoever_waits_is_served_by_priority_then_by_arrival(seed: int, count: int) -> None:
    async def tell() -> None:
        chance = random.Random(seed)  # noqa: S311 as above
        ranks = [chance.randrange(4) for _ in range(count)]
        endpoints = {
            f"e{rank}": {"path": f"/e{rank}", "group": "g", "priority": rank} for rank in range(4)
        }
        settings = group("trino", maxRunningQueries=1)
        router = Router(plan_of(**settings, endpoints=endpoints), Ports(fleet=Fleet()))
        held = await place(router)
        served: list[int] = []

        async def client(number: int) -> None:
            lease = await place(router, statement(endpoint=f"e{ranks[number]}"))
            served.append(number)
            await asyncio.sleep(0)
            lease.release("finished")

        async with asyncio.TaskGroup() as clients:
            for number in range(count):
                clients.create_task(client(number))
                await asyncio.sleep(0)
            held.release("finished")
        assert served == sorted(range(count), key=lambda number: (-ranks[number], number))

    asyncio.run(tell())


@on_loop
async def test_a_thousand_clients_of_a_dead_group_are_refused_with_the_reason(
    route: Callable[..., Router], fleet: Fleet
) -> None:
    fleet.standings |= {"trino": DOWN, "trino-2": DOWN}
    router = route(**group("trino", "trino-2"))
    answers = await asyncio.gather(*(place(router) for _ in range(1_000)), return_exceptions=True)
    (said,) = {str(answer) for answer in answers}
    assert said == (
        "No engine of group g can take it now: trino: it is unhealthy: gone; "
        "trino-2: it is unhealthy: gone"
    )
    assert router.waiting() == 0

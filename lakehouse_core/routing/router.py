"""The router: decides, hands out places, lets those wait who get none, and takes new rules.

lease = await router.acquire(request, router.decide(request))
try:
    …run lease.decision.sql on lease.decision.engine_id…
finally:
    lease.release("finished")

Everything but deciding runs on one event loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.routing.capacity import Place
from lakehouse_core.routing.decide import Decider, denied
from lakehouse_core.routing.lease import Lease, NoCapacityError, RoutingError
from lakehouse_core.routing.queue import WaitingLine
from lakehouse_core.routing.request import Denial, Everything, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.routing.breaker import Ending
    from lakehouse_core.routing.decide import Plan, Ports
    from lakehouse_core.routing.groups import Group
    from lakehouse_core.routing.queue import Ticket, Way
    from lakehouse_core.routing.request import Decision, DenialKind, Request, Sight

MOST_WAITING = 10_000  # over all groups, whatever they allow: each holds a connection and its text
_TRANSIENT: frozenset[DenialKind] = frozenset({"unavailable", "queue_full", "queue_timeout"})


@dataclass(frozen=True, slots=True)
class Reload:
    """How a reload went; when it failed the rules of before are in force."""

    is_done: bool
    message: str


class Router:
    """One gateway's router."""

    def __init__(self, plan: Plan, ports: Ports, clock: Clock = utc_now) -> None:
        self._line = WaitingLine()
        self._decider = Decider(plan, ports, self._line, clock)
        self._capacity = self._decider.capacity

    @property
    def plan(self) -> Plan:
        """The rules and groups in force."""
        return self._decider.plan

    @property
    def decider(self) -> Decider:
        """What decides, for those who explain."""
        return self._decider

    def waiting(self, group: str | None = None) -> int:
        """How many statements wait: for a group, or at all."""
        return len(self._line) if group is None else self._line.in_group(group)

    def running(self, engine_id: EngineId) -> int:
        """How many statements of ours an engine runs; 0 when it is drained."""
        return self._capacity.running(engine_id)

    def sight(self, request: Request) -> Sight:
        """What who asks may know of."""
        guard = self._decider.ports.guard
        return Everything() if guard is None else guard.sight(request)

    def decide(self, request: Request) -> Decision:
        """Where a statement goes and what is sent there, or why it is not run; takes no place."""
        return self._decider.decide(request)

    def foresee(self, request: Request) -> Decision:
        """What `decide` would say; no rule counts it."""
        return self._decider.decide(request, is_counted=False)

    def decide_again(self, request: Request, failed: Decision, reason: str) -> Decision:
        """Where a statement goes whose engine failed it before the first row.

        Only a statement that changes nothing is sent again; the others are denied. Its trace goes
        on behind that of the first attempt.
        """
        engine_id = failed.engine_id
        lost = Step("retry", engine_id or "engine", "failed", reason)
        if engine_id is None or not failed.facts.is_read_only:
            said = f"Engine {engine_id} failed: {reason}. It may have changed something, so it is "
            denial = Denial("unavailable", said + "not sent again")
            return denied(request, failed.facts, denial, (*failed.trace, lost))
        gone = failed.without | {engine_id}
        return self._decider.decide(
            request, without=gone, so_far=(*failed.trace, lost), is_counted=False
        )

    def decide_shadow(self, request: Request, answered: Decision, engine_id: EngineId) -> Decision:
        """A read that was answered, once more on this engine: the same rules, texts and guards."""
        group = self.plan.layout.groups.get(answered.group or "")
        members = () if group is None else group.members
        others = frozenset(one.engine_id for one in members if one.engine_id != engine_id)
        step = Step(
            "shadow",
            answered.gateway_id,
            "again",
            f"answered by {answered.engine_id}; the rows of this run are thrown away",
        )
        found = self._decider.decide(
            request,
            without=others,
            why_without=f"a shadow run for {engine_id}",
            so_far=(step,),
            is_counted=False,
        )
        return replace(found, is_shadow=True)

    def has_spare_room(self, group: Group, engine_id: EngineId) -> bool:
        """Whether nobody waits, and an engine is less than half full with one statement more."""
        if len(self._line):
            return False
        limits = [group.limits[one.name] for one in group.members if one.engine_id == engine_id]
        running = self._capacity.load(engine_id) + 1
        return bool(limits) and all(limit is None or 2 * running <= limit for limit in limits)

    def _anew(self, request: Request, without: frozenset[EngineId]) -> Decision:
        return self._decider.decide(request, without=without, is_counted=False)

    # --- places -------------------------------------------------------------------------------

    async def acquire(self, request: Request, decision: Decision) -> Lease:
        """A place on the chosen engine, or on whichever is free first.

        Its `decision` is the one to act on: a statement that waited may have another engine.

        Raises:
            NoCapacityError: the queue is full, the wait was too long, no engine can take it.
            RoutingError: the decision denies it.
        """
        lease = self.try_acquire(request, decision)
        if lease is not None:
            return lease
        if not decision.capacity.would_queue:  # somebody was quicker
            decision = self._anew(request, decision.without)
            lease = self.try_acquire(request, decision)
        return lease if lease is not None else await self._wait(request, decision)

    def try_acquire(self, request: Request, decision: Decision) -> Lease | None:
        """A place if there is one now; None when the statement would have to wait.

        Raises:
            RoutingError: as `acquire`.
        """
        if decision.denial is not None:
            raise _error(decision)
        if decision.capacity.would_queue:
            return None
        if len(self._line):
            self._serve()  # those who wait go first
        return self._take(request, decision)

    def _take(self, request: Request, decision: Decision) -> Lease | None:
        layout = self.plan.layout
        group = layout.groups.get(decision.group or "")
        endpoint = layout.endpoints.get(request.endpoint or "")
        members = group.members if group is not None else ()
        member = next((m for m in members if m.name == decision.member), None)
        if group is None or member is None or member.engine_id != decision.engine_id:
            return None  # the rules were changed since
        breaker = self._decider.breaker(member, group)
        if breaker.obstacle() is not None or not self._capacity.lets_in(endpoint):
            return None
        if not self._capacity.has_room(group, member):
            return None
        place = Place(decision.engine_id, group.name, member.name, request.endpoint)
        self._capacity.take(place)
        breaker.when_started()
        if not decision.is_shadow:  # nobody's turn
            group.strategy.took(member.name, decision.candidates)
        return Lease(decision, place, self._give_back)

    def _give_back(self, place: Place, ending: Ending, reason: str) -> None:
        self._capacity.give_back(place)
        breaker = self._decider.breaker_of(place.engine_id)
        if breaker is not None:
            breaker.when_ended(ending, reason or None)
        if len(self._line):
            self._serve()

    # --- waiting ------------------------------------------------------------------------------

    async def _wait(self, request: Request, decision: Decision) -> Lease:
        group = self.plan.layout.groups[decision.group or ""]
        self._check_queue(request, decision, group)
        loop = asyncio.get_running_loop()
        ticket = self._line.join(request, decision, loop.time())
        timer = loop.call_later(group.wait_seconds, self._expire, ticket, decision, group)
        try:
            return await ticket.future
        except asyncio.CancelledError:
            # The place may have come in the very moment in which the client went.
            if ticket.future.done() and not ticket.future.cancelled():
                ticket.future.result().release("cancelled")
            raise
        finally:
            timer.cancel()
            self._line.leave(ticket)

    def _check_queue(self, request: Request, decision: Decision, group: Group) -> None:
        endpoint = self.plan.layout.endpoints.get(request.endpoint or "")
        limits = [(f"group {group.name}", self._line.in_group(group.name), group.queue_limit)]
        if endpoint is not None:
            waiting = self._line.in_endpoint(endpoint.name)
            limits.append(
                (f"endpoint {endpoint.name}", waiting, endpoint.settings.maxQueuedQueries)
            )
        limits.append(("the gateway", len(self._line), MOST_WAITING))
        for what, waiting, limit in limits:
            if limit is not None and waiting >= limit:
                said = f"{what} is full: {waiting} statements wait already, limit {limit}"
                raise _error(_refused(request, decision, "queue_full", f"{said}; try again later"))

    def _expire(self, ticket: Ticket, decision: Decision, group: Group) -> None:
        if ticket.future.done():
            return
        self._line.leave(ticket)
        said = f"No engine of group {group.name} was free within {group.wait_seconds:g} s"
        refused = _refused(ticket.request, decision, "queue_timeout", f"{said}; try again later")
        ticket.future.set_exception(_error(refused))

    def _serve(self) -> None:
        """Give free places to those who wait, the most urgent first."""
        blocked: set[Way] = set()
        for ticket in self._line:
            way = ticket.way
            if way in blocked or ticket.future.done():
                continue
            if not self._has_room(way):
                blocked.add(way)
                if len(blocked) == self._line.ways:
                    return
                continue
            if self._admit(ticket):
                blocked.clear()

    def _has_room(self, way: Way) -> bool:
        """Whether any member that a statement of this way might get has room."""
        layout = self.plan.layout
        endpoint = layout.endpoints.get(way[1] or "")
        first = layout.groups.get(way[0])
        if first is None:
            return True  # the rules were changed: it is decided anew
        return self._capacity.lets_in(endpoint) and any(
            self._capacity.has_room(group, member)
            for group in self._decider.chain(self.plan, first, endpoint)
            for member in group.members
        )

    def _admit(self, ticket: Ticket) -> bool:
        decision = self._anew(ticket.request, ticket.without)
        if decision.denial is not None:
            if decision.denial.kind in _TRANSIENT:
                return False  # it waits on: an engine may come back
            self._line.leave(ticket)
            ticket.future.set_exception(_error(decision))
            return False
        lease = None if decision.capacity.would_queue else self._take(ticket.request, decision)
        if lease is None:
            return False
        waited = asyncio.get_running_loop().time() - ticket.since
        step = Step("queue", ticket.group, "waited", f"{waited * 1000:.0f} ms")
        lease.decision = replace(decision, trace=(*decision.trace, step))
        self._line.leave(ticket)
        ticket.future.set_result(lease)
        return True

    # --- news ---------------------------------------------------------------------------------

    def reload(self, load: Callable[[], Plan]) -> Reload:
        """Take new rules; when they are wrong, those of before stay in force.

        Statements that run keep their places; those that wait are decided by the new rules.
        """
        try:
            plan = load()
        except ConfigError as error:
            return Reload(is_done=False, message=str(error))
        self._decider.plan = plan
        self._after_news()
        return Reload(is_done=True, message=f"{len(plan.rules)} rules from {plan.source}")

    def fleet_changed(self) -> None:
        """Engines came, went, or were seen to run other statements than ours."""
        members = {m.engine_id for g in self.plan.layout.groups.values() for m in g.members}
        for engine_id in members:
            seen = self._decider.ports.fleet.standing(engine_id).running or 0
            self._capacity.foreign[engine_id] = max(0, seen - self.running(engine_id))
        self._after_news()

    def _after_news(self) -> None:
        if len(self._line):
            self._serve()


def _error(decision: Decision) -> RoutingError:
    kind = decision.denial.kind if decision.denial else "unavailable"
    return NoCapacityError(decision) if kind in _TRANSIENT else RoutingError(decision)


def _refused(request: Request, decision: Decision, kind: DenialKind, said: str) -> Decision:
    message = said[:1].upper() + said[1:]
    refusal = denied(request, decision.facts, Denial(kind, message), decision.trace)
    return replace(refusal, group=decision.group, capacity=decision.capacity)

"""Statements that wait for a place: the most urgent first, of equals the one that came first."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.routing.lease import Lease
    from lakehouse_core.routing.request import Decision, Request


Way = tuple[str, str | None]  # the group that is waited for, the endpoint it came through


@dataclass(slots=True, order=True)
class Ticket:
    """One statement that waits; its future gets the lease, or the error that ends the wait."""

    rank: tuple[int, int]
    request: Request = field(compare=False)
    group: str = field(compare=False)
    future: asyncio.Future[Lease] = field(compare=False)
    since: float = field(compare=False)
    without: frozenset[EngineId] = field(compare=False)

    @property
    def way(self) -> Way:
        """What decides, with the statement itself, which places it may get."""
        return self.group, self.request.endpoint


class WaitingLine:
    """All that wait, over all groups: members are shared, so the most urgent of all goes first."""

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []
        self._number = 0
        self._by_group: Counter[str] = Counter()
        self._by_endpoint: Counter[str | None] = Counter()
        self._by_way: Counter[Way] = Counter()

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        """Those that wait, in their order; the line may change meanwhile."""
        return iter(self._tickets[:])

    def in_group(self, group: str) -> int:
        """How many wait for a group."""
        return self._by_group[group]

    def in_endpoint(self, endpoint: str) -> int:
        """How many wait that came through an endpoint."""
        return self._by_endpoint[endpoint]

    @property
    def ways(self) -> int:
        """How many different ways somebody waits on."""
        return len(self._by_way)

    def join(self, request: Request, decision: Decision, now: float) -> Ticket:
        """Queue up for the decision's group; larger priorities stand further in front."""
        self._number += 1
        future: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        group = decision.group or ""
        rank = (-decision.priority, self._number)
        ticket = Ticket(rank, request, group, future, now, decision.without)
        insort(self._tickets, ticket)
        self._by_way[ticket.way] += 1
        self._by_group[group] += 1
        self._by_endpoint[request.endpoint] += 1
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Out of the line, served or not; leaving twice does nothing."""
        at = self._place_of(ticket)
        if at is None:
            return
        del self._tickets[at]
        self._by_group[ticket.group] -= 1
        self._by_endpoint[ticket.request.endpoint] -= 1
        self._by_way[ticket.way] -= 1
        if not self._by_way[ticket.way]:
            del self._by_way[ticket.way]

    def _place_of(self, ticket: Ticket) -> int | None:
        at = bisect_left(self._tickets, ticket)
        is_there = at < len(self._tickets) and self._tickets[at] is ticket
        return at if is_there else None

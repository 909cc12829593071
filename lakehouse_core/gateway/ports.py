"""What the query service needs of whoever routes, and of whoever keeps records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.routing.lease import Lease
    from lakehouse_core.routing.request import Decision, Request, Sight


class Routing(Protocol):
    """Decides where statements run and how many at a time; `routing.router.Router` is one."""

    def sight(self, request: Request) -> Sight:
        """What who asks may know of: questions about names are answered by no engine."""
        ...

    def decide(self, request: Request) -> Decision:
        """Where a statement goes and what is sent there, or why it is not run."""
        ...

    def foresee(self, request: Request) -> Decision:
        """What `decide` would say; it counts for nothing."""
        ...

    def decide_again(self, request: Request, failed: Decision, reason: str) -> Decision:
        """Where a statement goes whose engine failed it before the first row."""
        ...

    def try_acquire(self, request: Request, decision: Decision) -> Lease | None:
        """A place if there is one now; None when the statement would have to wait.

        Raises:
            RoutingError: it is denied.
        """
        ...

    async def acquire(self, request: Request, decision: Decision) -> Lease:
        """Wait for a place.

        Raises:
            RoutingError: there will be none: denied, the queue is full, the wait took too long.
        """
        ...


class Recorder(Protocol):
    """Keeps what became of statements; never blocks and never raises."""

    def note(self, flight: Flight) -> None:
        """A statement is over."""
        ...

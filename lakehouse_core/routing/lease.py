"""A place on an engine, held while a statement runs, and the error of who gets none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import LakehouseError, Transient

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.routing.breaker import Ending
    from lakehouse_core.routing.capacity import Place
    from lakehouse_core.routing.request import Decision


class RoutingError(LakehouseError):
    """Raised when a statement gets no engine; the decision has the trace and the reason.

    Attributes:
        decision: with its `denial`.
    """

    def __init__(self, decision: Decision) -> None:
        message = decision.denial.message if decision.denial else "not routed"
        super().__init__(message)
        self.decision = decision


class NoCapacityError(Transient, RoutingError):
    """Raised when the same statement may get an engine later."""


class Lease:
    """A place; give it back exactly when the statement has ended. Giving back twice is once."""

    __slots__ = ("_give_back", "decision", "place")

    def __init__(
        self, decision: Decision, place: Place, give_back: Callable[[Place, Ending, str], None]
    ) -> None:
        self.decision = decision
        self.place = place
        self._give_back: Callable[[Place, Ending, str], None] | None = give_back

    @property
    def is_held(self) -> bool:
        """Whether it has not been given back yet."""
        return self._give_back is not None

    def release(self, ending: Ending, reason: str = "") -> None:
        """Give the place back and say how the statement ended; the next in line goes on."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back(self.place, ending, reason)

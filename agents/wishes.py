"""Wishes of pages and commands: taken up in turn, each answered once, each with an audit row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.errors import LakehouseError, MaintenanceError, NotFoundError
from lakehouse_core.maintenance.audit import Note
from lakehouse_core.maintenance.records import requests_of
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.maintenance import DecisionRequest
    from lakehouse_core.store.owner import OwnerStore

_log = structlog.get_logger(__name__)


class Desk:
    """Takes up wishes of one sort, and writes down what came of them."""

    def __init__(self, store: OwnerStore, clock: Clock, waiting_sql: str) -> None:
        self._store = store
        self._clock = clock
        self._waiting_sql = waiting_sql
        self.ledger = Ledger(store, clock)

    def take_up(self, answer: Callable[[DecisionRequest], None]) -> int:
        """Answer all wishes that wait; returns how many there were.

        Args:
            answer: grants a wish or notes its refusal; what it raises as a `MaintenanceError`
                or a `NotFoundError` is a refusal too.
        """
        try:
            waiting = requests_of(self._store.read(self._waiting_sql))
            for wish in waiting:
                self._one(wish, answer)
        except LakehouseError as error:  # they wait still, and are taken up again
            _log.error("wishes.not_answered", detail=str(error))
            return 0
        return len(waiting)

    def answered(
        self, wish: DecisionRequest, answer: str, *, is_granted: bool
    ) -> dict[str, pa.Table]:
        """The wish with its answer, to be written with what came of it: it has effect once."""
        done = replace(
            wish,
            state="done" if is_granted else "refused",
            answered_at=self._clock(),
            answer=answer,
        )
        return {"decision_request": to_arrow("decision_request", [done])}

    def note(self, wish: DecisionRequest, answer: str, *, is_granted: bool) -> None:
        """Answer a wish that changes no action by itself."""
        note = Note(
            actor=wish.actor.strip() or "nobody",
            verb=f"{wish.verb} {'asked' if is_granted else 'refused'}",
            action_id=wish.action_id,
            detail={**why(wish), "answer": answer},
        )
        self.ledger.note(note, self.answered(wish, answer, is_granted=is_granted))

    def _one(self, wish: DecisionRequest, answer: Callable[[DecisionRequest], None]) -> None:
        try:
            answer(wish)
        except (MaintenanceError, NotFoundError) as error:
            self.note(wish, str(error), is_granted=False)
        except LakehouseError:
            raise
        except Exception as error:  # noqa: BLE001 the edge, see below
            # The edge: what one visitor sends must not stop the process that serves all.
            _log.exception("wish.bug", request=wish.request_id)
            self.note(wish, f"internal error: {type(error).__name__}", is_granted=False)


def why(wish: DecisionRequest) -> dict[str, object]:
    """What the audit chain keeps of a wish."""
    return {
        "request_id": wish.request_id,
        "asked_at": wish.asked_at,
        "reason": wish.reason,
        "seen_plan_hash": wish.plan_hash,
        "confirmation": wish.confirmation,
        "until": wish.until,
    }

"""Takes up what people propose by hand: checked, planned, written down, answered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import structlog

from lakehouse_core.domain.errors import LakehouseError, MaintenanceError
from lakehouse_core.maintenance.audit import Note
from lakehouse_core.maintenance.decisions import LONGEST_WAIT, is_reserved
from lakehouse_core.maintenance.records import requests_of
from lakehouse_core.maintenance.states import Ledger, Step
from lakehouse_core.recommend.by_hand import Idea, propose_by_hand
from lakehouse_core.recommend.reading import read_fleet
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.maintenance import Action, DecisionRequest
    from lakehouse_core.store.owner import OwnerStore

WAITING_SQL = """
SELECT * FROM decision_request WHERE state = 'waiting' AND verb = 'propose'
ORDER BY asked_at, request_id LIMIT 10
"""
OPEN_SQL = """
SELECT action_id FROM action WHERE dedupe_key = $key::VARCHAR
  AND state IN ('proposed', 'snoozed', 'approved', 'scheduled', 'running', 'verifying') LIMIT 1
"""
_log = structlog.get_logger(__name__)


class Proposals:
    """Answers the wishes whose verb is `propose`."""

    def __init__(self, store: OwnerStore, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._ledger = Ledger(store, clock)

    def take_up(self) -> int:
        """Answer all that wait; returns how many there were."""
        try:
            waiting = requests_of(self._store.read(WAITING_SQL))
            for wish in waiting:
                self._answer(wish)
        except LakehouseError as error:  # they wait still, and are taken up again
            _log.error("proposals.not_answered", detail=str(error))
            return 0
        return len(waiting)

    def _answer(self, wish: DecisionRequest) -> None:
        try:
            action = self._proposed(wish)
        except MaintenanceError as error:
            self._refuse(wish, str(error))
            return
        except LakehouseError:
            raise
        except Exception as error:  # noqa: BLE001 the edge, see below
            # The edge: what one visitor sends must not stop the process that serves all.
            _log.exception("proposal.bug", request=wish.request_id)
            self._refuse(wish, f"internal error: {type(error).__name__}")
            return
        step = Step(before=None, after=action, by=wish.actor, why={"request_id": wish.request_id})
        self._ledger.take([step], self._answered(wish, "done", f"Proposed as {action.action_id}"))

    def _refuse(self, wish: DecisionRequest, answer: str) -> None:
        note = Note(
            actor=wish.actor.strip() or "nobody",
            verb="propose refused",
            action_id=wish.action_id,
            detail={"request_id": wish.request_id, "answer": answer},
        )
        self._ledger.note(note, self._answered(wish, "refused", answer))

    def _proposed(self, wish: DecisionRequest) -> Action:
        now = self._clock()
        if is_reserved(wish.actor):
            raise MaintenanceError(f"The name {wish.actor!r} cannot sign: use your own")
        if now - wish.asked_at > LONGEST_WAIT:
            raise MaintenanceError(f"It was asked {wish.asked_at.isoformat()}, too long ago")
        idea = Idea.from_json(wish.proposal or "")
        found = self._store.read(OPEN_SQL, key=idea.key).column("action_id").to_pylist()
        if found:
            raise MaintenanceError(f"The same is open already: see {found[0]}")
        fleet = read_fleet(self._store, self._config, now, only=idea.table_id)
        if not fleet.subjects:
            table = fleet.tables.get(idea.table_id)
            why = (table.error if table else None) or "it is not known, or was not collected yet"
            raise MaintenanceError(f"Nothing can be planned for {idea.table_id}: {why}")
        action = propose_by_hand(fleet.subjects[0], idea, by=wish.actor.strip(), reason=wish.reason)
        return replace(action, action_id=wish.action_id)

    def _answered(
        self, wish: DecisionRequest, state: Literal["done", "refused"], answer: str
    ) -> dict[str, pa.Table]:
        answered = replace(wish, state=state, answered_at=self._clock(), answer=answer)
        return {"decision_request": to_arrow("decision_request", [answered])}

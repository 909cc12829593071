"""Takes up what people propose by hand: checked, planned, written down, answered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agents.wishes import Desk
from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.maintenance.decisions import LONGEST_WAIT, is_reserved
from lakehouse_core.maintenance.states import Step
from lakehouse_core.recommend.by_hand import Idea, propose_by_hand
from lakehouse_core.recommend.reading import read_fleet

if TYPE_CHECKING:
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


class Proposals:
    """Answers the wishes whose verb is `propose`."""

    def __init__(self, store: OwnerStore, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._desk = Desk(store, clock, WAITING_SQL)

    def take_up(self) -> int:
        """Answer all that wait; returns how many there were."""
        return self._desk.take_up(self._answer)

    def _answer(self, wish: DecisionRequest) -> None:
        action = self._proposed(wish)
        step = Step(before=None, after=action, by=wish.actor, why={"request_id": wish.request_id})
        told = f"Proposed as {action.action_id}"
        self._desk.ledger.take([step], self._desk.answered(wish, told, is_granted=True))

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

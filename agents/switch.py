"""Puts engines into the state somebody wants: each wish once, with an audit row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from agents.probe import ENGINES_SQL, EngineRow
from lakehouse_core.domain.engine import ConfiguredState, EngineRequest
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.maintenance.audit import Note
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

WAITING_SQL = """
SELECT * FROM engine_request WHERE state = 'waiting' ORDER BY asked_at, request_id LIMIT 100
"""
_log = structlog.get_logger(__name__)


class Switches:
    """Takes up what pages and commands wish."""

    def __init__(self, store: OwnerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._ledger = Ledger(store, clock)

    def take_up(self) -> int:
        """Answer all wishes that wait; returns how many there were."""
        try:
            waiting = records(EngineRequest, self._store.read(WAITING_SQL))
            for wish in waiting:
                self._answer(wish)
        except LakehouseError as error:  # they wait still, and are taken up again
            _log.error("engine_requests.not_answered", detail=str(error))
            return 0
        return len(waiting)

    def _answer(self, wish: EngineRequest) -> None:
        found = {row.engine_id: row for row in records(EngineRow, self._store.read(ENGINES_SQL))}
        engine = found.get(wish.engine_id)
        wanted = ConfiguredState(wish.configured)
        refusal = _refusal(wish, engine, wanted)
        answer = refusal or f"{wish.engine_id} is {wanted} now"
        answered = replace(
            wish,
            state="refused" if refusal else "done",
            answered_at=self._clock(),
            answer=answer,
        )
        beside = {"engine_request": to_arrow("engine_request", [answered])}
        if engine is not None and not refusal:
            switched = replace(
                engine,
                configured=wanted.value,
                changed_by=wish.actor.strip(),
                reason=wish.reason,
                changed_at=self._clock(),
            )
            beside["engine"] = to_arrow("engine", [switched])
        note = Note(
            actor=wish.actor.strip(),
            verb=f"engine {wanted}" + (" refused" if refusal else ""),
            action_id=f"engine:{wish.engine_id}",
            detail={
                "request_id": wish.request_id,
                "reason": wish.reason,
                "from": engine.configured if engine else None,
                "answer": answer,
            },
        )
        # The wish is answered with the switch: it has effect once, whatever dies in between.
        self._ledger.note(note, beside)
        _log.info("engine.switched", engine=wish.engine_id, to=wanted, answer=answer)


def _refusal(wish: EngineRequest, engine: EngineRow | None, wanted: ConfiguredState) -> str | None:
    if engine is None:
        return f"engine {wish.engine_id} is not known"
    if wanted is not ConfiguredState.ACTIVE and not (wish.reason or "").strip():
        return f"say why {wish.engine_id} is to be {wanted}: a reason is missing"
    return None

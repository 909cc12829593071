"""Answers wishes about actions: each within a second or two, each with an audit row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from agents.wishes import Desk, why
from lakehouse_core.domain.table import LakeTable
from lakehouse_core.maintenance.decisions import PROPOSER, Circumstances, decide
from lakehouse_core.views.current import current_metrics
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from lakehouse_core.config.models import MaintenanceConfig
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.maintenance import Action, DecisionRequest
    from lakehouse_core.maintenance.decisions import Verdict
    from lakehouse_core.store.owner import OwnerStore

WAITING_SQL = """
SELECT * FROM decision_request WHERE state = 'waiting' AND verb <> 'propose'
  AND NOT starts_with(action_id, 'route-')
ORDER BY asked_at, request_id LIMIT 100
"""
TABLE_SQL = "SELECT * FROM lake_table WHERE table_id = $table::VARCHAR"
REWRITTEN_SQL = """
SELECT max(committed_at) AS rewritten_at FROM snapshot_commit
WHERE table_id = $table::VARCHAR AND operation = 'replace' AND committed_at > $since::TIMESTAMPTZ
"""
_log = structlog.get_logger(__name__)


class Decisions:
    """Takes up what pages and commands wish."""

    def __init__(self, store: OwnerStore, settings: MaintenanceConfig, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._desk = Desk(store, clock, WAITING_SQL)

    def take_up(self) -> int:
        """Answer all wishes that wait; returns how many there were."""
        return self._desk.take_up(self._answer)

    def _answer(self, wish: DecisionRequest) -> None:
        action = self._desk.ledger.get(wish.action_id)
        verdict = decide(action, wish, self._around(action))
        self._carry_out(action, wish, verdict)
        _log.info(
            "decision",
            action=wish.action_id,
            verb=wish.verb,
            actor=wish.actor,
            is_granted=verdict.is_granted,
            answer=verdict.answer,
        )

    def _carry_out(self, action: Action, wish: DecisionRequest, verdict: Verdict) -> None:
        if verdict.to is not None and verdict.is_granted:
            self._desk.ledger.move(
                action,
                verdict.to,
                by=wish.actor.strip(),
                why=why(wish),
                beside=self._desk.answered(wish, verdict.answer, is_granted=True),
                **verdict.changes,
            )
            return
        if verdict.to is not None:
            self._desk.ledger.move(
                action,
                verdict.to,
                by=PROPOSER,
                why={"reason": verdict.changes.get("explanation")},
                **verdict.changes,
            )
        self._desk.note(wish, verdict.answer, is_granted=verdict.is_granted)

    def _around(self, action: Action) -> Circumstances:
        table = records(LakeTable, self._store.read(TABLE_SQL, table=action.table_id))
        rewritten = self._store.read(
            REWRITTEN_SQL, table=action.table_id, since=action.evidence_at
        ).column("rewritten_at")
        return Circumstances(
            now=self._clock(),
            settings=self._settings,
            table=table[0] if table else None,
            metrics=current_metrics(self._store, only=action.table_id).get(action.table_id),
            rewritten_at=rewritten[0].as_py(),
        )

"""Answers wishes about actions: each within a second or two, each with an audit row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.errors import LakehouseError, NotFoundError
from lakehouse_core.domain.table import LakeTable, TableMetrics
from lakehouse_core.maintenance.audit import Note
from lakehouse_core.maintenance.decisions import PROPOSER, Circumstances, Verdict, decide
from lakehouse_core.maintenance.records import requests_of
from lakehouse_core.maintenance.states import Ledger, StaleActionError
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.config.models import MaintenanceConfig
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.maintenance import Action, DecisionRequest
    from lakehouse_core.store.owner import OwnerStore

WAITING_SQL = """
SELECT * FROM decision_request WHERE state = 'waiting' AND verb <> 'propose'
ORDER BY asked_at, request_id LIMIT 100
"""
TABLE_SQL = "SELECT * FROM lake_table WHERE table_id = $table::VARCHAR"
# The metrics of the snapshot the table is at; a table that was rolled back is at an older one.
METRICS_SQL = """
SELECT m.* EXCLUDE (largest_partitions) FROM table_metrics m JOIN lake_table t USING (table_id)
WHERE t.table_id = $table::VARCHAR
ORDER BY m.snapshot_id = coalesce(t.current_snapshot_id, 0) DESC, m.collected_at DESC LIMIT 1
"""
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
        self._ledger = Ledger(store, clock)

    def take_up(self) -> int:
        """Answer all wishes that wait; returns how many there were."""
        try:
            waiting = requests_of(self._store.read(WAITING_SQL))
            for wish in waiting:
                self._answer(wish)
        except LakehouseError as error:  # they wait still, and are taken up again
            _log.error("decisions.not_answered", detail=str(error))
            return 0
        return len(waiting)

    def _answer(self, wish: DecisionRequest) -> None:
        try:
            action = self._ledger.get(wish.action_id)
            verdict = decide(action, wish, self._around(action))
            self._carry_out(action, wish, verdict)
        except (NotFoundError, StaleActionError) as error:
            verdict = Verdict(to=None, is_granted=False, answer=str(error))
            self._note(wish, verdict)
        except LakehouseError:
            raise
        except Exception as error:  # noqa: BLE001 the edge, see below
            # The edge: what one visitor sends must not stop the process that serves all.
            _log.exception("decision.bug", request=wish.request_id)
            said = f"internal error: {type(error).__name__}"
            verdict = Verdict(to=None, is_granted=False, answer=said)
            self._note(wish, verdict)
        _log.info(
            "decision",
            action=wish.action_id,
            verb=wish.verb,
            actor=wish.actor,
            is_granted=verdict.is_granted,
            answer=verdict.answer,
        )

    def _carry_out(self, action: Action, wish: DecisionRequest, verdict: Verdict) -> None:
        # The answer is written with the decision: a wish has effect once, whatever dies in between.
        if verdict.to is not None and verdict.is_granted:
            self._ledger.move(
                action,
                verdict.to,
                by=wish.actor.strip(),
                why=_why(wish),
                beside=self._answered(wish, verdict),
                **verdict.changes,
            )
            return
        if verdict.to is not None:
            self._ledger.move(
                action,
                verdict.to,
                by=PROPOSER,
                why={"reason": verdict.changes.get("explanation")},
                **verdict.changes,
            )
        self._note(wish, verdict)

    def _note(self, wish: DecisionRequest, verdict: Verdict) -> None:
        note = Note(
            actor=wish.actor.strip() or "nobody",
            verb=f"{wish.verb} {'asked' if verdict.is_granted else 'refused'}",
            action_id=wish.action_id,
            detail={**_why(wish), "answer": verdict.answer},
        )
        self._ledger.note(note, self._answered(wish, verdict))

    def _answered(self, wish: DecisionRequest, verdict: Verdict) -> dict[str, pa.Table]:
        answered = replace(
            wish,
            state="done" if verdict.is_granted else "refused",
            answered_at=self._clock(),
            answer=verdict.answer,
        )
        return {"decision_request": to_arrow("decision_request", [answered])}

    def _around(self, action: Action) -> Circumstances:
        table = records(LakeTable, self._store.read(TABLE_SQL, table=action.table_id))
        metrics = records(TableMetrics, self._store.read(METRICS_SQL, table=action.table_id))
        rewritten = self._store.read(
            REWRITTEN_SQL, table=action.table_id, since=action.evidence_at
        ).column("rewritten_at")
        return Circumstances(
            now=self._clock(),
            settings=self._settings,
            table=table[0] if table else None,
            metrics=metrics[0] if metrics else None,
            rewritten_at=rewritten[0].as_py(),
        )


def _why(wish: DecisionRequest) -> dict[str, object]:
    return {
        "request_id": wish.request_id,
        "asked_at": wish.asked_at,
        "reason": wish.reason,
        "seen_plan_hash": wish.plan_hash,
        "confirmation": wish.confirmation,
        "until": wish.until,
    }

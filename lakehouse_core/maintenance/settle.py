"""What becomes of an action after its job: proven, retried, refused, failed; one outcome each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from lakehouse_core.domain.errors import (
    CatalogError,
    CatalogUnavailableError,
    StoreError,
    TableGoneError,
)
from lakehouse_core.domain.maintenance import State
from lakehouse_core.maintenance.alarm import alarm_of
from lakehouse_core.maintenance.coordinate import pause_after
from lakehouse_core.maintenance.layout_proof import prove_layout
from lakehouse_core.maintenance.take_back import take_back
from lakehouse_core.maintenance.verify import (
    WITHOUT_SNAPSHOT,
    operation_snapshots,
    parts_left,
    verify,
)
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import timedelta

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.maintenance.job import Ready, RunFolder
    from lakehouse_core.maintenance.look import Lookout
    from lakehouse_core.maintenance.states import Ledger
    from lakehouse_core.maintenance.verify import Proof
    from lakehouse_core.runtime.jobs import JobEnd
    from lakehouse_core.store.owner import OwnerStore

ACTOR = "lakehelm"
_log = structlog.get_logger(__name__)


class Settlement:
    """Brings actions that ran to their end."""

    def __init__(
        self, config: Config, store: OwnerStore, ledger: Ledger, lookout: Lookout, clock: Clock
    ) -> None:
        self._config = config
        self._store = store
        self._ledger = ledger
        self._lookout = lookout
        self._clock = clock

    def settle(
        self, folder: RunFolder, batch: Sequence[Ready], end: JobEnd, asked: Collection[str]
    ) -> None:
        """Settle all actions of a job that has ended.

        Args:
            folder: where its report is.
            batch: what it was to do.
            end: how it ended.
            asked: actions that somebody wanted to end.
        """
        report = folder.report()
        silence = end.stopped or f"its job ended with exit code {end.exit_code}"
        error = folder.error()
        for one in batch:
            action = one.action
            told = report.get(action.action_id)
            reason = f"{silence}: {error}" if error else silence
            self.conclude(action, told, folder, silence=reason, is_asked=action.action_id in asked)

    def conclude(
        self,
        action: Action,
        told: Mapping[str, Any] | None,
        folder: RunFolder,
        *,
        silence: str,
        is_asked: bool = False,
    ) -> Action:
        """Settle one action that is RUNNING.

        Args:
            action: as it is now.
            told: what the job says of it; None: nothing.
            folder: of its run.
            silence: why the job says nothing.
            is_asked: somebody wanted it to end.
        """
        outcome = str(told["outcome"]) if told else "unknown"
        error = str((told or {}).get("error") or "")
        _log.info("maintenance.outcome", action=action.action_id, outcome=outcome, detail=error)
        ends: dict[str, Callable[[], Action]] = {
            "done": lambda: self.prove(self._verifying(action, told), told, folder),
            "nothing": lambda: self._nothing(action, told, folder, error),
            "refused": lambda: self._end(action, State.REFUSED, error or "The job refused it"),
            "conflict": lambda: self._retry(action, error, pause_after(action.attempts)),
            "failed": lambda: self._failed(action, told or {}, error),
            "stopped": lambda: self._stopped(action, silence, is_asked=is_asked),
        }
        why = error or silence
        unknown = lambda: self.classify(action, folder, why, is_asked=is_asked)  # noqa: E731
        return ends.get(outcome, unknown)()

    def classify(
        self, action: Action, folder: RunFolder, silence: str, *, is_asked: bool = False
    ) -> Action:
        """Find out from the table what became of an action of which the job says nothing.

        Nobody works on it any more. While the table cannot be asked, the action stays as it is.
        """
        try:
            metadata = self._lookout.metadata(action.table_id)
        except TableGoneError as error:
            return self._end(action, State.FAILED, f"The table is gone: {error}")
        except CatalogError as error:
            _log.warning("maintenance.unknown", action=action.action_id, detail=str(error))
            return action
        is_there = bool(operation_snapshots(metadata, action.operation_id))
        left = parts_left(action, metadata) if is_there and not is_asked else 0
        if is_there and not left:
            return self.prove(self._verifying(action, None), None, folder)
        if left:
            silence = f"{left} of {len(action.plan.stages)} parts are left: {silence}"
        ours = [
            one.snapshot_id
            for one in metadata.snapshots
            if not left and one.summary.get("lakehelm.operation-id") == action.operation_id
        ]
        if ours:
            text = f"Its commit {ours[0]} was taken back, and the job died before it said why"
            return self._alert(self._end(action, State.FAILED, text))
        if is_asked:
            return self._end(action, State.CANCELLED, "Cancelled before it committed anything")
        return self._retry(action, f"It was not done: {silence}", None)

    def prove(self, action: Action, told: Mapping[str, Any] | None, folder: RunFolder) -> Action:
        """Verify an action that is VERIFYING; it stays so while the catalog is silent."""
        try:
            before = folder.before(action.action_id)
            proof = verify(action, told, before, self._lookout, self._config)
        except CatalogUnavailableError as error:
            _log.warning("maintenance.unverified", action=action.action_id, detail=str(error))
            return action
        planned = prove_layout(action, self._store, self._config, self._clock())
        facts = {
            "realised": (*proof.realised, *planned),
            "verification": proof.checks,
            "result_snapshot_id": proof.result_snapshot_id,
        }
        if proof.is_good:
            ended = self._end(action, State.VERIFIED, _summary(proof), **facts)
            self._keep(proof)
            return ended
        text = (
            f"The check found what must not be: {proof.problem}. {take_back(action, self._lookout)}"
        )
        return self._alert(self._end(action, State.FAILED, text, **facts))

    def _verifying(self, action: Action, told: Mapping[str, Any] | None) -> Action:
        result = (told or {}).get("result_snapshot_id")
        return self._ledger.move(
            action,
            State.VERIFYING,
            by=ACTOR,
            why={"operation_id": action.operation_id, "is_told": told is not None},
            result_snapshot_id=result,
            explanation="It is done; now it is checked",
        )

    def _nothing(
        self, action: Action, told: Mapping[str, Any] | None, folder: RunFolder, error: str
    ) -> Action:
        if action.attempts > 1 and action.kind in WITHOUT_SNAPSHOT:
            # An attempt that was killed may have done it; it leaves no snapshot to tell by.
            return self.prove(self._verifying(action, told), told, folder)
        return self._end(action, State.REFUSED, error or "There was nothing to change")

    def _failed(self, action: Action, told: Mapping[str, Any], error: str) -> Action:
        checks = tuple(dict(one) for one in told.get("checks", ()))
        is_grave = bool(told.get("rolled_back")) or any(not one.get("ok", True) for one in checks)
        text = error or "The job failed without a reason"
        if told.get("rolled_back"):
            text = f"The rows were not the same afterwards; it was taken back. {text}"
        ended = self._end(
            action,
            State.FAILED,
            text,
            verification=checks,
            result_snapshot_id=told.get("result_snapshot_id"),
        )
        return self._alert(ended) if is_grave else ended

    def _stopped(self, action: Action, silence: str, *, is_asked: bool) -> Action:
        if is_asked:
            return self._end(action, State.CANCELLED, "Cancelled; the table is as it was")
        # Another action of the same job was cancelled: that is no attempt of this one.
        return self._ledger.move(
            action,
            State.SCHEDULED,
            by=ACTOR,
            why={"reason": silence},
            attempts=max(0, action.attempts - 1),
            explanation="Its job was stopped for another action; it runs again",
        )

    def _retry(self, action: Action, reason: str, pause: timedelta | None) -> Action:
        limit = self._config.maintenance.max_attempts
        if action.attempts >= limit:
            text = f"Given up after {action.attempts} attempts: {reason}"
            return self._end(action, State.FAILED, text)
        return self._ledger.move(
            action,
            State.SCHEDULED,
            by=ACTOR,
            why={"reason": reason, "attempts": action.attempts},
            not_before=None if pause is None else self._clock() + pause,
            explanation=f"Attempt {action.attempts} of {limit}: {reason}",
        )

    def _end(self, action: Action, state: State, text: str, **changes: Any) -> Action:
        return self._ledger.move(
            action,
            state,
            by=ACTOR,
            why={"reason": text, "operation_id": action.operation_id},
            ended_at=self._clock(),
            explanation=text,
            **changes,
        )

    def _alert(self, action: Action) -> Action:
        _log.error(
            "maintenance.alert",
            action=action.action_id,
            table=action.table_id,
            detail=action.explanation,
            hint="Nothing more happens to this table by itself until somebody approves again",
        )
        told = alarm_of(action, self._config.maintenance.notify, self._clock())
        try:
            self._store.upsert("alert", to_arrow("alert", [told]))
        except StoreError as error:  # how the action ended is written down already
            _log.error("maintenance.alert_not_kept", action=action.action_id, detail=str(error))
        return action

    def _keep(self, proof: Proof) -> None:
        """What was measured is news for the pages; the next collection says the same."""
        if proof.metrics is not None:
            self._store.upsert("table_metrics", to_arrow("table_metrics", [proof.metrics]))
        if proof.health is not None:
            self._store.upsert("health", to_arrow("health", [proof.health]))


def _summary(proof: Proof) -> str:
    told = [
        f"{change.name.replace('_', ' ')} {change.before:,.0f} → {change.after:,.0f}"
        for change in proof.realised
        if change.before is not None
        and change.after is not None
        and round(change.before) != round(change.after)
        and change.unit != "bytes"
    ]
    return "; ".join(told) or "Done; the figures are as before"

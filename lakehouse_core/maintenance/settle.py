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
from lakehouse_core.maintenance.standing import Owed, Standing, standing_of
from lakehouse_core.maintenance.take_back import take_back
from lakehouse_core.maintenance.verify import WITHOUT_SNAPSHOT, verify
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
COMPARED = "rows compared with those before"
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
        self._owed: list[Owed] = []

    def take_owed(self) -> list[Owed]:
        """Commits of which it turned out since the last call that nobody has compared them."""
        owed, self._owed = self._owed, []
        return owed

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
        silence = end.stopped or f"its job ended with exit code {end.exit_code}"
        error = folder.error()
        for one in batch:
            action = one.action
            told = folder.told(action.action_id)
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
        if outcome == "done":
            return self.prove(self._verifying(action, told), told, folder)
        if outcome == "nothing":
            return self._nothing(action, told, folder, error)
        standing = self._standing(action, told, folder)
        if standing is None:
            return action
        if standing.uncompared:
            return self._owe(action, standing, folder, error or silence)
        if standing.is_done and not _is_grave(told):
            return self.prove(self._verifying(action, told), told, folder)
        ends: dict[str, Callable[[], Action]] = {
            "refused": lambda: self._end(
                action, State.REFUSED, _with(error or "The job refused it", standing)
            ),
            "conflict": lambda: self._retry(action, error, standing, pause_after(action.attempts)),
            "failed": lambda: self._failed(action, told or {}, error, standing),
            "stopped": lambda: self._stopped(action, silence, standing, is_asked=is_asked),
        }
        why = error or silence
        unknown = lambda: self._classify(action, standing, why, is_asked=is_asked)  # noqa: E731
        return ends.get(outcome, unknown)()

    def _standing(
        self, action: Action, told: Mapping[str, Any] | None, folder: RunFolder
    ) -> Standing | None:
        """What of an action is in its table; None: nobody can say, it is asked about again."""
        try:
            metadata = self._lookout.metadata(action.table_id)
        except TableGoneError as error:
            return Standing(gone=str(error))
        except CatalogError as error:
            _log.warning("maintenance.unknown", action=action.action_id, detail=str(error))
            return None
        before, is_remote = folder.before(action.action_id), bool(self._config.spark.remote)
        return standing_of(action, told, metadata, before, is_remote=is_remote)

    def _classify(
        self, action: Action, standing: Standing, silence: str, *, is_asked: bool
    ) -> Action:
        """What becomes of an action of which the job does not say how it ended.

        Nobody works on it any more.
        """
        if standing.gone:
            return self._end(action, State.FAILED, f"The table is gone: {standing.gone}")
        if standing.taken_back is not None:
            text = f"Its commit {standing.taken_back} was taken back, and nobody said why"
            return self._alert(self._end(action, State.FAILED, text))
        if is_asked:
            return self._cancelled(action, standing)
        if standing.left:
            silence = f"{standing.left} of {standing.parts} parts are left: {silence}"
        return self._retry(action, f"It was not done: {silence}", standing, None)

    def _owe(self, action: Action, standing: Standing, folder: RunFolder, why: str) -> Action:
        """Have its commits compared by a job of their own; when that cannot be done, say so."""
        tried = sum(one["name"] == COMPARED for one in action.verification)
        if tried >= self._config.maintenance.max_attempts:
            text = (
                f"Its commit {standing.commits[0]} stands and was NOT proven: in {tried} attempts "
                f"its rows could not be compared with those before. {why}"
            )
            ended = self._end(
                action,
                State.FAILED,
                text,
                verification=action.verification,
                result_snapshot_id=standing.commits[0],
            )
            return self._alert(ended)
        if not tried or self._clock() >= action.updated_at + pause_after(tried):
            self._owed.append(Owed(action=action, folder=folder, commits=standing.commits))
        return action

    def begin_proof(self, action: Action) -> Action:
        """Write down that the commits of an action are compared now; each attempt is a check."""
        tried = sum(one["name"] == COMPARED for one in action.verification) + 1
        found = f"no answer in attempt {tried}"
        check = {"name": COMPARED, "expected": "the same", "found": found, "ok": False}
        return self._ledger.change(
            action,
            by=ACTOR,
            verb="compares",
            why={"operation_id": action.operation_id, "attempt": tried},
            verification=(*action.verification, check),
            explanation="It has committed and nobody compared the rows yet; that is done now",
        )

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

    def _failed(
        self, action: Action, told: Mapping[str, Any], error: str, standing: Standing
    ) -> Action:
        checks = tuple(dict(one) for one in told.get("checks", ()))
        text = error or "The job failed without a reason"
        if not _is_grave(told):
            text = _with(text, standing)
        if told.get("rolled_back"):
            text = f"The rows were not the same afterwards; it was taken back. {text}"
        ended = self._end(
            action,
            State.FAILED,
            text,
            verification=checks,
            result_snapshot_id=told.get("result_snapshot_id"),
        )
        return self._alert(ended) if _is_grave(told) else ended

    def _cancelled(self, action: Action, standing: Standing) -> Action:
        return self._end(action, State.CANCELLED, _with("Cancelled", standing))

    def _stopped(
        self, action: Action, silence: str, standing: Standing, *, is_asked: bool
    ) -> Action:
        if is_asked:
            return self._cancelled(action, standing)
        # Another action of the same job was cancelled: that is no attempt of this one.
        return self._ledger.move(
            action,
            State.SCHEDULED,
            by=ACTOR,
            why={"reason": silence},
            attempts=max(0, action.attempts - 1),
            verification=(),
            explanation="Its job was stopped for another action; it runs again",
        )

    def _retry(
        self, action: Action, reason: str, standing: Standing, pause: timedelta | None
    ) -> Action:
        limit = self._config.maintenance.max_attempts
        if action.attempts >= limit:
            text = f"Given up after {action.attempts} attempts: {reason}"
            return self._end(action, State.FAILED, _with(text, standing))
        return self._ledger.move(
            action,
            State.SCHEDULED,
            by=ACTOR,
            why={"reason": reason, "attempts": action.attempts},
            not_before=None if pause is None else self._clock() + pause,
            verification=(),
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


def _is_grave(told: Mapping[str, Any] | None) -> bool:
    """Whether rows were compared and are not the same."""
    said = told or {}
    is_other = any(not one.get("ok", True) for one in said.get("checks") or ())
    return is_other or bool(said.get("rolled_back"))


def _with(text: str, standing: Standing) -> str:
    """Why it ended, and what of it stands."""
    return f"{text}; {standing.in_words()}"


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

"""The ledger: the one place where an action changes, and every change is a row of the audit chain.

    ledger = Ledger(store, clock)
    action = ledger.move(ledger.get(action_id), State.APPROVED, by="ana", why={"reason": "…"})

An action is changed at the revision that was read; a change to an older one is refused. Action and
audit row are written in one transaction. The agents process is the only writer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import structlog

from lakehouse_core.domain.errors import MaintenanceError, NotFoundError, Terminal
from lakehouse_core.domain.maintenance import NEXT, Action, State
from lakehouse_core.maintenance import audit
from lakehouse_core.maintenance.audit import Head, Note
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

ACTION_SQL = "SELECT * FROM action WHERE action_id = $action::VARCHAR"
REVISIONS_SQL = """
SELECT action_id, revision, state FROM action WHERE list_contains($ids::VARCHAR[], action_id)
"""
HEAD_SQL = 'SELECT seq, "hash" FROM audit ORDER BY seq DESC LIMIT 1'
# What one step writes at most at once, so that other writers get their turn.
_MOST_STEPS = 2_000
_log = structlog.get_logger(__name__)


class StaleActionError(Terminal, MaintenanceError):
    """Raised when an action was changed since it was read."""


class TransitionError(Terminal, MaintenanceError):
    """Raised when an action cannot go from its state to the one asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of one action.

    Attributes:
        before: the action as it was read; None: it is new.
        after: as it shall be; its revision and time are the ledger's.
        by: who wants it.
        verb: in a word, for the audit chain; the state's name unless given.
        why: kept in the audit chain beside state and revision.
    """

    before: Action | None
    after: Action
    by: str
    verb: str | None = None
    why: Mapping[str, Any] = field(default_factory=dict)


class Ledger:
    """Actions and their audit chain, in the store of the agents process."""

    def __init__(self, store: OwnerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def get(self, action_id: str) -> Action:
        """An action as it is now.

        Raises:
            NotFoundError: there is no such action.
        """
        found = actions_of(self._store.read(ACTION_SQL, action=action_id))
        if not found:
            raise NotFoundError(
                f"Action {action_id!r} is not known. See `lakehelm recommend list`."
            )
        return found[0]

    def propose(self, action: Action) -> Action:
        """Write down a new action."""
        return self.take([Step(before=None, after=action, by=action.proposed_by)])[0]

    def move(
        self,
        action: Action,
        to: State,
        *,
        by: str,
        why: Mapping[str, Any] | None = None,
        beside: Mapping[str, pa.Table] | None = None,
        **changes: Any,
    ) -> Action:
        """Bring an action into another state; other fields may change with it.

        Args:
            action: as it was read.
            to: the state.
            by: who wants it.
            why: kept in the audit chain.
            beside: rows of other tables that are written in the same transaction.
            changes: other fields of the action.

        Raises:
            StaleActionError: it was changed since it was read.
            TransitionError: its state does not lead there.
        """
        after = replace(action, state=to, **changes)
        return self.take([Step(before=action, after=after, by=by, why=why or {})], beside)[0]

    def change(
        self,
        action: Action,
        *,
        by: str,
        verb: str,
        why: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Action:
        """Change fields of an action that stays in its state.

        Raises:
            StaleActionError: it was changed since it was read.
        """
        after = replace(action, **changes)
        return self.take([Step(before=action, after=after, by=by, verb=verb, why=why or {})])[0]

    def take(
        self, steps: Sequence[Step], beside: Mapping[str, pa.Table] | None = None
    ) -> list[Action]:
        """Take several steps, each of another action; some thousands at most are one transaction.

        Raises:
            StaleActionError: an action was changed since it was read.
            TransitionError: a state does not lead to the one asked for.
        """
        for step in steps:
            _check_transition(step)
        done: list[Action] = []
        for start in range(0, len(steps), _MOST_STEPS):
            done += self._take(steps[start : start + _MOST_STEPS], beside or {})
        return done

    def note(self, note: Note, beside: Mapping[str, pa.Table] | None = None) -> None:
        """Write down what was asked and not done: no action changes."""
        with self._store.alone():
            self._write((), [note], beside or {})

    def _take(self, steps: Sequence[Step], beside: Mapping[str, pa.Table]) -> list[Action]:
        with self._store.alone():
            self._check_revisions(steps)
            now = self._clock()
            done = [
                replace(
                    step.after,
                    revision=(step.before.revision if step.before else 0) + 1,
                    updated_at=now,
                )
                for step in steps
            ]
            notes = [_note(step, at) for step, at in zip(steps, done, strict=True)]
            self._write(done, notes, beside)
        return done

    def _check_revisions(self, steps: Sequence[Step]) -> None:
        ids = [step.after.action_id for step in steps]
        if len(set(ids)) != len(ids):
            raise StaleActionError("One action was to be changed twice at once")
        rows = self._store.read(REVISIONS_SQL, ids=ids).to_pylist()
        stored = {row["action_id"]: (row["revision"], row["state"]) for row in rows}
        for step in steps:
            expected = step.before and (step.before.revision, step.before.state.value)
            found = stored.get(step.after.action_id)
            if found != expected:
                raise StaleActionError(
                    f"Action {step.after.action_id} was changed meanwhile: it is "
                    f"{found[1] if found else 'gone'} now. Look at it again"
                )

    def _write(
        self, actions: Sequence[Action], notes: Sequence[Note], beside: Mapping[str, pa.Table]
    ) -> None:
        entries = audit.chain(self._head(), notes, self._clock())
        rows = {"audit": to_arrow("audit", entries), **beside}
        if actions:
            rows["action"] = to_arrow("action", actions)
        self._store.upsert_together(rows)
        last = entries[-1]
        try:
            audit.write_head(self._store.path, Head(seq=last.seq, hash=last.hash))
        except OSError as error:
            # The rows are written; a head that lags behind is caught up by the next step.
            _log.error("audit.head_not_kept", seq=last.seq, detail=str(error))

    def _head(self) -> Head:
        rows = self._store.read(HEAD_SQL).to_pylist()
        stored = Head(**rows[0]) if rows else audit.EMPTY
        kept = audit.read_head(self._store.path)
        # Rows that were cut off leave a gap: the chain goes on behind what was written once.
        return kept if kept is not None and kept.seq > stored.seq else stored


def _check_transition(step: Step) -> None:
    before, after = step.before, step.after
    if before is None:
        if after.state is not State.PROPOSED:
            raise TransitionError(f"A new action is proposed, not {after.state}")
        return
    if (before.action_id, before.dedupe_key) != (after.action_id, after.dedupe_key):
        raise TransitionError(f"Action {before.action_id} cannot become another one")
    if after.state is not before.state and after.state not in NEXT[before.state]:
        raise TransitionError(
            f"Action {before.action_id} is {before.state}: it cannot become {after.state}"
        )


def _note(step: Step, after: Action) -> Note:
    before = step.before
    detail = {
        **step.why,
        "from": before.state.value if before else None,
        "to": after.state.value,
        "revision": after.revision,
        "plan_hash": after.plan_hash,
        "table_id": after.table_id,
        "kind": after.kind.value,
    }
    verb = step.verb or after.state.value
    return Note(actor=step.by, verb=verb, action_id=after.action_id, detail=detail)

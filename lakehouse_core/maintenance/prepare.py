"""An approved action right before it runs: a fresh look, the safety rules, what follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from lakehouse_core.domain.errors import (
    CatalogError,
    MetadataUnreadableError,
    StoreError,
    TableGoneError,
)
from lakehouse_core.domain.maintenance import DESTRUCTIVE, State
from lakehouse_core.maintenance.activity import committed_at, read_activity
from lakehouse_core.maintenance.before import Before
from lakehouse_core.maintenance.coordinate import guards_for
from lakehouse_core.maintenance.decisions import StartCircumstances, why_void_now
from lakehouse_core.maintenance.preflight import check, check_turn, unknown_rules
from lakehouse_core.maintenance.replan import reads_of
from lakehouse_core.maintenance.rules import TURN_RULES, Facts, Finding, TurnFacts
from lakehouse_core.maintenance.settle import ACTOR
from lakehouse_core.maintenance.states import StaleActionError
from lakehouse_core.maintenance.verify import ACTION, figures_of

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.maintenance.activity import Activity
    from lakehouse_core.maintenance.coordinate import Guards
    from lakehouse_core.maintenance.lease import TableLeases
    from lakehouse_core.maintenance.look import Look, Lookout
    from lakehouse_core.maintenance.queue import Queue
    from lakehouse_core.maintenance.states import Ledger
    from lakehouse_core.store.owner import OwnerStore

# A waiting action is asked about that often, unless its rule names a time: the books cost nothing,
# a look at a table some metadata, and what deletes files reads every manifest of every snapshot.
ASK_EVERY = timedelta(seconds=15)
LOOK_EVERY = timedelta(minutes=1)
LOOK_DEEP_EVERY = timedelta(minutes=10)
# An error nobody foresaw is not gone in a moment.
AFTER_ERROR = timedelta(minutes=5)
_STATES = {"void": State.EXPIRED, "refuse": State.REFUSED, "wait": State.SCHEDULED}
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """An action that every rule lets pass."""

    action: Action
    guards: Guards
    before: Before


class Preparation:
    """Asks the rules, and moves actions that must not run."""

    def __init__(
        self,
        config: Config,
        store: OwnerStore,
        ledger: Ledger,
        leases: TableLeases,
        lookout: Lookout,
        queue: Queue,
    ) -> None:
        self._config = config
        self._store = store
        self._ledger = ledger
        self._leases = leases
        self._lookout = lookout
        self._queue = queue
        self._look_again: dict[str, datetime] = {}
        self.holder = ""
        self.moved = 0

    def begin(self, holder: str) -> None:
        """A new round, in whose name tables are held."""
        self.holder = holder
        self.moved = 0

    def clear(self, action: Action, *, spent: int) -> Cleared | None:
        """The action with its guards; None: it must not run now, and its state says why.

        Args:
            action: approved or scheduled.
            spent: bytes of the actions that were cleared before it in this round.

        Raises:
            StoreError: the store cannot be read or written: then nothing is known of any action.
        """
        now = self._now()
        if self._look_again.get(action.action_id, now) > now:
            return None
        finding: Finding | None
        try:
            finding, cleared = self._judge(action, spent)
        except TableGoneError as error:
            finding = Finding(rule="same-table", verdict="void", message=f"{error}")
        except MetadataUnreadableError as error:
            finding = Finding(rule="readable", verdict="refuse", message=f"{error}")
        except CatalogError as error:
            finding = Finding(rule="readable", verdict="wait", message=f"{error}")
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 told to the user, logged, and the next goes on
            # One action that cannot be judged must not hold up those behind it.
            _log.exception("maintenance.unjudged", action=action.action_id)
            finding = _unexpected(error, now)
        if finding is None:
            self._look_again.pop(action.action_id, None)
            return cleared
        self._apply(action, finding, now)
        return None

    def _judge(self, action: Action, spent: int) -> tuple[Finding | None, Cleared | None]:
        now, settings = self._now(), self._config.maintenance
        unknown = unknown_rules(action)
        if unknown:
            text = f"Nobody here knows the safety rule {', '.join(sorted(unknown))}: plan it anew"
            return Finding(rule="plan", verdict="refuse", message=text), None
        if now >= action.expires_at:
            text = f"It was to run before {action.expires_at:%Y-%m-%d %H:%M} and could not"
            return Finding(rule="expiry", verdict="void", message=text), None
        books = self._queue.books(action, now, self._leases.held(), self.holder)
        books = replace(books, bytes_today=books.bytes_today + spent)
        turn = TurnFacts(action=action, settings=settings, books=books, now=now)
        worst = check_turn(turn).worst
        if worst is not None:
            return worst, None
        is_deleting = action.kind in DESTRUCTIVE
        look = self._lookout.look(action.table_id, is_whole=is_deleting)
        activity = read_activity(self._store, look, action.action_id)
        guards = guards_for(action, look, self._lookout, activity, settings)
        void = why_void_now(action, self._around(look, activity))
        if void is not None:
            return Finding(rule="approval", verdict="void", message=void), None
        facts = Facts(
            action=action,
            look=look,
            activity=activity,
            guards=guards,
            settings=settings,
            books=books,
            folders=self._lookout.folders() if is_deleting else {},
        )
        worst = check(facts).worst
        if worst is not None:
            return worst, None
        return None, Cleared(action=action, guards=guards, before=self._before(action, look))

    def _around(self, look: Look, activity: Activity) -> StartCircumstances:
        ours = {one.result_snapshot_id for one in activity.earlier}
        rewritten = [
            committed_at(one)
            for one in look.metadata.history
            if one.summary.get("operation") == "replace"
            and ACTION not in one.summary
            and one.snapshot_id not in ours
        ]
        return StartCircumstances(
            now=look.at,
            settings=self._config.maintenance,
            metrics=look.metrics,
            rewritten_at=max(rewritten, default=None),
        )

    def _before(self, action: Action, look: Look) -> Before:
        reads = reads_of(self._store, action)
        return Before(
            figures=figures_of(look, self._config) | self._lookout.planned(look, reads),
            refs=dict(look.metadata.refs),
            reads=reads,
        )

    def _apply(self, action: Action, finding: Finding, now: datetime) -> None:
        state = _STATES[finding.verdict]
        _log.info(
            "maintenance.rule", action=action.action_id, rule=finding.rule, detail=finding.message
        )
        again = finding.not_before or now + _pause(action, finding)
        self._look_again[action.action_id] = again
        is_same = action.state is state and action.explanation == finding.message
        if state is State.SCHEDULED and is_same:
            return
        why = {"rule": finding.rule, "message": finding.message}
        changes: dict[str, Any] = {"explanation": finding.message}
        if state is State.SCHEDULED:
            changes["not_before"] = again
        else:
            changes["ended_at"] = now
            self._look_again.pop(action.action_id, None)
        try:
            if state is action.state:
                self._ledger.change(action, by=ACTOR, verb="waits", why=why, **changes)
            else:
                self._ledger.move(action, state, by=ACTOR, why=why, **changes)
        except StaleActionError as error:  # somebody decided meanwhile
            _log.info("maintenance.changed", action=action.action_id, detail=str(error))
            return
        self.moved += 1

    def _now(self) -> datetime:
        return self._lookout.now()


def _pause(action: Action, finding: Finding) -> timedelta:
    if finding.rule in {rule.id for rule in TURN_RULES}:
        return ASK_EVERY
    return LOOK_DEEP_EVERY if action.kind in DESTRUCTIVE else LOOK_EVERY


def _unexpected(error: Exception, now: datetime) -> Finding:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Finding(
        rule="judged",
        verdict="wait",
        message=f"It could not be judged whether it may run ({what}); it is tried again. The log "
        "of the agents has the details",
        not_before=now + AFTER_ERROR,
    )

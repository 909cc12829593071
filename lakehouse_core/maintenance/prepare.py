"""An approved action right before it runs: a fresh look, the safety rules, what follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from lakehouse_core.domain.errors import (
    CatalogError,
    MetadataUnreadableError,
    TableGoneError,
)
from lakehouse_core.domain.maintenance import DESTRUCTIVE, State
from lakehouse_core.maintenance.activity import read_activity
from lakehouse_core.maintenance.coordinate import guards_for
from lakehouse_core.maintenance.preflight import check, unknown_rules
from lakehouse_core.maintenance.rules import Facts, Finding
from lakehouse_core.maintenance.settle import ACTOR
from lakehouse_core.maintenance.states import StaleActionError
from lakehouse_core.maintenance.verify import figures_of

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.maintenance.coordinate import Guards
    from lakehouse_core.maintenance.lease import TableLeases
    from lakehouse_core.maintenance.look import Lookout
    from lakehouse_core.maintenance.queue import Queue
    from lakehouse_core.maintenance.states import Ledger
    from lakehouse_core.store.owner import OwnerStore

# A waiting action is looked at that often, unless its rule names a time.
LOOK_EVERY = timedelta(seconds=15)
_STATES = {"void": State.EXPIRED, "refuse": State.REFUSED, "wait": State.SCHEDULED}
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """An action that every rule lets pass."""

    action: Action
    guards: Guards
    figures: dict[str, float]
    refs: dict[str, int]


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
        is_deleting = action.kind in DESTRUCTIVE
        look = self._lookout.look(action.table_id, is_whole=is_deleting)
        activity = read_activity(self._store, look, action.action_id)
        guards = guards_for(action, look, self._lookout, activity, settings)
        books = self._queue.books(action, now, self._leases.held(), self.holder)
        facts = Facts(
            action=action,
            look=look,
            activity=activity,
            guards=guards,
            settings=settings,
            books=replace(books, bytes_today=books.bytes_today + spent),
            folders=self._lookout.folders() if is_deleting else {},
        )
        cleared = Cleared(
            action=action,
            guards=guards,
            figures=figures_of(look, self._config),
            refs=dict(look.metadata.refs),
        )
        return check(facts).worst, cleared

    def _apply(self, action: Action, finding: Finding, now: datetime) -> None:
        state = _STATES[finding.verdict]
        _log.info(
            "maintenance.rule", action=action.action_id, rule=finding.rule, detail=finding.message
        )
        self._look_again[action.action_id] = now + LOOK_EVERY
        is_same = action.state is state and action.explanation == finding.message
        if state is State.SCHEDULED and is_same:
            return
        why = {"rule": finding.rule, "message": finding.message}
        changes: dict[str, Any] = {"explanation": finding.message}
        if state is State.SCHEDULED:
            changes["not_before"] = finding.not_before
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

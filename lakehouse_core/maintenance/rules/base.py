"""What a safety rule is asked, and how it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from lakehouse_core.config.models import MaintenanceConfig
    from lakehouse_core.domain.maintenance import Action, TableLease
    from lakehouse_core.maintenance.activity import Activity
    from lakehouse_core.maintenance.coordinate import Guards
    from lakehouse_core.maintenance.look import Look

Verdict = Literal["wait", "refuse", "void"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Why an action must not run now.

    Attributes:
        rule: id of the rule.
        verdict: it waits; it is refused for good; its approval does not hold any more.
        message: in the user's words.
        not_before: when to look again; None: next time.
    """

    rule: str
    verdict: Verdict
    message: str
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What the ledger knows beside the action itself.

    Attributes:
        bytes_today: bytes rewritten within the last day, this batch included.
        leases: leases that hold now.
        holder: who asks.
        failed: the table's last ended action, when it failed.
        room_at: when the oldest run within the last day leaves the budget; None: there was none.
    """

    bytes_today: int = 0
    leases: tuple[TableLease, ...] = ()
    holder: str = ""
    failed: Action | None = None
    room_at: datetime | None = None


class Turn(Protocol):
    """What rules about whose turn it is look at: the books alone, no file of the table."""

    @property
    def action(self) -> Action:
        """What is to run."""
        ...

    @property
    def settings(self) -> MaintenanceConfig:
        """Limits and windows."""
        ...

    @property
    def books(self) -> Books:
        """What the ledger knows."""
        ...

    @property
    def now(self) -> datetime:
        """The moment."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """The same as a record, before the table is looked at."""

    action: Action
    settings: MaintenanceConfig
    books: Books
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that rules may look at; nothing here is older than the look at the table.

    Attributes:
        folders: folders of every table, by table id; asked for what deletes files.
    """

    action: Action
    look: Look
    activity: Activity
    guards: Guards
    settings: MaintenanceConfig
    books: Books
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """The moment of the look."""
        return self.look.at


class Rule(Protocol):
    """One safety rule; its docstring tells the user what it guards."""

    id: str

    def evaluate(self, facts: Facts) -> Finding | None:
        """Why the action must not run now; None: as far as this rule goes, it may."""
        ...

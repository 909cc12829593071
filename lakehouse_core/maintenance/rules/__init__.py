"""The safety rules, each with the id that plans name as a precondition."""

from __future__ import annotations

from lakehouse_core.maintenance.rules.base import Books, Facts, Finding, Rule
from lakehouse_core.maintenance.rules.deleting import (
    GcEnabled,
    LiveWriters,
    OrphanAge,
    OwnLocation,
    Refs,
    SnapshotsInUse,
)
from lakehouse_core.maintenance.rules.effect import ChangesSomething, QuietPartitions
from lakehouse_core.maintenance.rules.table import BaseSnapshot, Readable, SameTable
from lakehouse_core.maintenance.rules.turn import (
    Budget,
    Lease,
    MaxRunning,
    NotStopped,
    Window,
    WritersFirst,
)

RULES: tuple[Rule, ...] = (
    SameTable(),
    BaseSnapshot(),
    Readable(),
    GcEnabled(),
    OwnLocation(),
    Refs(),
    OrphanAge(),
    NotStopped(),
    ChangesSomething(),
    SnapshotsInUse(),
    LiveWriters(),
    QuietPartitions(),
    Window(),
    WritersFirst(),
    Budget(),
    MaxRunning(),
    Lease(),
)

__all__ = ["RULES", "Books", "Facts", "Finding", "Rule"]

"""The safety rules, each with the id that plans name as a precondition."""

from __future__ import annotations

from lakehouse_core.maintenance.rules.base import Books, Facts, Finding, Rule, Turn, TurnFacts
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

# Asked first: they read nothing of the table, so that an action may wait at no cost.
TURN_RULES = (NotStopped(), Window(), Budget(), MaxRunning(), Lease())
RULES: tuple[Rule, ...] = (
    SameTable(),
    BaseSnapshot(),
    Readable(),
    GcEnabled(),
    OwnLocation(),
    Refs(),
    OrphanAge(),
    ChangesSomething(),
    SnapshotsInUse(),
    LiveWriters(),
    QuietPartitions(),
    WritersFirst(),
    *TURN_RULES,
)

__all__ = ["RULES", "TURN_RULES", "Books", "Facts", "Finding", "Rule", "Turn", "TurnFacts"]

"""What a cure may look at: one table, its verdict, who reads it, its snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.config.models import Config, HealthThresholds
    from lakehouse_core.domain.health import TableHealth
    from lakehouse_core.domain.table import LakeTable, TableMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One template on one engine that read the table within the window.

    Attributes:
        runs: how often.
        bytes_scanned: by all runs, where the engine says so.
        execution_ms: of all runs.
        cpu_ms: of all runs, where the engine says so.
        planning_ms: of one run, in the mean, where the engine says so.
    """

    table_id: str
    engine_id: str
    template_id: str
    runs: int
    bytes_scanned: int | None
    execution_ms: float | None
    cpu_ms: float | None
    planning_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSnapshots:
    """The snapshots of a table that are old enough to expire, as its commits tell.

    Attributes:
        count: how many there are.
        added_bytes: what they wrote; None where the commits do not say.
        oldest_kept_at: when the oldest snapshot that stays was committed; None: none stays.
    """

    table_id: str
    count: int
    added_bytes: int | None
    oldest_kept_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A table that is looked at.

    Attributes:
        readers: the costliest, first.
        observed_days: how long queries have been seen; at least one day.
    """

    table: LakeTable
    metrics: TableMetrics
    limits: HealthThresholds
    health: TableHealth
    config: Config
    now: datetime
    readers: tuple[Reader, ...] = ()
    old: OldSnapshots | None = None
    observed_days: float = 1.0

    def suffers_from(self, *rules: str) -> tuple[str, ...]:
        """What these health rules say about the table, worst first."""
        return tuple(one.message for one in self.health.contributors if one.rule in rules)

"""Table health: a state, a score that explains itself, contributors worst first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HealthState(StrEnum):
    """How a table is; unknown is not zero."""

    HEALTHY = "healthy"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributor:
    """One signal that costs the table points."""

    rule: str
    state: HealthState
    value: float | None
    warning: float
    critical: float
    unit: str
    points_lost: float
    message: str  # what is wrong, with the numbers, in the user's words


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """A verdict; a row of `health`, contributors stored as JSON, worst first."""

    table_id: str
    assessed_at: datetime
    snapshot_id: int | None
    state: HealthState
    score: float | None  # 0-100; None when unknown
    amoro_score: float | None
    contributors: tuple[Contributor, ...]
    reason: str | None = None  # why the state is unknown or critical beyond the contributors

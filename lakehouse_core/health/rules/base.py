"""What a health rule is, and what it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.config.models import HealthThresholds, Threshold
    from lakehouse_core.domain.table import TableMetrics


@dataclass(frozen=True, slots=True)
class Facts:
    """All a rule may look at."""

    metrics: TableMetrics
    thresholds: HealthThresholds
    now: datetime


@dataclass(frozen=True, slots=True)
class Signal:
    """What a rule measured on a table, where it starts to hurt, and how to say it."""

    value: float
    limits: Threshold
    unit: str
    message: str  # with the numbers, in the user's words


class Rule(Protocol):
    """One question about a table; the docstring of the class is what it tells the user.

    `id` is also the name of the rule's limits in the configuration and of its share in `points`.
    """

    id: str

    def evaluate(self, facts: Facts) -> Signal | None:
        """Measure; None when the question does not arise (an empty table, too few files)."""
        ...

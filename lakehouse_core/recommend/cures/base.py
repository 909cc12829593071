"""What a cure is, and what it answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lakehouse_core.recommend.model import NOTHING, Span

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Change, Kind, Plan
    from lakehouse_core.domain.table import TableMetrics
    from lakehouse_core.recommend.facts import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What would be done about a table, and what it would be like then.

    Attributes:
        plan: exactly what is done.
        title: in a few words.
        reason: what is wrong with the table, with the numbers.
        risk: what can go wrong, what is done about it, and whether it can be undone.
        after: the table as it would be, for its score.
        live: the same as queries see it, for the time they need.
        changes: the figures that change, with their range.
        freed_bytes: what need not be stored any more.
    """

    kind: Kind
    plan: Plan
    title: str
    reason: str
    risk: str
    after: TableMetrics
    live: TableMetrics
    changes: tuple[Change, ...]
    freed_bytes: Span = field(default=NOTHING)


class Cure(Protocol):
    """One thing that can be done about a table; its docstring says when."""

    def remedy(self, subject: Subject) -> Remedy | None:
        """What it would do; None when it would change nothing worth the while."""
        ...

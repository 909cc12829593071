"""A table right before an action: what the proof compares with, kept in the run's folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.maintenance.replan import Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was there; all of it empty when a crash came before it could be kept.

    Attributes:
        figures: name → number.
        refs: branches and tags with their snapshots.
        reads: conditions of the table's readers, which are planned again afterwards.
    """

    figures: dict[str, float] = field(default_factory=dict)
    refs: dict[str, int] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As the run's folder keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Before:
        """The reverse of `to_json`; what is missing is empty."""
        return cls(**{name: document[name] for name in cls.__slots__ if name in document})

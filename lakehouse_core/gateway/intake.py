"""What the ingest needs of whoever understands a payload: bodies in, rows of the store out.

The gateway knows HTTP and durability, the collectors know payloads; `bootstrap` joins them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request: what its path named, and its body."""

    path: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a delivery.

    Attributes:
        accepted: events that became rows.
        dead_letters: events that could not be understood and were kept with the reason.
        refusal: why nothing of the body could be read, and where; None when it could.
    """

    accepted: int = 0
    dead_letters: int = 0
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Mapped:
    """The rows of several deliveries, and a verdict for each of them, in their order."""

    verdicts: tuple[Verdict, ...]
    rows: dict[str, pa.Table] = field(default_factory=dict)  # store table → rows


class Intake(Protocol):
    """Understands one kind of payload; never raises on account of a body."""

    def map(self, deliveries: Sequence[Delivery]) -> Mapped:
        """The rows of the deliveries; called off the event loop, one call at a time."""
        ...

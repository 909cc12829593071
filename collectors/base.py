"""The port every source of telemetry implements, and what it yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lakehouse_core.domain.errors import SourceError, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    import pyarrow as pa

    from lakehouse_core.domain.agent import DeadLetter, Watermark


class BadRowError(Terminal, SourceError):
    """Raised by a mapping when one payload cannot be understood; the source makes a dead letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows for the store and the watermark to keep once they are durable.

    The collect agent upserts `rows`, then `dead_letters`, then `watermark`; a crash in between
    replays the batch, and the upsert by key makes the replay change nothing.
    """

    rows: dict[str, pa.Table] = field(default_factory=dict)  # store table -> rows
    dead_letters: tuple[DeadLetter, ...] = ()
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCapabilities:
    """What the source can say.

    Attributes:
        tables: store tables it fills.
        freshness_lag: how late a row may appear at the source after it happened.
        overlap: how far before the watermark it re-reads, so that late rows still arrive.
    """

    tables: tuple[str, ...]
    freshness_lag: timedelta
    overlap: timedelta


class Source(Protocol):
    """A source of telemetry; pulling twice from one watermark yields the same keys."""

    name: str
    capabilities: SourceCapabilities

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield what happened since the watermark, oldest first, in bounded batches.

        Raises:
            SourceUnavailableError: it does not answer; try again later.
            SourceError: it answers nonsense as a whole; a single bad row is a dead letter instead.
        """
        ...

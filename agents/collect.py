"""The collect agent: pull a source once, make its rows durable, then move its watermark."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.runs import Result, one_line, reach_of
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.domain.errors import LakehouseError, Transient
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from agents.watch import Lease
    from collectors.base import Batch, Source
    from lakehouse_core.domain.circuit import Reach
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

WATERMARK_SQL = """
SELECT source, position, event_at, updated_at FROM watermark WHERE source = $source
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectReport:
    """What one pull brought.

    Attributes:
        rows: rows of the store that were new or different.
        newest_event_age_seconds: of the newest event taken; None when there never was one.
        watermark: when the newest event taken happened.
        is_unreachable: the error may go away by itself.
        was_cut: the time was up, or the process is stopping: the rest comes next time.
        reach: whether the source answered (domain/circuit.py).
    """

    source: str
    rows: int
    dead_letters: int
    newest_event_age_seconds: float | None
    watermark: datetime | None
    error: str | None
    seconds: float
    is_unreachable: bool = False
    was_cut: bool = False
    reach: Reach = "answered"

    @property
    def result(self) -> Result:
        """The same, as any job's result."""
        error = self.error
        if error is None and self.was_cut:
            error = f"stopped after {self.seconds:.0f} s with more to read; goes on next time"
        is_partial = self.was_cut or (self.error is not None and self.rows > 0)
        return Result(
            rows=self.rows,
            dead_letters=self.dead_letters,
            error=error,
            is_partial=is_partial,
            reach=self.reach,
        )


def read_watermark(store: TelemetryStore, source: str) -> Watermark | None:
    """How far a source has been read; None before the first time."""
    found = records(Watermark, store.read(WATERMARK_SQL, source=source))
    return found[0] if found else None


def run_once(
    source: Source,
    store: TelemetryStore,
    clock: Clock,
    *,
    timeout: timedelta,
    is_stopping: Callable[[], bool] = lambda: False,
    lease: Lease | None = None,
) -> CollectReport:
    """Pull a source until it has no more, the time is up, or the process stops.

    Each batch is durable before the next is asked for, so stopping between two loses nothing.

    Args:
        source: what to pull.
        store: where its rows go.
        clock: what the time is.
        timeout: how long it may take; asked after each batch.
        is_stopping: whether the process ends; asked after each batch.
        lease: is told what was written so far; once it is lost nothing more is written, for
            another run may have begun.
    """
    start = time.monotonic()
    tally = _Tally(lease)
    error: LakehouseError | None = None
    was_cut = False
    try:
        tally.event_at = _event_at(watermark := read_watermark(store, source.name))
        for batch in source.pull(watermark):
            if not tally.add(store, batch):
                was_cut = True
                break
            if is_stopping() or time.monotonic() - start > timeout.total_seconds():
                was_cut = True
                break
    except LakehouseError as caught:
        error = caught
    age = clock() - tally.event_at if tally.event_at is not None else None
    return CollectReport(
        source=source.name,
        rows=tally.rows,
        dead_letters=tally.letters,
        newest_event_age_seconds=max(0.0, age.total_seconds()) if age is not None else None,
        watermark=tally.event_at,
        error=one_line(error) if error is not None else None,
        seconds=round(time.monotonic() - start, 3),
        is_unreachable=isinstance(error, Transient),
        was_cut=was_cut,
        # One that breaks off in the middle did answer.
        reach="answered" if tally.rows else reach_of(error),
    )


class _Tally:
    """Writes batches in the order that makes a crash harmless, and counts."""

    def __init__(self, lease: Lease | None) -> None:
        self._lease = lease
        self.rows = 0
        self.letters = 0
        self.event_at: datetime | None = None

    def add(self, store: TelemetryStore, batch: Batch) -> bool:
        """Write a batch; False when the run was given up before all of it was written."""
        for table, rows in batch.rows.items():
            if not self._may_write():
                return False
            self.rows += store.upsert(table, rows)
        if batch.dead_letters:
            if not self._may_write():
                return False
            letters = to_arrow("dead_letter", batch.dead_letters)
            self.letters += store.upsert("dead_letter", letters)
        if batch.watermark is not None:
            if not self._may_write():
                return False
            store.upsert("watermark", to_arrow("watermark", [batch.watermark]))
            self.event_at = batch.watermark.event_at
        return self._may_write()

    def _may_write(self) -> bool:
        if self._lease is None:
            return True
        self._lease.note(self.rows, self.letters)
        return not self._lease.is_lost


def _event_at(watermark: Watermark | None) -> datetime | None:
    return watermark.event_at if watermark is not None else None

"""How far the pipeline's figures reach, and where live ones take over.

Whole hours (days) before the pipeline's last export come from gold, the same rows as in `lake.ops`;
later ones are read live from the query history, by the same definitions. A row that reaches the
history late, for an hour that gold has, counts with the pipeline's next run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

PROCESSED_SQL = "SELECT event_at, updated_at FROM watermark WHERE source = 'pipeline'"
# A sketch counts durations in buckets of 2 % width (spark_jobs/pipeline/gold_sql.py).
SKETCH_BASE = 1.02
BUCKET_SQL = "ceil(ln(greatest(elapsed_ms, 0.001)) / ln(1.02))::INTEGER"
_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed:
    """What the pipeline has done.

    Attributes:
        exported_at: the store was read at this time for the last run; None: it never ran.
        loaded_at: when its figures reached the store.
    """

    exported_at: datetime | None
    loaded_at: datetime | None

    @property
    def whole_hours_until(self) -> datetime:
        """Hours before this come from gold."""
        return _floor(self.exported_at, _HOUR) if self.exported_at else _EVER

    @property
    def whole_days_until(self) -> datetime:
        """Days before this come from gold."""
        return _floor(self.exported_at, _DAY) if self.exported_at else _EVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the figures of an answer are about.

    Attributes:
        start: the window's start, moved back to a whole hour (or day).
        end: its end.
        gold_until: before it from the pipeline, from it on live.
        exported_at: as of when the pipeline's part is; None: all of it is live.
    """

    start: datetime
    end: datetime
    gold_until: datetime
    exported_at: datetime | None

    @property
    def live_from(self) -> datetime:
        """Where the live part begins."""
        return max(self.start, self.gold_until)


def read_processed(store: TelemetryStore) -> Processed:
    """How far the pipeline is, as the store knows it."""
    rows = store.read(PROCESSED_SQL).to_pylist()
    if not rows:
        return Processed(exported_at=None, loaded_at=None)
    return Processed(exported_at=rows[0]["event_at"], loaded_at=rows[0]["updated_at"])


def by_hours(window: Window, processed: Processed) -> Coverage:
    """The window in whole hours."""
    return Coverage(
        start=_floor(window.start, _HOUR),
        end=window.end,
        gold_until=processed.whole_hours_until,
        exported_at=processed.exported_at,
    )


def by_days(window: Window, processed: Processed) -> Coverage:
    """The window in whole days."""
    return Coverage(
        start=_floor(window.start, _DAY),
        end=window.end,
        gold_until=processed.whole_days_until,
        exported_at=processed.exported_at,
    )


def _floor(moment: datetime, step: timedelta) -> datetime:
    return moment - (moment - _EVER) % step

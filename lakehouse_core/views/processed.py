"""How far the pipeline's figures reach, and where live ones take over.

Whole hours (days) before the pipeline's last export come from gold, the same rows as in `lake.ops`;
later ones are read live from the query history, by the same definitions. A row that reaches the
history late, for an hour that gold has, counts with the pipeline's next run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

DAYS_SOURCE = "rollup:template_day"
PROCESSED_SQL = """
SELECT p.event_at, p.updated_at, d.event_at AS days_until, d.position AS days_of
FROM watermark p LEFT JOIN watermark d ON d.source = $days::VARCHAR WHERE p.source = 'pipeline'
"""
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
        summed_days_until: days before this are also summed up, as they were loaded last.
    """

    exported_at: datetime | None
    loaded_at: datetime | None
    summed_days_until: datetime = _EVER

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
        days_from: from here to `days_until` whole days can be read instead of their hours.
    """

    start: datetime
    end: datetime
    gold_until: datetime
    exported_at: datetime | None
    days_from: datetime = _EVER
    days_until: datetime = _EVER

    @property
    def live_from(self) -> datetime:
        """Where the live part begins."""
        return max(self.start, self.gold_until)

    def live_since(self, first_at: datetime | None) -> Coverage:
        """The same, live from the first whole hour of a history that begins at this time."""
        if first_at is None:
            return self
        whole = _floor(first_at + _HOUR - timedelta(microseconds=1), _HOUR)
        return replace(self, gold_until=min(self.gold_until, whole))


def read_processed(store: TelemetryStore) -> Processed:
    """How far the pipeline is, as the store knows it."""
    rows = store.read(PROCESSED_SQL, days=DAYS_SOURCE).to_pylist()
    if not rows:
        return Processed(exported_at=None, loaded_at=None)
    row = rows[0]
    loaded_at = row["updated_at"]
    is_summed = row["days_of"] is not None and (
        datetime.fromisoformat(json.loads(row["days_of"])["loaded_at"]) == loaded_at
    )
    return Processed(
        exported_at=row["event_at"],
        loaded_at=loaded_at,
        summed_days_until=row["days_until"] if is_summed else _EVER,
    )


def by_hours(window: Window, processed: Processed) -> Coverage:
    """The window in whole hours."""
    start = _floor(window.start, _HOUR)
    first = _floor(start + _DAY - timedelta(microseconds=1), _DAY)
    last = min(_floor(window.end, _DAY), processed.summed_days_until)
    return Coverage(
        start=start,
        end=window.end,
        gold_until=processed.whole_hours_until,
        exported_at=processed.exported_at,
        # No whole day inside: both at the start, so that all hours come after them.
        days_from=first if first < last else start,
        days_until=last if first < last else start,
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

"""Rate, errors, duration: over all engines, per engine, and over time.

Errors are failed queries out of those that finished or failed; cancelled ones are neither.
Durations are of finished queries, from submission to the last row, as the engine reported them.
Windows of more than two days are read from hourly sums (hourly.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse_core.views import hourly
from lakehouse_core.views.filters import Filters, over_events

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# One scan for the engines and their sum: the grouping set () is the total, engine_id NULL. The two
# quantiles are one aggregate, written twice.
RED_SQL = over_events("""
SELECT engine_id, count(*) AS queries,
  count(*) FILTER (status = 'finished') AS finished,
  count(*) FILTER (status = 'failed') AS failed,
  count(*) FILTER (status = 'cancelled') AS cancelled,
  count(*) FILTER (status IN ('queued', 'running')) AS unfinished,
  count(*) FILTER (origin = 'simulated') AS simulated,
  (quantile_cont(elapsed_ms, [0.5, 0.95]) FILTER (status = 'finished'))[1] AS p50_ms,
  (quantile_cont(elapsed_ms, [0.5, 0.95]) FILTER (status = 'finished'))[2] AS p95_ms,
  sum(bytes_scanned)::BIGINT AS bytes_scanned
FROM {events}
GROUP BY GROUPING SETS ((engine_id), ())
ORDER BY engine_id NULLS FIRST
""")

# Integer arithmetic on epochs is several times faster than time_bucket on TIMESTAMPTZ.
TREND_SQL = over_events("""
SELECT make_timestamptz(epoch_us(submitted_at) // $step_us::BIGINT * $step_us::BIGINT) AS bucket_at,
  engine_id, count(*) AS queries,
  count(*) FILTER (status = 'failed') AS failed,
  (quantile_cont(elapsed_ms, [0.5, 0.95]) FILTER (status = 'finished'))[1] AS p50_ms,
  (quantile_cont(elapsed_ms, [0.5, 0.95]) FILTER (status = 'finished'))[2] AS p95_ms
FROM {events}
GROUP BY bucket_at, engine_id
ORDER BY bucket_at, engine_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """Rate, errors and duration of one engine, or of all (`engine_id` None), in one window."""

    engine_id: str | None
    queries: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0
    unfinished: int = 0
    simulated: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    bytes_scanned: int | None = None
    queries_per_hour: float = 0.0

    @property
    def ended(self) -> int:
        """How many came to an end by themselves: the base of the error ratio."""
        return self.finished + self.failed

    @property
    def error_ratio(self) -> float | None:
        """Failed out of ended; None when nothing ended."""
        return self.failed / self.ended if self.ended else None

    @property
    def success_ratio(self) -> float | None:
        """Finished out of ended; None when nothing ended."""
        return self.finished / self.ended if self.ended else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedSummary:
    """The total and its parts; the counts of the parts add up to the total's."""

    window: Window
    total: Red
    engines: tuple[Red, ...]

    def of(self, engine_id: str) -> Red:
        """One engine; zeros when it ran nothing."""
        return next((r for r in self.engines if r.engine_id == engine_id), Red(engine_id=engine_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Rate, errors and duration over time.

    Attributes:
        window: the window, which also says how long a bucket is.
        rows: bucket_at, engine_id, queries, failed, p50_ms, p95_ms; empty buckets are absent.
    """

    window: Window
    rows: pa.Table

    def counts(self, engine_id: str | None = None) -> list[int]:
        """Queries per bucket, empty ones too, of one engine or of all."""
        step = _microseconds(self.window.step)
        first = _microseconds(self.window.start - _EPOCH) // step
        last = (_microseconds(self.window.end - _EPOCH) - 1) // step
        found = [0] * (last - first + 1)
        for row in self.rows.select(["bucket_at", "engine_id", "queries"]).to_pylist():
            if engine_id in (None, row["engine_id"]):
                found[_microseconds(row["bucket_at"] - _EPOCH) // step - first] += row["queries"]
        return found


def red_in(store: TelemetryStore, filters: Filters, window: Window) -> RedSummary:
    """Rate, errors and duration in a window that is already read."""
    if hourly.is_long(filters, window):
        found = store.read(hourly.RED_SQL, **hourly.span_params(store, filters, window))
    else:
        found = store.read(RED_SQL, **filters.params(window))
    rows = [
        Red(**row, queries_per_hour=row["queries"] / window.hours)
        for row in found.to_pylist()
        if row["queries"]
    ]
    total = next((r for r in rows if r.engine_id is None), Red(engine_id=None))
    return RedSummary(
        window=window, total=total, engines=tuple(r for r in rows if r.engine_id is not None)
    )


def red(store: TelemetryStore, filters: Filters, clock: Clock) -> RedSummary:
    """Rate, errors and duration of what passes the filters."""
    return red_in(store, filters, filters.window_at(clock()))


def trend(store: TelemetryStore, filters: Filters, clock: Clock) -> Trend:
    """Queries, failures and durations per bucket and engine."""
    window = filters.window_at(clock())
    step_us = _microseconds(window.step)
    if hourly.is_long(filters, window):
        params = hourly.span_params(store, filters, window)
        rows = store.read(hourly.TREND_SQL, step_us=step_us, **params)
    else:
        rows = store.read(TREND_SQL, step_us=step_us, **filters.params(window))
    return Trend(window=window, rows=rows)


def _microseconds(length: timedelta) -> int:
    return length // timedelta(microseconds=1)

"""Rate, errors and durations of long windows, from hourly sums instead of single queries.

Whole hours come from `query_hour`, which the rollup agent keeps; the ends of the window, and what
is newer than the rollup, come from the queries themselves. Durations are counted in classes, 32 to
each doubling: a percentile read from them is off by 2.2 % at most, the width of a class.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.filters import Filters
    from lakehouse_core.views.window import Window

ROLLUP_SOURCE = "rollup:query_hour"
ROLLUP_EVERY = timedelta(seconds=30)
HOUR = timedelta(hours=1)
LONG = timedelta(hours=48)  # up to here the queries themselves are counted, exactly
NO_CLASS = -1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Integer arithmetic: several times faster than date_trunc, and the same in every time zone.
HOUR_AT = "make_timestamptz(epoch_us(submitted_at) // 3600000000 * 3600000000)"
# The class of a query's duration; only finished ones have one.
CLASS = """CASE WHEN status = 'finished' AND elapsed_ms IS NOT NULL
    THEN floor(log2(least(greatest(elapsed_ms, 0.001), 1e15)) * 32)::SMALLINT ELSE -1000 END"""

ROLLED_SQL = "SELECT event_at FROM watermark WHERE source = $source::VARCHAR"

_OWN = """($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
    AND ($status::VARCHAR IS NULL OR status = $status::VARCHAR)"""

# Two scans rather than one with OR: each prunes row groups by its own end of the window.
_CELLS = f"""
cells AS (
  SELECT hour_at, engine_id, status, origin, duration_class, queries, bytes_scanned
  FROM query_hour
  WHERE hour_at >= $first::TIMESTAMPTZ AND hour_at < $last::TIMESTAMPTZ AND {_OWN}
  UNION ALL
  SELECT {HOUR_AT}, engine_id, status, origin, {CLASS}, count(*),
    sum(bytes_scanned)::BIGINT
  FROM (
    SELECT * FROM query_event
    WHERE submitted_at >= $start::TIMESTAMPTZ AND submitted_at < $first::TIMESTAMPTZ
    UNION ALL
    SELECT * FROM query_event
    WHERE submitted_at >= $last::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
  )
  WHERE {_OWN} GROUP BY ALL
)"""  # noqa: S608 constants of this module

# The first class that reaches the share, and the place in it if durations lie evenly inside.
_QUANTILES = """
  arg_min(pow(2, (duration_class + (0.5 * total - upto + queries) / queries) / 32),
    duration_class) FILTER (upto >= 0.5 * total) AS p50_ms,
  arg_min(pow(2, (duration_class + (0.95 * total - upto + queries) / queries) / 32),
    duration_class) FILTER (upto >= 0.95 * total) AS p95_ms"""

RED_SQL = f"""
WITH {_CELLS}, grouped AS (
  SELECT engine_id, status, origin, duration_class, sum(queries) AS queries,
    sum(bytes_scanned) AS bytes_scanned
  FROM cells
  GROUP BY GROUPING SETS (
    (engine_id, status, origin, duration_class), (status, origin, duration_class))
), counted AS (
  SELECT engine_id, sum(queries)::BIGINT AS queries,
    coalesce(sum(queries) FILTER (status = 'finished'), 0)::BIGINT AS finished,
    coalesce(sum(queries) FILTER (status = 'failed'), 0)::BIGINT AS failed,
    coalesce(sum(queries) FILTER (status = 'cancelled'), 0)::BIGINT AS cancelled,
    coalesce(sum(queries) FILTER (status IN ('queued', 'running')), 0)::BIGINT AS unfinished,
    coalesce(sum(queries) FILTER (origin = 'simulated'), 0)::BIGINT AS simulated,
    sum(bytes_scanned)::BIGINT AS bytes_scanned
  FROM grouped GROUP BY engine_id
), classes AS (
  SELECT engine_id, duration_class, sum(queries)::DOUBLE AS queries FROM grouped
  WHERE duration_class > {NO_CLASS} GROUP BY engine_id, duration_class
), ranked AS (
  SELECT engine_id, duration_class, queries,
    sum(queries) OVER (PARTITION BY engine_id ORDER BY duration_class) AS upto,
    sum(queries) OVER (PARTITION BY engine_id) AS total
  FROM classes
), durations AS (
  SELECT engine_id, {_QUANTILES} FROM ranked GROUP BY engine_id
)
SELECT counted.*, p50_ms, p95_ms
FROM counted LEFT JOIN durations ON counted.engine_id IS NOT DISTINCT FROM durations.engine_id
ORDER BY engine_id NULLS FIRST
"""  # noqa: S608 constants of this module

COUNT_SQL = f"""
WITH {_CELLS} SELECT coalesce(sum(queries), 0)::BIGINT AS total FROM cells
"""  # noqa: S608 constants of this module

TREND_SQL = f"""
WITH {_CELLS}, grouped AS (
  SELECT make_timestamptz(epoch_us(hour_at) // $step_us::BIGINT * $step_us::BIGINT) AS bucket_at,
    engine_id, status, duration_class, sum(queries)::DOUBLE AS queries
  FROM cells GROUP BY ALL
), ranked AS (
  SELECT bucket_at, engine_id, duration_class, queries,
    sum(queries) OVER (PARTITION BY bucket_at, engine_id ORDER BY duration_class) AS upto,
    sum(queries) OVER (PARTITION BY bucket_at, engine_id) AS total
  FROM grouped WHERE duration_class > {NO_CLASS}
), durations AS (
  SELECT bucket_at, engine_id, {_QUANTILES} FROM ranked GROUP BY bucket_at, engine_id
), counted AS (
  SELECT bucket_at, engine_id, sum(queries)::BIGINT AS queries,
    coalesce(sum(queries) FILTER (status = 'failed'), 0)::BIGINT AS failed
  FROM grouped GROUP BY bucket_at, engine_id
)
SELECT bucket_at, engine_id, counted.queries, failed, p50_ms, p95_ms
FROM counted LEFT JOIN durations USING (bucket_at, engine_id)
ORDER BY bucket_at, engine_id
"""  # noqa: S608 constants of this module


def is_long(filters: Filters, window: Window) -> bool:
    """Whether hourly sums can answer: a long window, and no filter they do not know."""
    others = (filters.user, filters.tag, filters.text, filters.template)
    return window.length > LONG and not any(others)


def span_params(store: TelemetryStore, filters: Filters, window: Window) -> dict[str, Any]:
    """The bound parameters of the statements here: which hours come from which table."""
    found = store.read(ROLLED_SQL, source=ROLLUP_SOURCE).to_pylist()
    rolled_to = found[0]["event_at"] if found else None
    first = _hour(window.start + HOUR - timedelta(microseconds=1))
    last = max(first, min(_hour(window.end), rolled_to or first))
    return {
        "start": window.start,
        "first": first,
        "last": last,
        "end": window.end,
        "engine": filters.engine,
        "status": filters.status,
    }


def _hour(at: datetime) -> datetime:
    return _EPOCH + (at - _EPOCH) // HOUR * HOUR

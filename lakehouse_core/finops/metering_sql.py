"""What was used in each hour, read from the store: sums per engine and hour, nothing per query.

Every statement takes `$hours`, numbers of hours since 1970.
"""

from __future__ import annotations

from lakehouse_core.domain.attribution import DUCKDB, HOUR_US, credited_sql, hours_sql, pieces_sql
from lakehouse_core.domain.cost import SIZE_TAG

# What attribution looks at of a query. Simulated queries cost nobody anything.
EVENT_COLUMNS = """engine_id, query_id, status, submitted_at, started_at, ended_at, collected_at,
    queued_ms, planning_ms, execution_ms, cpu_ms, bytes_scanned, template_id, user_name, source,
    workload_group, statement_kind, tags"""

HOURS = "hours AS (SELECT unnest($hours::BIGINT[]) AS hour_no)"
# Queries that may have executed in these hours: submitted before the end, ended after the start.
_BOUNDS = f"""
bounds AS (
  SELECT make_timestamptz(min(hour_no) * {HOUR_US}) AS since,
    make_timestamptz((max(hour_no) + 1) * {HOUR_US}) AS until FROM hours
)"""  # noqa: S608 constants of ours
_EVENTS = f"""
events AS (
  SELECT {EVENT_COLUMNS} FROM query_event {{only}}
  WHERE origin = 'real' AND submitted_at < (SELECT until FROM bounds)
    AND coalesce(ended_at, collected_at) >= (SELECT since FROM bounds)
)"""  # noqa: S608 constants of ours
EVENTS = f"{_BOUNDS}, {_EVENTS.format(only='')}"
LONGEST_DAYS = 8  # Snowflake ends a statement after seven days at the latest
# What an engine itself charges these queries with; `bounds` comes with the events.
ATTRIBUTIONS = f"""
attributions AS (
  SELECT engine_id, query_id, credits FROM query_attribution
  WHERE started_at < (SELECT until FROM bounds)
    AND started_at >= (SELECT since FROM bounds) - INTERVAL {LONGEST_DAYS} DAYS
)"""  # noqa: S608 constants of ours

# Resources and hours that are divided by what the engine itself charges their queries with.
CREDITED_SQL = f"""
WITH {HOURS}, {_BOUNDS}, {ATTRIBUTIONS},
{_EVENTS.format(only="SEMI JOIN attributions USING (engine_id, query_id)")},
credited_hours AS ({credited_sql(DUCKDB)})
SELECT engine_id, resource, hour_no FROM credited_hours ORDER BY ALL
"""  # noqa: S608 constants of ours

# Bytes as they are billed: with the engine's minimum, failed queries left out where they are free.
USE_SQL = f"""
WITH {HOURS}, {EVENTS}, rules AS (
  SELECT unnest($priced::VARCHAR[]) AS engine_id, unnest($priced_in::BIGINT[]) AS hour_no,
    unnest($minimums::BIGINT[]) AS minimum, unnest($free::BOOLEAN[]) AS is_free
), used AS ({
    pieces_sql(
        DUCKDB,
        '''
  SELECT engine_id, resource, hour_no, count(*) AS runs, sum(piece_us) AS execution_us,
    sum(piece_cpu_us) AS cpu_us,
    sum(CASE WHEN piece_bytes = 0 OR (status = 'failed' AND coalesce(is_free, false)) THEN 0
      ELSE greatest(piece_bytes, coalesce(minimum, 0)) END) AS bytes
  FROM pieces LEFT JOIN rules USING (engine_id, hour_no)
  GROUP BY engine_id, resource, hour_no''',
    )
})
SELECT engine_id, resource, hour_no, runs, execution_us::BIGINT AS execution_us,
  cpu_us::BIGINT AS cpu_us, bytes::BIGINT AS bytes
FROM used ORDER BY engine_id, resource, hour_no
"""  # noqa: S608 constants of ours

# An engine is up from a probe that found it so to the next probe, and while it executes a query.
UPTIME_SQL = f"""
WITH {HOURS}, {EVENTS}, executed AS ({
    pieces_sql(DUCKDB, "SELECT engine_id, hour_no, from_us, to_us FROM pieces")
}), probed AS (
  SELECT engine_id, observed, epoch_us(probed_at) AS begin_us,
    lead(epoch_us(probed_at)) OVER (PARTITION BY engine_id ORDER BY probed_at) AS next_us
  FROM engine_probe
  WHERE probed_at >= (SELECT since FROM bounds) - to_microseconds($gap_us::BIGINT)
    AND probed_at < (SELECT until FROM bounds) + to_microseconds($gap_us::BIGINT)
), seen AS (
  SELECT engine_id, begin_us,
    least(coalesce(next_us, begin_us), begin_us + $gap_us::BIGINT) AS end_us
  FROM probed WHERE observed = 'healthy'
), spread AS (
  SELECT *, unnest(generate_series(begin_us // {HOUR_US},
    greatest(begin_us // {HOUR_US}, (end_us - 1) // {HOUR_US}))) AS hour_no
  FROM seen
), stretches AS (
  SELECT engine_id, hour_no, from_us, to_us FROM executed
  UNION ALL
  SELECT engine_id, hour_no, greatest(begin_us, hour_no * {HOUR_US}),
    least(end_us, (hour_no + 1) * {HOUR_US})
  FROM spread SEMI JOIN hours USING (hour_no)
), new AS (
  SELECT engine_id, hour_no, greatest(0, to_us - greatest(from_us, coalesce(
    max(to_us) OVER (PARTITION BY engine_id, hour_no ORDER BY from_us, to_us
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), from_us))) AS up_us
  FROM stretches
)
SELECT engine_id, hour_no, sum(up_us)::BIGINT AS up_us FROM new
GROUP BY engine_id, hour_no ORDER BY engine_id, hour_no
"""  # noqa: S608 constants of ours

METERED_SQL = f"""
WITH {HOURS}, days AS (
  SELECT engine_id, (hour AT TIME ZONE 'UTC')::DATE AS day,
    sum(quantity) FILTER (WHERE meter = 'compute') AS compute,
    sum(quantity) FILTER (WHERE meter = 'cloud_services') AS services
  FROM metering WHERE source = 'engine'
    AND (hour AT TIME ZONE 'UTC')::DATE IN (
      SELECT (make_timestamptz(hour_no * {HOUR_US}) AT TIME ZONE 'UTC')::DATE FROM hours)
  GROUP BY ALL
)
SELECT metering.engine_id, resource, meter, hours.hour_no, unit, quantity, attributed,
  days.compute AS day_compute, days.services AS day_services
FROM metering JOIN hours ON epoch_us(metering.hour) // {HOUR_US} = hours.hour_no
LEFT JOIN days ON days.engine_id = metering.engine_id
  AND days.day = (metering.hour AT TIME ZONE 'UTC')::DATE
WHERE source = 'engine' ORDER BY ALL
"""  # noqa: S608 constants of ours

# How long each resource executed anything, by the sizes its queries say it had.
_SIZES = f"""
  SELECT engine_id, resource, hour_no, from_us, to_us, substring(list_filter(label_tags,
    lambda tag: starts_with(tag, '{SIZE_TAG}='))[1], length('{SIZE_TAG}=') + 1) AS size
  FROM pieces WHERE resource <> ''"""  # noqa: S608 constants of ours
SIZED_SQL = f"""
WITH {HOURS}, {EVENTS}, executed AS ({pieces_sql(DUCKDB, _SIZES)}), busy AS (
  SELECT engine_id, resource, hour_no, size, greatest(0, to_us - greatest(from_us, coalesce(
    max(to_us) OVER (PARTITION BY engine_id, resource, hour_no ORDER BY from_us, to_us
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), from_us))) AS busy_us
  FROM executed WHERE size IS NOT NULL
)
SELECT engine_id, resource, hour_no, list(DISTINCT size ORDER BY size) AS sizes,
  sum(busy_us)::BIGINT AS busy_us
FROM busy GROUP BY engine_id, resource, hour_no ORDER BY engine_id, resource, hour_no
"""  # noqa: S608 constants of ours

SLOTS_SQL = f"""
WITH {HOURS}, held AS (
  SELECT engine_id, job_id, slots, epoch_us(started_at) AS begin_us, epoch_us(ended_at) AS end_us
  FROM flink_slot_time
), spread AS (
  SELECT *, unnest(generate_series(begin_us // {HOUR_US},
    greatest(begin_us // {HOUR_US}, (end_us - 1) // {HOUR_US}))) AS hour_no
  FROM held
)
SELECT engine_id, job_id, hour_no, sum(slots * (least(end_us, (hour_no + 1) * {HOUR_US})
  - greatest(begin_us, hour_no * {HOUR_US})))::BIGINT AS slot_us
FROM spread SEMI JOIN hours USING (hour_no)
GROUP BY engine_id, job_id, hour_no HAVING slot_us > 0 ORDER BY ALL
"""  # noqa: S608 constants of ours

# The data files of a table as they were last seen before the hour's end.
STORAGE_SQL = f"""
WITH {HOURS}, ends AS (
  SELECT hour_no, make_timestamptz((hour_no + 1) * {HOUR_US}) AS end_at FROM hours
), sizes AS (
  SELECT lake_table.catalog, table_id, collected_at, total_bytes,
    coalesce(lead(collected_at) OVER (PARTITION BY table_id ORDER BY collected_at),
      lake_table.dropped_at, TIMESTAMPTZ 'infinity') AS until
  FROM table_metrics JOIN lake_table USING (table_id)
)
SELECT sizes.catalog, ends.hour_no, sum(total_bytes)::HUGEINT AS bytes
FROM ends JOIN sizes ON sizes.collected_at < ends.end_at AND sizes.until >= ends.end_at
GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 constants of ours

# Hours whose charges may be other than they were: told since then.
CHANGED_SQL = f"""
WITH events AS (
  SELECT {EVENT_COLUMNS} FROM query_event
  WHERE origin = 'real' AND collected_at >= $since::TIMESTAMPTZ
), executed AS ({hours_sql(DUCKDB)})
SELECT hour_no FROM executed
UNION SELECT epoch_us(hour) // {HOUR_US} FROM metering WHERE collected_at >= $since::TIMESTAMPTZ
-- What of cloud services is billed depends on the whole day (`meters`).
UNION SELECT epoch_us(services.hour) // {HOUR_US} FROM metering AS services SEMI JOIN (
    SELECT engine_id, hour FROM metering WHERE collected_at >= $since::TIMESTAMPTZ) AS news
  ON services.engine_id = news.engine_id
    AND epoch_us(services.hour) // 86400000000 = epoch_us(news.hour) // 86400000000
  WHERE services.meter = 'cloud_services'
UNION SELECT unnest(generate_series(epoch_us(started_at) // {HOUR_US},
    epoch_us(greatest(started_at, coalesce(ended_at, started_at))) // {HOUR_US}))
  FROM query_attribution WHERE collected_at >= $since::TIMESTAMPTZ
UNION SELECT unnest(generate_series(epoch_us(greatest(started_at, $since::TIMESTAMPTZ))
    // {HOUR_US}, epoch_us(ended_at) // {HOUR_US}))
  FROM flink_slot_time WHERE ended_at >= $since::TIMESTAMPTZ
UNION SELECT unnest(generate_series(epoch_us(greatest(valid_from, $first::TIMESTAMPTZ))
    // {HOUR_US}, epoch_us($now::TIMESTAMPTZ) // {HOUR_US}))
  FROM price WHERE known_at >= $since::TIMESTAMPTZ AND valid_from < $now::TIMESTAMPTZ
UNION SELECT unnest(generate_series(epoch_us(valid_to) // {HOUR_US},
    epoch_us($now::TIMESTAMPTZ) // {HOUR_US}))
  FROM price WHERE known_at >= $since::TIMESTAMPTZ AND valid_to < $now::TIMESTAMPTZ
"""  # noqa: S608 constants of ours

FIRST_SQL = """
SELECT least((SELECT min(submitted_at) FROM query_event WHERE origin = 'real'),
  (SELECT min(hour) FROM metering), (SELECT min(probed_at) FROM engine_probe)) AS first_at
"""
CHARGED_SQL = f"""
SELECT DISTINCT epoch_us(hour_at) // {HOUR_US} AS hour_no FROM charge
"""  # noqa: S608 constants of ours
LAST_SQL = "SELECT max(computed_at) AS last_at FROM charge"
CHARGES_SQL = f"""
WITH {HOURS}
SELECT charge.* FROM charge JOIN hours ON epoch_us(charge.hour_at) // {HOUR_US} = hours.hour_no
"""  # noqa: S608 constants of ours

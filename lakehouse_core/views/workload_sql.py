"""The statements behind the workloads; see `workloads`, which puts them together."""

from __future__ import annotations

# Every value is a bound parameter; only these constants are put together.
_FILTER = """
    AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
    AND ($table::VARCHAR IS NULL OR template_id IN (
      SELECT template_id FROM template_table WHERE table_name = $table::VARCHAR
      UNION SELECT template_id FROM column_usage WHERE table_name = $table::VARCHAR))
    AND ($template::VARCHAR IS NULL OR template_id = $template::VARCHAR)
"""
_GOLD_SPAN = """
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < $end::TIMESTAMPTZ
    AND hour_at < $gold_until::TIMESTAMPTZ AND runs > 0
"""
_GOLD_COLUMNS = """template_id, engine_id, runs, finished, failed, cancelled, unfinished,
    elapsed_ms, cpu_ms, bytes_scanned, rows_returned, elapsed_sketch, users, user_names"""
HOURS = {
    # Without a user, rows are fewer: one per template and engine, with the names of its users.
    False: f"template_hour {_GOLD_SPAN} {_FILTER}",
    True: f"workload_hour {_GOLD_SPAN} {_FILTER} AND user_name = $user::VARCHAR",
}
# Whole days come as one row, the hours before and after them as they are.
GOLD = {
    False: f"""(
  SELECT last_hour_at AS hour_at, {_GOLD_COLUMNS} FROM template_day
  WHERE day_at >= $days_from::TIMESTAMPTZ AND day_at < $days_until::TIMESTAMPTZ {_FILTER}
  UNION ALL
  SELECT hour_at, {_GOLD_COLUMNS} FROM {HOURS[False]} AND hour_at < $days_from::TIMESTAMPTZ
  UNION ALL
  SELECT hour_at, {_GOLD_COLUMNS} FROM {HOURS[False]} AND hour_at >= $days_until::TIMESTAMPTZ
) AS gold WHERE true""",  # noqa: S608 constants only
    True: HOURS[True],
}
NAMES = {False: "user_names", True: "[user_name]"}
# Of one template the figures are wanted in all and per engine: each row counts for both, so that
# the history is gone through once.
SPREAD = {False: "*", True: "*, unnest([NULL, engine_id]) AS at_engine"}
KEYS = {False: "template_id", True: "template_id, at_engine"}
LIVE = f"""(
  SELECT * REPLACE (coalesce(template_id, '') AS template_id) FROM query_event
  WHERE submitted_at >= $live_from::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
    AND ($user::VARCHAR IS NULL OR user_name = $user::VARCHAR) {
    _FILTER.replace("template_id IN", "coalesce(template_id, '') IN").replace(
        "template_id = $", "coalesce(template_id, '') = $"
    )
}
) AS live"""  # noqa: S608 constants only

FACTS = """
  SELECT hour_at, template_id, engine_id, runs, finished, failed, cancelled, unfinished,
    elapsed_ms, cpu_ms, bytes_scanned, rows_returned, users AS named
  FROM {gold}
  UNION ALL
  SELECT date_trunc('hour', submitted_at), template_id, engine_id, count(*),
    count(*) FILTER (status = 'finished'), count(*) FILTER (status = 'failed'),
    count(*) FILTER (status = 'cancelled'), count(*) FILTER (status IN ('queued', 'running')),
    sum(round(elapsed_ms * 1000)::BIGINT) / 1000.0, sum(round(cpu_ms * 1000)::BIGINT) / 1000.0,
    sum(bytes_scanned)::BIGINT, sum(rows_returned)::BIGINT, 0
  FROM {live} GROUP BY ALL
"""

LIST_SQL = """
WITH facts AS ({facts}),
per_template AS (
  SELECT {keys}, sum(runs)::BIGINT AS runs, sum(finished)::BIGINT AS finished,
    sum(failed)::BIGINT AS failed, sum(cancelled)::BIGINT AS cancelled,
    sum(unfinished)::BIGINT AS unfinished, sum(elapsed_ms) AS elapsed_ms, sum(cpu_ms) AS cpu_ms,
    sum(bytes_scanned)::BIGINT AS bytes_scanned, sum(rows_returned)::BIGINT AS rows_returned,
    list(DISTINCT engine_id ORDER BY engine_id) AS engines,
    max(named) AS named, max(hour_at) AS last_hour_at
  FROM (SELECT {spread} FROM facts) GROUP BY {keys}
)
SELECT *, count(*) OVER () AS total FROM per_template
ORDER BY {order} DESC NULLS LAST, {keys} LIMIT $limit::BIGINT OFFSET $offset::BIGINT
"""

# Names are put together for the templates on the page alone: over all of them that is most of the
# work, a million lists for a month of ten million queries.
NAMES_SQL = """
WITH named AS (
  SELECT template_id, engine_id, unnest({names}) AS name FROM {gold}
    AND list_contains($templates::VARCHAR[], template_id)
  UNION ALL
  SELECT template_id, engine_id, user_name FROM {live}
  WHERE user_name <> '' AND list_contains($templates::VARCHAR[], template_id)
)
SELECT {keys}, list(DISTINCT name ORDER BY name) AS user_names
FROM (SELECT {spread} FROM named) GROUP BY {keys}
"""

QUANTILE_SQL = """
WITH sketches AS NOT MATERIALIZED (
  SELECT template_id, engine_id, unnest(elapsed_sketch) AS part FROM {gold}
    AND list_contains($templates::VARCHAR[], template_id)
), counted AS (
  SELECT template_id, engine_id, part.bucket AS bucket, sum(part.runs) AS runs FROM sketches
  GROUP BY ALL
  UNION ALL
  SELECT template_id, engine_id, {bucket}, count(*) FROM {live}
  WHERE status = 'finished' AND elapsed_ms IS NOT NULL
    AND list_contains($templates::VARCHAR[], template_id) GROUP BY ALL
), added AS (
  SELECT {keys}, bucket, sum(runs) AS runs FROM (SELECT {spread} FROM counted)
  GROUP BY {keys}, bucket
), ranked AS (
  SELECT {keys}, bucket, sum(runs) OVER (PARTITION BY {keys} ORDER BY bucket) AS up_to,
    sum(runs) OVER (PARTITION BY {keys}) AS total FROM added
)
SELECT {keys}, min(bucket) FILTER (up_to >= 0.5 * total) AS p50,
  min(bucket) FILTER (up_to >= 0.95 * total) AS p95
FROM ranked GROUP BY {keys}
"""

TREND_SQL = """
WITH facts AS ({hourly_facts})
SELECT {keys},
  (epoch_us(hour_at) - epoch_us($start::TIMESTAMPTZ)) // $step_us::BIGINT AS step,
  sum(runs)::BIGINT AS runs
FROM (SELECT {spread} FROM facts WHERE list_contains($templates::VARCHAR[], template_id))
GROUP BY ALL
"""

TEMPLATES_SQL = """
SELECT template_id, template, statement_kind, parse_error FROM query_template
WHERE list_contains($templates::VARCHAR[], template_id)
"""


def facts(is_of_user: bool, *, by_hour: bool = False) -> str:
    """Figures of templates and engines: of whole days where there are sums, else by hour."""
    gold = HOURS[is_of_user] if by_hour else GOLD[is_of_user]
    if is_of_user:  # rows of one user have no number of users of their own
        gold = f"(SELECT *, 1 AS users FROM {gold})"  # noqa: S608 constants
    return FACTS.format(gold=gold, live=LIVE)

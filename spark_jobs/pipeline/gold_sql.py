"""The statements of gold, in Spark SQL, over the views that `gold` offers.

Definitions, the same in `lakehouse_core.views`:

- runs: queries submitted in the hour, whatever became of them; failed, cancelled, unfinished apart.
- durations: of finished queries. `p50`, `p95`: exact for their row, linear between neighbours.
  `elapsed_sketch`: how many durations lie in each bucket of 2 % width (bucket b: up to 1.02^b ms),
  so that rows can be added up over hours and engines; a quantile from it is within 1 %.
- '' stands for what an engine did not say (user, source, group, template): keys are never NULL.
- literals: the sample is the 64 values with the smallest MD5, so samples can be joined.
"""

from __future__ import annotations

from string import Template

SKETCH_BASE = 1.02
SMALLEST_MS = 0.001
MOST_NAMES = 50
SAMPLE = 64
MOST_CHARACTERS = 200

# Milliseconds are added up as whole microseconds: the sum does not depend on the order.
COUNTS = """
  count(*) AS runs,
  count_if(status = 'finished') AS finished,
  count_if(status = 'failed') AS failed,
  count_if(status = 'cancelled') AS cancelled,
  count_if(status IN ('queued', 'running')) AS unfinished,
  sum(CAST(round(elapsed_ms * 1000) AS BIGINT)) AS elapsed_us,
  sum(CAST(round(execution_ms * 1000) AS BIGINT)) AS execution_us,
  sum(CAST(round(queued_ms * 1000) AS BIGINT)) AS queued_us,
  sum(CAST(round(cpu_ms * 1000) AS BIGINT)) AS cpu_us,
  sum(bytes_scanned) AS bytes_scanned, sum(rows_scanned) AS rows_scanned,
  sum(rows_returned) AS rows_returned, sum(bytes_written) AS bytes_written,
  sum(spilled_bytes) AS spilled_bytes, max(peak_memory_bytes) AS peak_memory_bytes
"""
ADDED = """
  sum(runs) AS runs, sum(finished) AS finished, sum(failed) AS failed, sum(cancelled) AS cancelled,
  sum(unfinished) AS unfinished, sum(elapsed_us) AS elapsed_us, sum(execution_us) AS execution_us,
  sum(queued_us) AS queued_us, sum(cpu_us) AS cpu_us, sum(bytes_scanned) AS bytes_scanned,
  sum(rows_scanned) AS rows_scanned, sum(rows_returned) AS rows_returned,
  sum(bytes_written) AS bytes_written, sum(spilled_bytes) AS spilled_bytes,
  max(peak_memory_bytes) AS peak_memory_bytes
"""
FIGURES = """
  runs, finished, failed, cancelled, unfinished, elapsed_us / 1000D AS elapsed_ms,
  execution_us / 1000D AS execution_ms, queued_us / 1000D AS queued_ms, cpu_us / 1000D AS cpu_ms,
  bytes_scanned, rows_scanned, rows_returned, bytes_written, spilled_bytes, peak_memory_bytes,
  elapsed_sketch
"""
SKETCH = """
  array_sort(collect_list(CASE WHEN bucket IS NOT NULL
    THEN named_struct('bucket', bucket, 'runs', finished) END)) AS elapsed_sketch
"""
NAMES = Template("""
  size(collect_set(nullif(user_name, ''))) AS users,
  slice(array_sort(collect_set(nullif(user_name, ''))), 1, $most_names) AS user_names
""").substitute(most_names=MOST_NAMES)

_PARTS = {
    "counts": COUNTS,
    "added": ADDED,
    "figures": FIGURES,
    "sketch": SKETCH,
    "names": NAMES,
    "sketch_base": SKETCH_BASE,
    "smallest_ms": SMALLEST_MS,
    "most_names": MOST_NAMES,
    "most_characters": MOST_CHARACTERS,
    "sample": SAMPLE,
}

FACTS = Template("""
SELECT date_trunc('hour', submitted_at) AS hour_at, coalesce(template_id, '') AS template_id,
  engine_id, coalesce(user_name, '') AS user_name, coalesce(source, '') AS source,
  coalesce(workload_group, '') AS workload_group,
  CASE WHEN status = 'finished' AND elapsed_ms IS NOT NULL
    THEN CAST(ceil(ln(greatest(elapsed_ms, $smallest_ms)) / ln($sketch_base)) AS INT)
  END AS bucket,
  $counts
FROM hour_events GROUP BY ALL
""").substitute(_PARTS)

WORKLOAD_HOUR = Template("""
WITH added AS (
  SELECT hour_at, template_id, engine_id, user_name, source, workload_group, $added, $sketch
  FROM facts GROUP BY hour_at, template_id, engine_id, user_name, source, workload_group
)
SELECT hour_at, template_id, engine_id, user_name, source, workload_group, $figures FROM added
""").substitute(_PARTS)

TEMPLATE_HOUR = Template("""
WITH per_bucket AS (
  SELECT hour_at, template_id, engine_id, bucket, $added, collect_set(user_name) AS names
  FROM facts GROUP BY hour_at, template_id, engine_id, bucket
), added AS (
  SELECT hour_at, template_id, engine_id, $added, $sketch,
    array_remove(array_distinct(flatten(collect_list(names))), '') AS names
  FROM per_bucket GROUP BY hour_at, template_id, engine_id
), quantile AS (
  SELECT date_trunc('hour', submitted_at) AS hour_at, coalesce(template_id, '') AS template_id,
    engine_id, percentile(elapsed_ms, array(0.5, 0.95)) AS elapsed,
    percentile(execution_ms, array(0.5, 0.95)) AS execution
  FROM hour_events WHERE status = 'finished' GROUP BY ALL
)
SELECT hour_at, template_id, engine_id, $figures,
  elapsed[0] AS p50_elapsed_ms, elapsed[1] AS p95_elapsed_ms,
  execution[0] AS p50_execution_ms, execution[1] AS p95_execution_ms,
  size(names) AS users, slice(array_sort(names), 1, $most_names) AS user_names
FROM added LEFT JOIN quantile USING (hour_at, template_id, engine_id)
""").substitute(_PARTS)

USAGE_DAY = Template("""
WITH used AS (
  SELECT CAST(submitted_at AS DATE) AS day, shape_id, engine_id,
    coalesce(user_name, '') AS user_name, count(*) AS runs, sum(bytes_scanned) AS bytes_scanned
  FROM day_events WHERE shape_id IS NOT NULL GROUP BY ALL
), parts AS (
  SELECT shape_id, table_name, column_name, role FROM column_usage
  UNION ALL
  SELECT shape_id, explode(tables) AS table_name, '' AS column_name, 'table' AS role
  FROM query_template
)
SELECT day, table_name, column_name, role, engine_id, sum(runs) AS runs,
  sum(bytes_scanned) AS bytes_scanned, $names
FROM used JOIN parts USING (shape_id)
GROUP BY day, table_name, column_name, role, engine_id
""").substitute(_PARTS)

LITERAL_DAY = Template("""
WITH used AS (
  SELECT CAST(submitted_at AS DATE) AS day, text_id, engine_id, count(*) AS runs
  FROM day_events WHERE text_id IS NOT NULL GROUP BY ALL
), conditions AS (
  SELECT used.day, used.engine_id, used.runs, condition.table_name, condition.column_name,
    condition.operator, condition.literal_kind, condition.literals, condition.min_literal,
    condition.max_literal, condition.literal_count
  FROM used JOIN sql_text USING (text_id) LATERAL VIEW explode(predicates) AS condition
), totals AS (
  SELECT day, table_name, column_name, operator, literal_kind, engine_id,
    sum(runs) AS runs, sum(runs * literal_count) AS literals,
    CASE WHEN literal_kind = 'number' THEN min_by(min_literal, try_cast(min_literal AS DOUBLE))
      ELSE min(min_literal) END AS min_literal,
    CASE WHEN literal_kind = 'number' THEN max_by(max_literal, try_cast(max_literal AS DOUBLE))
      ELSE max(max_literal) END AS max_literal
  FROM conditions GROUP BY day, table_name, column_name, operator, literal_kind, engine_id
), one_literal AS (
  SELECT day, table_name, column_name, operator, literal_kind, engine_id,
    left(literal, $most_characters) AS literal, sum(runs) AS runs
  FROM conditions LATERAL VIEW explode(literals) AS literal
  WHERE literal IS NOT NULL
  GROUP BY ALL
), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY day, table_name, column_name, operator, literal_kind, engine_id
    ORDER BY md5(literal)
  ) AS rank
  FROM one_literal
), counted AS (
  SELECT day, table_name, column_name, operator, literal_kind, engine_id,
    count(*) AS distinct_literals,
    array_sort(collect_list(CASE WHEN rank <= $sample
      THEN named_struct('literal', literal, 'runs', runs) END)) AS sample
  FROM ranked GROUP BY day, table_name, column_name, operator, literal_kind, engine_id
)
SELECT totals.day, totals.table_name, totals.column_name, totals.operator, totals.literal_kind,
  totals.engine_id, totals.runs, totals.literals, left(totals.min_literal, $most_characters) AS
  min_literal, left(totals.max_literal, $most_characters) AS max_literal,
  coalesce(counted.distinct_literals, 0) AS distinct_literals, counted.sample
FROM totals LEFT JOIN counted ON totals.day = counted.day
  AND totals.table_name = counted.table_name AND totals.column_name = counted.column_name
  AND totals.operator = counted.operator AND totals.literal_kind = counted.literal_kind
  AND totals.engine_id = counted.engine_id
""").substitute(_PARTS)

COMMIT_HOUR = """
SELECT date_trunc('hour', committed_at) AS hour_at, table_id, count(*) AS commits,
  count_if(operation = 'append') AS appends, count_if(operation = 'replace') AS replaces,
  sum(added_files) AS added_files, sum(deleted_files) AS deleted_files,
  sum(added_rows) AS added_rows, sum(deleted_rows) AS deleted_rows,
  sum(added_bytes) AS added_bytes, size(collect_set(engine_name)) AS writers
FROM hour_commits GROUP BY ALL
"""

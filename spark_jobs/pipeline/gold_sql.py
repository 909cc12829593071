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
FIGURES = """
  count(*) AS runs,
  count_if(status = 'finished') AS finished,
  count_if(status = 'failed') AS failed,
  count_if(status = 'cancelled') AS cancelled,
  count_if(status IN ('queued', 'running')) AS unfinished,
  sum(CAST(round(elapsed_ms * 1000) AS BIGINT)) / 1000D AS elapsed_ms,
  sum(CAST(round(execution_ms * 1000) AS BIGINT)) / 1000D AS execution_ms,
  sum(CAST(round(queued_ms * 1000) AS BIGINT)) / 1000D AS queued_ms,
  sum(CAST(round(cpu_ms * 1000) AS BIGINT)) / 1000D AS cpu_ms,
  sum(bytes_scanned) AS bytes_scanned, sum(rows_scanned) AS rows_scanned,
  sum(rows_returned) AS rows_returned, sum(bytes_written) AS bytes_written,
  sum(spilled_bytes) AS spilled_bytes, max(peak_memory_bytes) AS peak_memory_bytes,
  array_sort(collect_list(CASE WHEN status = 'finished' THEN elapsed_ms END)) AS durations
"""
# Sorted numbers to numbers with their counts: each goes from its first place to the next one's.
SKETCH = """
  transform(marks, (one, n) -> named_struct('bucket', one, 'runs',
    coalesce(array_position(buckets, get(marks, n + 1)), CAST(size(buckets) + 1 AS BIGINT))
      - array_position(buckets, one))) AS elapsed_sketch
"""
MARKED = Template("""
placed AS (
  SELECT *, transform(durations, one -> CAST(
    ceil(ln(greatest(one, $smallest_ms)) / ln($sketch_base)) AS INT)) AS buckets FROM added
), marked AS (SELECT *, array_distinct(buckets) AS marks FROM placed)
""").substitute(smallest_ms=SMALLEST_MS, sketch_base=SKETCH_BASE)


def quantile(values: str, share: float) -> str:
    """SQL of a quantile of a sorted array, linear between neighbours; NULL when it is empty."""
    at = f"({share}D * (size({values}) - 1))"
    low, high = (f"get({values}, CAST({how}({at}) AS INT))" for how in ("floor", "ceil"))
    return f"{low} + ({high} - {low}) * ({at} - floor({at}))"


_PARTS = {
    "figures": FIGURES,
    "sketch": SKETCH,
    "marked": MARKED,
    "most_names": MOST_NAMES,
    "most_characters": MOST_CHARACTERS,
    "sample": SAMPLE,
    "p50_elapsed": quantile("durations", 0.5),
    "p95_elapsed": quantile("durations", 0.95),
    "p50_execution": quantile("executions", 0.5),
    "p95_execution": quantile("executions", 0.95),
}

WORKLOAD_HOUR = Template("""
WITH added AS (
  SELECT date_trunc('hour', submitted_at) AS hour_at, coalesce(template_id, '') AS template_id,
    engine_id, coalesce(user_name, '') AS user_name, coalesce(source, '') AS source,
    coalesce(workload_group, '') AS workload_group, $figures
  FROM hour_events GROUP BY ALL
), $marked
SELECT * EXCEPT (durations, buckets, marks), $sketch FROM marked
""").substitute(_PARTS)

TEMPLATE_HOUR = Template("""
WITH added AS (
  SELECT date_trunc('hour', submitted_at) AS hour_at, coalesce(template_id, '') AS template_id,
    engine_id, $figures,
    array_sort(collect_list(CASE WHEN status = 'finished' THEN execution_ms END)) AS executions,
    collect_set(nullif(user_name, '')) AS names
  FROM hour_events GROUP BY ALL
), $marked
SELECT * EXCEPT (durations, executions, buckets, marks, names), $sketch,
  $p50_elapsed AS p50_elapsed_ms, $p95_elapsed AS p95_elapsed_ms,
  $p50_execution AS p50_execution_ms, $p95_execution AS p95_execution_ms,
  size(names) AS users, slice(array_sort(names), 1, $most_names) AS user_names
FROM marked
""").substitute(_PARTS)

USAGE_DAY = Template("""
WITH used AS (
  SELECT CAST(submitted_at AS DATE) AS day, shape_id, engine_id, count(*) AS runs,
    sum(bytes_scanned) AS bytes_scanned, collect_set(nullif(user_name, '')) AS names
  FROM day_events WHERE shape_id IS NOT NULL GROUP BY ALL
), parts AS (
  SELECT shape_id, table_name, column_name, role FROM column_usage
  UNION ALL
  SELECT shape_id, explode(tables) AS table_name, '' AS column_name, 'table' AS role
  FROM query_template
), added AS (
  SELECT day, table_name, column_name, role, engine_id, sum(runs) AS runs,
    sum(bytes_scanned) AS bytes_scanned, array_distinct(flatten(collect_list(names))) AS names
  FROM used JOIN parts USING (shape_id)
  GROUP BY day, table_name, column_name, role, engine_id
)
SELECT day, table_name, column_name, role, engine_id, runs, bytes_scanned, size(names) AS users,
  slice(array_sort(names), 1, $most_names) AS user_names
FROM added
""").substitute(_PARTS)

LITERAL_DAY = Template("""
WITH used AS (
  SELECT CAST(submitted_at AS DATE) AS day, text_id, engine_id, count(*) AS runs
  FROM day_events WHERE text_id IS NOT NULL GROUP BY ALL
), conditions AS (
  SELECT used.day, used.engine_id, used.runs, condition.*
  FROM used JOIN sql_text USING (text_id) LATERAL VIEW explode(predicates) AS condition
), spread AS (
  SELECT day, table_name, column_name, operator, literal_kind, engine_id, runs, min_literal,
    max_literal, left(literal, $most_characters) AS literal,
    IF(coalesce(place, 0) = 0, runs, 0) AS once, literal_count
  FROM conditions LATERAL VIEW OUTER posexplode(literals) AS place, literal
), per_literal AS (
  SELECT day, table_name, column_name, operator, literal_kind, engine_id, literal,
    sum(runs) AS literal_runs, sum(once) AS runs, sum(once * literal_count) AS literals,
    CASE WHEN literal_kind = 'number' THEN min_by(min_literal, try_cast(min_literal AS DOUBLE))
      ELSE min(min_literal) END AS min_literal,
    CASE WHEN literal_kind = 'number' THEN max_by(max_literal, try_cast(max_literal AS DOUBLE))
      ELSE max(max_literal) END AS max_literal
  FROM spread GROUP BY day, table_name, column_name, operator, literal_kind, engine_id, literal
), ranked AS (
  SELECT *, row_number() OVER (
    PARTITION BY day, table_name, column_name, operator, literal_kind, engine_id
    ORDER BY md5(literal) NULLS LAST
  ) AS rank
  FROM per_literal
)
SELECT day, table_name, column_name, operator, literal_kind, engine_id, sum(runs) AS runs,
  sum(literals) AS literals,
  left(CASE WHEN literal_kind = 'number' THEN min_by(min_literal, try_cast(min_literal AS DOUBLE))
    ELSE min(min_literal) END, $most_characters) AS min_literal,
  left(CASE WHEN literal_kind = 'number' THEN max_by(max_literal, try_cast(max_literal AS DOUBLE))
    ELSE max(max_literal) END, $most_characters) AS max_literal,
  count(literal) AS distinct_literals,
  array_sort(collect_list(CASE WHEN rank <= $sample AND literal IS NOT NULL
    THEN named_struct('literal', literal, 'runs', literal_runs) END)) AS sample
FROM ranked GROUP BY day, table_name, column_name, operator, literal_kind, engine_id
""").substitute(_PARTS)

COMMIT_HOUR = """
SELECT date_trunc('hour', committed_at) AS hour_at, table_id, count(*) AS commits,
  count_if(operation = 'append') AS appends, count_if(operation = 'replace') AS replaces,
  sum(added_files) AS added_files, sum(deleted_files) AS deleted_files,
  sum(added_rows) AS added_rows, sum(deleted_rows) AS deleted_rows,
  sum(added_bytes) AS added_bytes, size(collect_set(engine_name)) AS writers
FROM hour_commits GROUP BY ALL
"""

-- What a session resolved unqualified table names with, so that a text can be understood again later.
ALTER TABLE query_event ADD COLUMN default_catalog VARCHAR;
ALTER TABLE query_event ADD COLUMN default_namespace VARCHAR;

-- Gold of the telemetry pipeline, as its Iceberg tables have it (spark_jobs/pipeline/gold_sql.py has the
-- definitions). '' in a key is what an engine did not say; a row with 0 runs is one that is no longer true.
CREATE TABLE template_hour (
  hour_at TIMESTAMPTZ NOT NULL, template_id VARCHAR NOT NULL, engine_id VARCHAR NOT NULL,
  runs BIGINT NOT NULL, finished BIGINT, failed BIGINT, cancelled BIGINT, unfinished BIGINT,
  elapsed_ms DOUBLE, execution_ms DOUBLE, queued_ms DOUBLE, cpu_ms DOUBLE,
  bytes_scanned BIGINT, rows_scanned BIGINT, rows_returned BIGINT, bytes_written BIGINT, spilled_bytes BIGINT,
  peak_memory_bytes BIGINT, elapsed_sketch STRUCT(bucket INTEGER, runs BIGINT)[],
  p50_elapsed_ms DOUBLE, p95_elapsed_ms DOUBLE, p50_execution_ms DOUBLE, p95_execution_ms DOUBLE,
  users BIGINT, user_names VARCHAR[]
);

CREATE TABLE workload_hour (
  hour_at TIMESTAMPTZ NOT NULL, template_id VARCHAR NOT NULL, engine_id VARCHAR NOT NULL,
  user_name VARCHAR NOT NULL, source VARCHAR NOT NULL, workload_group VARCHAR NOT NULL,
  runs BIGINT NOT NULL, finished BIGINT, failed BIGINT, cancelled BIGINT, unfinished BIGINT,
  elapsed_ms DOUBLE, execution_ms DOUBLE, queued_ms DOUBLE, cpu_ms DOUBLE,
  bytes_scanned BIGINT, rows_scanned BIGINT, rows_returned BIGINT, bytes_written BIGINT, spilled_bytes BIGINT,
  peak_memory_bytes BIGINT, elapsed_sketch STRUCT(bucket INTEGER, runs BIGINT)[]
);

CREATE TABLE usage_day (
  "day" DATE NOT NULL, table_name VARCHAR NOT NULL, column_name VARCHAR NOT NULL, role VARCHAR NOT NULL,
  engine_id VARCHAR NOT NULL, runs BIGINT NOT NULL, bytes_scanned BIGINT, users BIGINT, user_names VARCHAR[]
);

CREATE TABLE literal_day (
  "day" DATE NOT NULL, table_name VARCHAR NOT NULL, column_name VARCHAR NOT NULL, operator VARCHAR NOT NULL,
  literal_kind VARCHAR NOT NULL, engine_id VARCHAR NOT NULL, runs BIGINT NOT NULL, literals BIGINT,
  min_literal VARCHAR, max_literal VARCHAR, distinct_literals BIGINT,
  sample STRUCT(literal VARCHAR, runs BIGINT)[]
);

CREATE TABLE commit_hour (
  hour_at TIMESTAMPTZ NOT NULL, table_id VARCHAR NOT NULL, commits BIGINT NOT NULL, appends BIGINT,
  replaces BIGINT, added_files BIGINT, deleted_files BIGINT, added_rows BIGINT, deleted_rows BIGINT,
  added_bytes BIGINT, writers BIGINT
);

-- Which tables a template reads or writes, also those it takes no column of.
CREATE TABLE template_table (template_id VARCHAR NOT NULL, table_name VARCHAR NOT NULL);

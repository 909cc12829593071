-- The telemetry store of design §4. Keys are enforced by the upsert path (store/tables.py), not by
-- PRIMARY KEY constraints: DuckDB's ART index makes bulk upserts about ten times slower.

CREATE TABLE engine (
  engine_id VARCHAR NOT NULL, engine_type VARCHAR NOT NULL, dialect VARCHAR NOT NULL,
  catalog VARCHAR, url VARCHAR, configured VARCHAR NOT NULL,
  changed_by VARCHAR, reason VARCHAR, changed_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE engine_probe (
  engine_id VARCHAR NOT NULL, probed_at TIMESTAMPTZ NOT NULL, observed VARCHAR NOT NULL,
  detail VARCHAR, version VARCHAR, latency_ms DOUBLE,
  running_queries BIGINT, queued_queries BIGINT
);

CREATE TABLE query_event (
  engine_id VARCHAR NOT NULL, query_id VARCHAR NOT NULL, status VARCHAR NOT NULL,
  submitted_at TIMESTAMPTZ NOT NULL, collected_at TIMESTAMPTZ NOT NULL, revision TINYINT NOT NULL,
  dialect VARCHAR, sql_text VARCHAR, translated_sql VARCHAR, statement_kind VARCHAR, template_id VARCHAR,
  user_name VARCHAR, source VARCHAR, tags VARCHAR[], workload_group VARCHAR,
  started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ,
  queued_ms DOUBLE, planning_ms DOUBLE, execution_ms DOUBLE, elapsed_ms DOUBLE, cpu_ms DOUBLE,
  bytes_scanned BIGINT, rows_scanned BIGINT, rows_returned BIGINT, bytes_written BIGINT, rows_written BIGINT,
  peak_memory_bytes BIGINT, spilled_bytes BIGINT,
  error_class VARCHAR, error_code VARCHAR, error_message VARCHAR,
  snapshot_ids BIGINT[], gateway_id VARCHAR, engine_url VARCHAR, origin VARCHAR NOT NULL
);

CREATE TABLE query_template (
  template_id VARCHAR NOT NULL, dialect VARCHAR NOT NULL, template VARCHAR NOT NULL,
  statement_kind VARCHAR NOT NULL, parse_error VARCHAR, seen_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE column_usage (
  template_id VARCHAR NOT NULL, table_name VARCHAR NOT NULL, column_name VARCHAR NOT NULL, role VARCHAR NOT NULL
);

CREATE TABLE lake_table (
  table_id VARCHAR NOT NULL, catalog VARCHAR NOT NULL, namespace VARCHAR NOT NULL, table_name VARCHAR NOT NULL,
  seen_at TIMESTAMPTZ NOT NULL, table_uuid VARCHAR, metadata_location VARCHAR, current_snapshot_id BIGINT,
  dropped_at TIMESTAMPTZ, error VARCHAR
);

CREATE TABLE table_metrics (
  table_id VARCHAR NOT NULL, snapshot_id BIGINT NOT NULL, metadata_location VARCHAR NOT NULL,
  collected_at TIMESTAMPTZ NOT NULL, format_version TINYINT NOT NULL,
  data_files BIGINT NOT NULL, total_bytes BIGINT NOT NULL, total_rows BIGINT NOT NULL, small_files BIGINT NOT NULL,
  avg_file_bytes DOUBLE, median_file_bytes DOUBLE, file_size_histogram BIGINT[] NOT NULL,
  delete_files BIGINT NOT NULL, position_delete_files BIGINT NOT NULL, equality_delete_files BIGINT NOT NULL,
  deletion_vectors BIGINT NOT NULL, deleted_rows BIGINT NOT NULL, delete_ratio DOUBLE,
  manifests BIGINT NOT NULL, manifest_bytes BIGINT NOT NULL,
  snapshots BIGINT NOT NULL, oldest_snapshot_at TIMESTAMPTZ, latest_snapshot_at TIMESTAMPTZ,
  metadata_bytes BIGINT NOT NULL, partitions BIGINT NOT NULL, skew DOUBLE,
  sort_order VARCHAR, sort_overlap DOUBLE, unsorted_share DOUBLE, amoro_score INTEGER
);

CREATE TABLE snapshot_commit (
  table_id VARCHAR NOT NULL, snapshot_id BIGINT NOT NULL, parent_id BIGINT, committed_at TIMESTAMPTZ NOT NULL,
  operation VARCHAR, added_files BIGINT, deleted_files BIGINT, added_rows BIGINT, deleted_rows BIGINT,
  added_bytes BIGINT, engine_name VARCHAR, app_id VARCHAR, flink_job_id VARCHAR, flink_checkpoint_id BIGINT,
  query_id VARCHAR
);

CREATE TABLE health (
  table_id VARCHAR NOT NULL, assessed_at TIMESTAMPTZ NOT NULL, snapshot_id BIGINT, state VARCHAR NOT NULL,
  score DOUBLE, amoro_score DOUBLE, contributors VARCHAR NOT NULL, reason VARCHAR
);

CREATE TABLE agent_run (
  run_id VARCHAR NOT NULL, agent VARCHAR NOT NULL, started_at TIMESTAMPTZ NOT NULL, ended_at TIMESTAMPTZ,
  outcome VARCHAR NOT NULL, rows_written BIGINT NOT NULL, dead_letters BIGINT NOT NULL, error VARCHAR
);

CREATE TABLE watermark (
  source VARCHAR NOT NULL, position VARCHAR NOT NULL, event_at TIMESTAMPTZ, updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE dead_letter (
  source VARCHAR NOT NULL, letter_id VARCHAR NOT NULL, seen_at TIMESTAMPTZ NOT NULL,
  reason VARCHAR NOT NULL, payload VARCHAR NOT NULL
);

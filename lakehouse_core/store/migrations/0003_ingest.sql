-- What is pushed to us. A query is reported by more than one observer: `reporter` says who wrote a row,
-- `known_by` from whom each value of a row comes that was put together from several reports (store/fold.py).
ALTER TABLE query_event ADD COLUMN reporter VARCHAR;
ALTER TABLE query_event ADD COLUMN known_by VARCHAR;

-- Iceberg metrics reports, as its REST specification has them. Files and bytes are those the scan planned to
-- read; a report knows how many files were skipped, not their bytes.
CREATE TABLE scan_report (
  report_id VARCHAR NOT NULL, received_at TIMESTAMPTZ NOT NULL, table_id VARCHAR NOT NULL,
  snapshot_id BIGINT, schema_id INTEGER, filter_json VARCHAR,
  projected_ids INTEGER[], projected_columns VARCHAR[], planning_ms DOUBLE,
  scanned_data_files BIGINT, scanned_delete_files BIGINT, scanned_bytes BIGINT, scanned_delete_bytes BIGINT,
  skipped_data_files BIGINT, skipped_delete_files BIGINT,
  total_data_manifests BIGINT, scanned_data_manifests BIGINT, skipped_data_manifests BIGINT,
  total_delete_manifests BIGINT, scanned_delete_manifests BIGINT, skipped_delete_manifests BIGINT,
  indexed_delete_files BIGINT, equality_delete_files BIGINT, position_delete_files BIGINT,
  deletion_vectors BIGINT,
  engine_name VARCHAR, engine_version VARCHAR, app_id VARCHAR, metadata_json VARCHAR
);

CREATE TABLE commit_report (
  report_id VARCHAR NOT NULL, received_at TIMESTAMPTZ NOT NULL, table_id VARCHAR NOT NULL,
  snapshot_id BIGINT NOT NULL, sequence_number BIGINT NOT NULL, operation VARCHAR NOT NULL,
  duration_ms DOUBLE, attempts BIGINT,
  added_data_files BIGINT, removed_data_files BIGINT, total_data_files BIGINT,
  added_delete_files BIGINT, removed_delete_files BIGINT, total_delete_files BIGINT,
  added_deletion_vectors BIGINT, removed_deletion_vectors BIGINT,
  added_rows BIGINT, removed_rows BIGINT, total_rows BIGINT,
  added_bytes BIGINT, removed_bytes BIGINT, total_bytes BIGINT,
  manifests_created BIGINT, manifests_replaced BIGINT, manifests_kept BIGINT,
  manifest_entries_processed BIGINT,
  engine_name VARCHAR, engine_version VARCHAR, app_id VARCHAR, metadata_json VARCHAR
);

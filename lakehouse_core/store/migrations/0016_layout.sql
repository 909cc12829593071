-- What the layout advisor said of a table: one row per time it looked. `workload` holds the conditions it replayed,
-- so that the very same are planned against the files after the rewrite; structures are JSON.
CREATE TABLE layout_advice (
  advice_id VARCHAR NOT NULL, table_id VARCHAR NOT NULL, advised_at TIMESTAMPTZ NOT NULL, snapshot_id BIGINT,
  layout VARCHAR, reason VARCHAR NOT NULL, target_bytes BIGINT NOT NULL, advice VARCHAR NOT NULL,
  workload VARCHAR NOT NULL
);

-- What a rewrite brought: each template on each engine planned against the files before and after, per run.
CREATE TABLE layout_proof (
  action_id VARCHAR NOT NULL, template_id VARCHAR NOT NULL, engine_id VARCHAR NOT NULL, proven_at TIMESTAMPTZ NOT NULL,
  runs BIGINT NOT NULL, bytes_before DOUBLE NOT NULL, files_before DOUBLE NOT NULL,
  bytes_predicted DOUBLE, files_predicted DOUBLE, bytes_after DOUBLE NOT NULL, files_after DOUBLE NOT NULL
);

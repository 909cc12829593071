-- Flink. A job is a query_event of its own (query_id = job id, no SQL text). These tables hold what only a
-- long running job has. Records and bytes are those exchanged between the job's tasks: Flink does not say
-- what a source read or a sink wrote.
CREATE TABLE flink_job (
  engine_id VARCHAR NOT NULL, job_id VARCHAR NOT NULL, seen_at TIMESTAMPTZ NOT NULL, job_name VARCHAR,
  state VARCHAR NOT NULL, job_type VARCHAR, slots BIGINT, parallelism BIGINT,
  checkpoint_interval_ms BIGINT, checkpoint_mode VARCHAR,
  checkpoints_completed BIGINT, checkpoints_failed BIGINT, checkpoints_restored BIGINT,
  exchanged_records BIGINT, exchanged_bytes BIGINT
);

-- A stretch of time in which a job held a constant number of slots: slots x time is what it is priced by.
-- `ended_at` moves on while the job runs.
CREATE TABLE flink_slot_time (
  engine_id VARCHAR NOT NULL, job_id VARCHAR NOT NULL, started_at TIMESTAMPTZ NOT NULL,
  ended_at TIMESTAMPTZ NOT NULL, slots BIGINT NOT NULL
);

-- Flink remembers the last ten checkpoints of a job; flink_job has the counts of all of them.
CREATE TABLE flink_checkpoint (
  engine_id VARCHAR NOT NULL, job_id VARCHAR NOT NULL, checkpoint_id BIGINT NOT NULL,
  revision TINYINT NOT NULL, status VARCHAR NOT NULL, triggered_at TIMESTAMPTZ NOT NULL,
  ended_at TIMESTAMPTZ, duration_ms DOUBLE, state_bytes BIGINT, checkpointed_bytes BIGINT,
  is_savepoint BOOLEAN NOT NULL, checkpoint_type VARCHAR, failure VARCHAR
);

-- Whole days of `template_hour`, summed up by the rollup agent: the workloads of a month read a twenty-fourth of
-- the rows. `users` is the most of an hour, `user_names` all of the hours' names, as the hours themselves add up.
CREATE TABLE template_day (
  day_at TIMESTAMPTZ NOT NULL, template_id VARCHAR NOT NULL, engine_id VARCHAR NOT NULL,
  runs BIGINT NOT NULL, finished BIGINT, failed BIGINT, cancelled BIGINT, unfinished BIGINT,
  elapsed_ms DOUBLE, cpu_ms DOUBLE, bytes_scanned BIGINT, rows_returned BIGINT,
  elapsed_sketch STRUCT(bucket INTEGER, runs BIGINT)[], users BIGINT, user_names VARCHAR[],
  last_hour_at TIMESTAMPTZ
);

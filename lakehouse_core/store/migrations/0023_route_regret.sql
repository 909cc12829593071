-- What routing cost above other choices, as the route agent last measured it: one row per measure (cost, seconds) and
-- baseline (best_single, oracle). `window_spec` is what it looked at.
CREATE TABLE route_regret (
  measure VARCHAR NOT NULL, baseline VARCHAR NOT NULL, measured_at TIMESTAMPTZ NOT NULL, window_spec VARCHAR NOT NULL,
  unit VARCHAR NOT NULL, engine_id VARCHAR, actual DOUBLE NOT NULL, total DOUBLE NOT NULL, runs BIGINT NOT NULL,
  compared_runs BIGINT NOT NULL
);

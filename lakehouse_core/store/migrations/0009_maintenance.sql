-- A recommendation and the action it becomes: one row, from proposed to proven. Structures are JSON.
CREATE TABLE action (
  action_id VARCHAR NOT NULL, dedupe_key VARCHAR NOT NULL, revision BIGINT NOT NULL, kind VARCHAR NOT NULL,
  table_id VARCHAR NOT NULL, state VARCHAR NOT NULL, title VARCHAR NOT NULL, reason VARCHAR NOT NULL,
  evidence VARCHAR NOT NULL, evidence_at TIMESTAMPTZ NOT NULL, predicted VARCHAR NOT NULL, risk VARCHAR NOT NULL,
  plan VARCHAR NOT NULL, plan_hash VARCHAR NOT NULL, gain_usd_month DECIMAL(18, 6), cost_usd DECIMAL(18, 6),
  priority DOUBLE NOT NULL, proposed_by VARCHAR NOT NULL, proposed_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL, expires_at TIMESTAMPTZ NOT NULL, decided_by VARCHAR, decided_at TIMESTAMPTZ,
  decision_reason VARCHAR, snoozed_until TIMESTAMPTZ, not_before TIMESTAMPTZ, attempts INTEGER NOT NULL,
  operation_id VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, result_snapshot_id BIGINT,
  realised VARCHAR NOT NULL, verification VARCHAR NOT NULL, explanation VARCHAR
);

-- What somebody wants to happen to an action (`decide`, store/gate.py); the agents process answers.
CREATE TABLE decision_request (
  request_id VARCHAR NOT NULL, asked_at TIMESTAMPTZ NOT NULL, action_id VARCHAR NOT NULL, verb VARCHAR NOT NULL,
  actor VARCHAR NOT NULL, reason VARCHAR, plan_hash VARCHAR NOT NULL, confirmation VARCHAR, until TIMESTAMPTZ,
  state VARCHAR NOT NULL, answered_at TIMESTAMPTZ, answer VARCHAR
);

-- Every step of every action, each row with the hash of the one before it.
CREATE TABLE audit (
  seq BIGINT NOT NULL, noted_at TIMESTAMPTZ NOT NULL, actor VARCHAR NOT NULL, verb VARCHAR NOT NULL,
  action_id VARCHAR NOT NULL, detail VARCHAR NOT NULL, prev_hash VARCHAR NOT NULL, hash VARCHAR NOT NULL
);

-- Who may change a table now; the token grows with every lease of the table.
CREATE TABLE table_lease (
  table_id VARCHAR NOT NULL, token BIGINT NOT NULL, holder VARCHAR NOT NULL, action_id VARCHAR NOT NULL,
  acquired_at TIMESTAMPTZ NOT NULL, expires_at TIMESTAMPTZ NOT NULL, released_at TIMESTAMPTZ
);

-- What an action brought, as the queries after it show.
CREATE TABLE savings (
  action_id VARCHAR NOT NULL, engine_id VARCHAR NOT NULL, template_id VARCHAR NOT NULL,
  measured_at TIMESTAMPTZ NOT NULL, runs_before BIGINT NOT NULL, runs_after BIGINT NOT NULL,
  bytes_per_run_before DOUBLE, bytes_per_run_after DOUBLE, ms_per_run_before DOUBLE, ms_per_run_after DOUBLE,
  usd_month DECIMAL(18, 6)
);

-- What the schedule knows beyond single runs. One row per job: its circuit, and when it is tried again.
CREATE TABLE agent_state (
  agent VARCHAR NOT NULL, circuit VARCHAR NOT NULL, failures INTEGER NOT NULL, since TIMESTAMPTZ NOT NULL,
  reason VARCHAR, retry_at TIMESTAMPTZ, abandoned INTEGER NOT NULL, updated_at TIMESTAMPTZ NOT NULL
);

-- Runs that somebody asked for (`run agent <name>`, store/gate.py); the schedule takes and answers them.
CREATE TABLE agent_request (
  request_id VARCHAR NOT NULL, agent VARCHAR NOT NULL, asked_at TIMESTAMPTZ NOT NULL, state VARCHAR NOT NULL,
  taken_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, run_id VARCHAR, answer VARCHAR
);

-- How far the present run of a job is; `total` is NULL where nobody can know.
CREATE TABLE agent_progress (
  agent VARCHAR NOT NULL, done BIGINT NOT NULL, total BIGINT, unit VARCHAR NOT NULL, updated_at TIMESTAMPTZ NOT NULL
);

-- Queries per hour, engine, status, origin and class of duration (views/hourly.py), for windows of many days.
CREATE TABLE query_hour (
  hour_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL, status VARCHAR NOT NULL, origin VARCHAR NOT NULL,
  duration_class SMALLINT NOT NULL, queries BIGINT NOT NULL, bytes_scanned BIGINT
);

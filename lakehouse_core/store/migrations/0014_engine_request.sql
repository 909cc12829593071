-- The state somebody wants an engine to be in (`set engine`, store/gate.py); the agents process answers.
CREATE TABLE engine_request (
  request_id VARCHAR NOT NULL, asked_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL,
  configured VARCHAR NOT NULL, actor VARCHAR NOT NULL, reason VARCHAR, state VARCHAR NOT NULL,
  answered_at TIMESTAMPTZ, answer VARCHAR
);

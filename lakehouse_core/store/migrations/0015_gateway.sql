-- What the gateway did with each statement it was given, also with those that no engine saw. The query itself is a
-- query_event (same gateway_id) as soon as an engine has it; `trace` is the router's decision, step by step, as JSON.
CREATE TABLE routing_decision (
  gateway_id VARCHAR NOT NULL, submitted_at TIMESTAMPTZ NOT NULL, ended_at TIMESTAMPTZ NOT NULL,
  protocol VARCHAR NOT NULL, endpoint VARCHAR, user_name VARCHAR, role VARCHAR, status VARCHAR NOT NULL,
  cluster_group VARCHAR, member VARCHAR, engine_id VARCHAR, query_id VARCHAR, attempts INTEGER NOT NULL,
  template_id VARCHAR, source_dialect VARCHAR NOT NULL, target_dialect VARCHAR,
  translation VARCHAR, translation_reason VARCHAR, denial VARCHAR, denial_rule VARCHAR, trace VARCHAR NOT NULL,
  decision_ms DOUBLE, queue_ms DOUBLE, engine_ms DOUBLE, fetch_ms DOUBLE,
  rows_sent BIGINT, bytes_sent BIGINT, estimated_files BIGINT, estimated_bytes BIGINT,
  estimated_cost_usd DECIMAL(38, 9)
);

-- One entry per statement, chained by hashes within the life of one gateway process (`chain`).
CREATE TABLE query_audit (
  chain VARCHAR NOT NULL, seq BIGINT NOT NULL, noted_at TIMESTAMPTZ NOT NULL, actor VARCHAR NOT NULL,
  verb VARCHAR NOT NULL, action_id VARCHAR NOT NULL, detail VARCHAR NOT NULL, prev_hash VARCHAR NOT NULL,
  hash VARCHAR NOT NULL
);

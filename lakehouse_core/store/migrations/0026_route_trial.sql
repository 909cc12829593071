-- A template that would be cheaper on another engine: proposed, decided, tried with a growing share of its statements,
-- adopted or taken back. `figures` is JSON: what was measured before, and since the present share began.
CREATE TABLE route_trial (
  trial_id VARCHAR NOT NULL, revision BIGINT NOT NULL, template_id VARCHAR NOT NULL, from_engine VARCHAR NOT NULL,
  to_engine VARCHAR NOT NULL, state VARCHAR NOT NULL, share INTEGER NOT NULL, title VARCHAR NOT NULL,
  risk VARCHAR NOT NULL, currency VARCHAR NOT NULL, gain_usd_month DECIMAL(18, 6), gain_low DECIMAL(18, 6),
  gain_high DECIMAL(18, 6), runs BIGINT NOT NULL, figures VARCHAR NOT NULL, plan_hash VARCHAR NOT NULL,
  proposed_at TIMESTAMPTZ NOT NULL, evidence_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL, decided_by VARCHAR, decided_at TIMESTAMPTZ, decision_reason VARCHAR,
  snoozed_until TIMESTAMPTZ, step_at TIMESTAMPTZ, explanation VARCHAR
);

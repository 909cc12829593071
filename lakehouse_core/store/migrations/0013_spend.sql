-- Days of `cost_hour`, for windows of many days. A day whose total is not that of its charges is not read from here
-- but from the hours (finops/spend.py); `cost_day_total` tells which ones are.
CREATE TABLE cost_day (
  day_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL, resource VARCHAR NOT NULL, meter VARCHAR NOT NULL,
  kind VARCHAR NOT NULL, label_id VARCHAR NOT NULL, currency VARCHAR NOT NULL, basis VARCHAR NOT NULL,
  is_provisional BOOLEAN, queries BIGINT, failed BIGINT, execution_us BIGINT,
  list_cost DECIMAL(38,9), contracted_cost DECIMAL(38,9), cost DECIMAL(38,9), failed_cost DECIMAL(38,9)
);
CREATE TABLE cost_day_total (
  day_at TIMESTAMPTZ NOT NULL, currency VARCHAR NOT NULL, cost DECIMAL(38,9) NOT NULL, rolled_at TIMESTAMPTZ NOT NULL
);

-- What was told about budgets and anomalies, once each: the id says about what, when and which limit.
-- `who` is JSON, the largest contributors first; `delivered` is JSON, channel → when, or why not yet.
CREATE TABLE alert (
  alert_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, subject VARCHAR NOT NULL, scope VARCHAR NOT NULL,
  title VARCHAR NOT NULL, body VARCHAR NOT NULL, since TIMESTAMPTZ NOT NULL, raised_at TIMESTAMPTZ NOT NULL,
  amount DECIMAL(38,9) NOT NULL, expected DECIMAL(38,9) NOT NULL, currency VARCHAR NOT NULL,
  who VARCHAR NOT NULL, channels VARCHAR[] NOT NULL, delivered VARCHAR NOT NULL, attempts INTEGER NOT NULL,
  next_try_at TIMESTAMPTZ, settled BOOLEAN NOT NULL
);

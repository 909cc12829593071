-- Amounts are 128 bits wide, and bit-packed ones of that width take thirty times as long to read as plain ones: sums
-- over millions of split hours and days, which every cost page and every check of the balance makes, were mostly that.
CREATE TABLE cost_hour_plain (
  hour_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL, resource VARCHAR NOT NULL, meter VARCHAR NOT NULL,
  price_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, label_id VARCHAR NOT NULL, reason VARCHAR NOT NULL,
  currency VARCHAR NOT NULL, basis VARCHAR, is_provisional BOOLEAN, runs BIGINT NOT NULL, queries BIGINT,
  failed BIGINT, execution_us BIGINT, list_cost DECIMAL(38,9) USING COMPRESSION uncompressed,
  contracted_cost DECIMAL(38,9) USING COMPRESSION uncompressed, cost DECIMAL(38,9) USING COMPRESSION uncompressed,
  failed_cost DECIMAL(38,9) USING COMPRESSION uncompressed, split_at TIMESTAMPTZ
);
INSERT INTO cost_hour_plain BY NAME FROM cost_hour;
DROP TABLE cost_hour;
ALTER TABLE cost_hour_plain RENAME TO cost_hour;

CREATE TABLE cost_day_plain (
  day_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL, resource VARCHAR NOT NULL, meter VARCHAR NOT NULL,
  kind VARCHAR NOT NULL, label_id VARCHAR NOT NULL, currency VARCHAR NOT NULL, basis VARCHAR NOT NULL,
  is_provisional BOOLEAN, queries BIGINT, failed BIGINT, execution_us BIGINT,
  list_cost DECIMAL(38,9) USING COMPRESSION uncompressed,
  contracted_cost DECIMAL(38,9) USING COMPRESSION uncompressed, cost DECIMAL(38,9) USING COMPRESSION uncompressed,
  failed_cost DECIMAL(38,9) USING COMPRESSION uncompressed
);
INSERT INTO cost_day_plain BY NAME FROM cost_day;
DROP TABLE cost_day;
ALTER TABLE cost_day_plain RENAME TO cost_day;

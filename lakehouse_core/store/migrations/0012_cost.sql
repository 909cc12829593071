-- The price book with its history. `price_id` is name and start; a price that changes gets a new row, and the old
-- one an end. `engine` is an engine's id, else `engine_type` a type of engines, else it is for all. Rates are per
-- unit (cluster_hour, core_hour, tb_scanned, credit, slot_hour, gb_month, thousand_requests); `sku` tells storage
-- classes, request classes and editions apart.
CREATE TABLE price (
  price_id VARCHAR NOT NULL, name VARCHAR NOT NULL, engine VARCHAR, engine_type VARCHAR, unit VARCHAR NOT NULL,
  sku VARCHAR, list_rate DECIMAL(38,12) NOT NULL, contracted_rate DECIMAL(38,12) NOT NULL,
  effective_rate DECIMAL(38,12) NOT NULL, currency VARCHAR NOT NULL, minimum_bytes BIGINT,
  failed_is_free BOOLEAN NOT NULL, valid_from TIMESTAMPTZ NOT NULL, valid_to TIMESTAMPTZ, origin VARCHAR NOT NULL,
  source VARCHAR, source_on DATE, detail VARCHAR, known_at TIMESTAMPTZ NOT NULL
);

-- Lines of imported bills. `line_id` is the hash of what a line says, so a bill may be imported twice. `reason`: why
-- its amount is not split over queries. A line that a later import replaces has `superseded_by`.
CREATE TABLE bill_line (
  line_id VARCHAR NOT NULL, import_id VARCHAR NOT NULL, file_name VARCHAR NOT NULL, line_no BIGINT NOT NULL,
  engine_id VARCHAR NOT NULL, said_engine VARCHAR, resource VARCHAR NOT NULL, meter VARCHAR NOT NULL,
  period_start TIMESTAMPTZ NOT NULL, period_end TIMESTAMPTZ NOT NULL, unit VARCHAR, quantity DECIMAL(38,9),
  list_cost DECIMAL(38,9), contracted_cost DECIMAL(38,9), cost DECIMAL(38,9) NOT NULL, currency VARCHAR NOT NULL,
  charge_category VARCHAR, reason VARCHAR, superseded_by VARCHAR, imported_at TIMESTAMPTZ NOT NULL
);

-- What an hour of an engine cost before it is split: metered quantity × rate, or a line of a bill. `method` says how
-- it is split: seconds (of execution), cpu, bytes, query (the resource is one query), resource (not split),
-- none (unallocated, with `reason`). `basis`: billed, list (the engine's own meter), modelled (measured by us),
-- unpriced, pending (not metered yet). What of it was used: `attributed` is the part of the quantity the engine says
-- its queries used; else `capacity` is what there was to use (microseconds up, core microseconds, bytes), and what the
-- queries did not use is idle or unallocated; else all of it was used.
CREATE TABLE charge (
  hour_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL, resource VARCHAR NOT NULL, meter VARCHAR NOT NULL,
  price_id VARCHAR NOT NULL, unit VARCHAR NOT NULL, quantity DECIMAL(38,9) NOT NULL, attributed DECIMAL(38,9),
  capacity BIGINT, method VARCHAR NOT NULL, list_cost DECIMAL(38,9) NOT NULL, contracted_cost DECIMAL(38,9) NOT NULL,
  cost DECIMAL(38,9) NOT NULL, currency VARCHAR NOT NULL, basis VARCHAR NOT NULL, source VARCHAR NOT NULL,
  minimum_bytes BIGINT NOT NULL, failed_is_free BOOLEAN NOT NULL, is_provisional BOOLEAN NOT NULL,
  reason VARCHAR, computed_at TIMESTAMPTZ NOT NULL
);

-- Who or what money can be asked of: all that rules for workloads may look at. Its id is a hash of the rest. Rules are
-- applied to these few rows when costs are read: new rules regroup all history, and no hour is computed anew.
CREATE TABLE cost_label (
  label_id VARCHAR NOT NULL, engine_id VARCHAR NOT NULL, template_id VARCHAR NOT NULL, user_name VARCHAR NOT NULL,
  source VARCHAR NOT NULL, workload_group VARCHAR NOT NULL, statement_kind VARCHAR NOT NULL, tags VARCHAR[] NOT NULL
);

-- Charges, split: per hour, engine and charge one row per label (kind query), and what is no query's (kind resource,
-- idle, unallocated, with label ''). Their costs add up to those of `charge`, to the last digit. A query is counted in
-- the hour it started in, once. Rows that are no longer true have 0 runs and no cost. `split_at` moves when a row
-- changes.
CREATE TABLE cost_hour (
  hour_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL, resource VARCHAR NOT NULL, meter VARCHAR NOT NULL,
  price_id VARCHAR NOT NULL, kind VARCHAR NOT NULL, label_id VARCHAR NOT NULL, reason VARCHAR NOT NULL,
  currency VARCHAR NOT NULL, basis VARCHAR, is_provisional BOOLEAN, runs BIGINT NOT NULL, queries BIGINT,
  failed BIGINT, execution_us BIGINT, list_cost DECIMAL(38,9), contracted_cost DECIMAL(38,9), cost DECIMAL(38,9),
  failed_cost DECIMAL(38,9), split_at TIMESTAMPTZ
);

-- The dearest queries of each engine and hour; all of them are in the lake (ops.cost_allocation).
CREATE TABLE cost_query (
  hour_at TIMESTAMPTZ NOT NULL, engine_id VARCHAR NOT NULL, query_id VARCHAR NOT NULL, currency VARCHAR NOT NULL,
  label_id VARCHAR, status VARCHAR, basis VARCHAR, runs BIGINT NOT NULL, execution_us BIGINT, cost DECIMAL(38,9)
);

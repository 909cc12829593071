-- What an engine was metered for. One row per engine, resource (a warehouse, cluster, workgroup, reservation),
-- meter (what was used: compute, cloud_services, acceleration, scan, uptime, storage, requests), hour and unit
-- (credit, hour, core_second, byte, slot_hour, dpu_hour, request). quantity × rate = charge, for every engine.
-- `attributed`: the part of the quantity that the engine itself says its queries used; the rest was idle.
-- `source`: engine (it told), measured (by us), imported (from a bill).
CREATE TABLE metering (
  engine_id VARCHAR NOT NULL, resource VARCHAR NOT NULL, meter VARCHAR NOT NULL, hour TIMESTAMPTZ NOT NULL,
  unit VARCHAR NOT NULL, quantity DECIMAL(38,9) NOT NULL, attributed DECIMAL(38,9), source VARCHAR NOT NULL,
  collected_at TIMESTAMPTZ NOT NULL
);

-- What an engine itself charges one query with. Not every query has a row: Snowflake leaves out very short ones.
CREATE TABLE query_attribution (
  engine_id VARCHAR NOT NULL, query_id VARCHAR NOT NULL, resource VARCHAR,
  credits DECIMAL(38,9) NOT NULL, acceleration_credits DECIMAL(38,9),
  parent_query_id VARCHAR, root_query_id VARCHAR, started_at TIMESTAMPTZ NOT NULL, ended_at TIMESTAMPTZ,
  collected_at TIMESTAMPTZ NOT NULL
);

-- Tables and columns a query read or wrote, as the engine logged it (views resolved). A table of which no column
-- is named has the empty column.
CREATE TABLE query_access (
  engine_id VARCHAR NOT NULL, query_id VARCHAR NOT NULL, table_name VARCHAR NOT NULL, column_name VARCHAR NOT NULL,
  access VARCHAR NOT NULL, accessed_at TIMESTAMPTZ NOT NULL
);

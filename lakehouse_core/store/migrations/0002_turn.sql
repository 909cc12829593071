-- One row per table. An upsert starts by updating its table's row: of two upserts that overlap, DuckDB
-- refuses the second with a conflict, and it is tried again. Without it two transactions could insert the
-- same key, because keys are no constraints here.
CREATE TABLE store_turn (table_name VARCHAR NOT NULL, turn BIGINT NOT NULL);

-- Statements that people keep by a name (`save query`, store/gate.py).
CREATE TABLE saved_query (
  query_id VARCHAR NOT NULL, saved_at TIMESTAMPTZ NOT NULL, saved_by VARCHAR NOT NULL, name VARCHAR NOT NULL,
  sql_text VARCHAR NOT NULL
);

-- Why a template's texts are not understood, as a class that can be counted (parse_error says it in words).
ALTER TABLE query_template ADD COLUMN parse_reason VARCHAR;

-- What filter columns are compared with: a bounded sketch per template, column, role and operator, one row per
-- cell (lakehouse_core/sql/sketch.py). Of two rows of a cell the one with the greater revision stays, so it does
-- not matter in which order, nor how often, queries are collected.
CREATE TABLE column_literal (
  template_id VARCHAR NOT NULL, table_name VARCHAR NOT NULL, column_name VARCHAR NOT NULL, role VARCHAR NOT NULL,
  operator VARCHAR NOT NULL, literal_kind VARCHAR NOT NULL, part VARCHAR NOT NULL, bucket SMALLINT NOT NULL,
  revision BIGINT NOT NULL, literals VARCHAR[], literal_count BIGINT, is_complete BOOLEAN,
  function VARCHAR, is_negated BOOLEAN, is_conjunct BOOLEAN, last_used_on DATE
);

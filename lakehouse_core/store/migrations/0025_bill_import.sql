-- Imports of bills: how many lines a file had, and which were refused and why (JSON, the first of them). Their lines
-- are in `bill_line`.
CREATE TABLE bill_import (
  import_id VARCHAR NOT NULL, file_name VARCHAR NOT NULL, imported_at TIMESTAMPTZ NOT NULL, lines BIGINT NOT NULL,
  new_lines BIGINT NOT NULL, superseded BIGINT NOT NULL, refused_lines BIGINT NOT NULL, refused VARCHAR NOT NULL
);

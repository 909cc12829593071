-- What a text reads depends on the defaults its session completed names with: one text under two schemas is one
-- template with two sets of tables. Rows from before are given to the defaults their template ran under; of several,
-- to those whose name they begin with, or to all when the text names the table in full.
CREATE TEMP TABLE ran_under AS
SELECT template_id, coalesce(default_catalog, '') AS default_catalog,
  coalesce(default_namespace, '') AS default_namespace,
  count(*) OVER (PARTITION BY template_id) AS variants
FROM query_event WHERE template_id IS NOT NULL GROUP BY 1, 2, 3;

ALTER TABLE column_usage RENAME TO column_usage_before;
CREATE TABLE column_usage (
  template_id VARCHAR NOT NULL, default_catalog VARCHAR NOT NULL, default_namespace VARCHAR NOT NULL,
  table_name VARCHAR NOT NULL, column_name VARCHAR NOT NULL, role VARCHAR NOT NULL
);
INSERT INTO column_usage BY NAME
SELECT u.template_id, coalesce(r.default_catalog, '') AS default_catalog,
  coalesce(r.default_namespace, '') AS default_namespace, u.table_name, u.column_name, u.role
FROM column_usage_before u LEFT JOIN ran_under r USING (template_id) LEFT JOIN query_template q USING (template_id)
WHERE r.template_id IS NULL OR r.variants = 1
  OR starts_with(u.table_name, concat_ws('.', nullif(r.default_catalog, ''), nullif(r.default_namespace, '')) || '.')
  OR contains(q.template, array_to_string(string_split(u.table_name, '.')[-2:], '.'));
DROP TABLE column_usage_before;

ALTER TABLE template_table RENAME TO template_table_before;
CREATE TABLE template_table (
  template_id VARCHAR NOT NULL, default_catalog VARCHAR NOT NULL, default_namespace VARCHAR NOT NULL,
  table_name VARCHAR NOT NULL
);
INSERT INTO template_table BY NAME
SELECT t.template_id, coalesce(r.default_catalog, '') AS default_catalog,
  coalesce(r.default_namespace, '') AS default_namespace, t.table_name
FROM template_table_before t LEFT JOIN ran_under r USING (template_id) LEFT JOIN query_template q USING (template_id)
WHERE r.template_id IS NULL OR r.variants = 1
  OR starts_with(t.table_name, concat_ws('.', nullif(r.default_catalog, ''), nullif(r.default_namespace, '')) || '.')
  OR contains(q.template, array_to_string(string_split(t.table_name, '.')[-2:], '.'))
UNION
SELECT template_id, default_catalog, default_namespace, table_name FROM column_usage;
DROP TABLE template_table_before;
DROP TABLE ran_under;

-- The columns of a table's current schema, in its order: they decide what an unqualified column belongs to.
ALTER TABLE lake_table ADD COLUMN columns VARCHAR[];

-- What clients ask for names by, made of three tables: lake_catalogs(catalog), lake_schemas(catalog, schema),
-- lake_columns(catalog, schema, table, column, position, type, jdbc_type); a table without columns is not known.
CREATE VIEW lake_tables AS SELECT DISTINCT "catalog", "schema", "table" FROM lake_columns;

CREATE VIEW "information_schema.schemata" AS
SELECT "catalog" AS catalog_name, "schema" AS schema_name FROM lake_schemas;

CREATE VIEW "information_schema.tables" AS
SELECT "catalog" AS table_catalog, "schema" AS table_schema, "table" AS table_name,
  'BASE TABLE' AS table_type
FROM lake_tables;

CREATE VIEW "information_schema.columns" AS
SELECT "catalog" AS table_catalog, "schema" AS table_schema, "table" AS table_name,
  "column" AS column_name, position AS ordinal_position, NULL::VARCHAR AS column_default,
  'YES' AS is_nullable, "type" AS data_type, NULL::VARCHAR AS "comment", NULL::VARCHAR AS extra_info
FROM lake_columns;

CREATE VIEW "information_schema.views" AS
SELECT '' AS table_catalog, '' AS table_schema, '' AS table_name, '' AS view_definition WHERE false;
CREATE VIEW "information_schema.roles" AS SELECT '' AS role_name WHERE false;
CREATE VIEW "information_schema.enabled_roles" AS SELECT '' AS role_name WHERE false;
CREATE VIEW "information_schema.applicable_roles" AS
SELECT '' AS grantee, '' AS grantee_type, '' AS role_name, '' AS is_grantable WHERE false;
CREATE VIEW "information_schema.table_privileges" AS
SELECT '' AS grantor, '' AS grantor_type, '' AS grantee, '' AS grantee_type, '' AS table_catalog,
  '' AS table_schema, '' AS table_name, '' AS privilege_type, '' AS is_grantable, '' AS with_hierarchy
WHERE false;

CREATE VIEW "metadata.catalogs" AS
SELECT "catalog" AS catalog_name, "catalog" AS connector_id, 'iceberg' AS connector_name FROM lake_catalogs;
CREATE VIEW "metadata.table_comments" AS
SELECT "catalog" AS catalog_name, "schema" AS schema_name, "table" AS table_name, NULL::VARCHAR AS "comment"
FROM lake_tables;
CREATE VIEW "metadata.materialized_views" AS
SELECT '' AS catalog_name, '' AS schema_name, '' AS "name", '' AS storage_catalog, '' AS storage_schema,
  '' AS storage_table, '' AS freshness, NULL::TIMESTAMPTZ AS last_fresh_time, NULL::VARCHAR AS "comment",
  '' AS definition
WHERE false;

CREATE VIEW "jdbc.catalogs" AS SELECT "catalog" AS table_cat FROM lake_catalogs;
CREATE VIEW "jdbc.schemas" AS SELECT "schema" AS table_schem, "catalog" AS table_catalog FROM lake_schemas;
CREATE VIEW "jdbc.table_types" AS SELECT unnest(['TABLE', 'VIEW']) AS table_type;
CREATE VIEW "jdbc.tables" AS
SELECT "catalog" AS table_cat, "schema" AS table_schem, "table" AS table_name, 'TABLE' AS table_type,
  NULL::VARCHAR AS remarks, NULL::VARCHAR AS type_cat, NULL::VARCHAR AS type_schem,
  NULL::VARCHAR AS type_name, NULL::VARCHAR AS self_referencing_col_name, NULL::VARCHAR AS ref_generation
FROM lake_tables;
CREATE VIEW "jdbc.columns" AS
SELECT "catalog" AS table_cat, "schema" AS table_schem, "table" AS table_name, "column" AS column_name,
  jdbc_type::BIGINT AS data_type, "type" AS type_name, NULL::BIGINT AS column_size,
  NULL::BIGINT AS buffer_length, NULL::BIGINT AS decimal_digits, 10::BIGINT AS num_prec_radix,
  1::BIGINT AS nullable, NULL::VARCHAR AS remarks, NULL::VARCHAR AS column_def,
  NULL::BIGINT AS sql_data_type, NULL::BIGINT AS sql_datetime_sub, NULL::BIGINT AS char_octet_length,
  position AS ordinal_position, 'YES' AS is_nullable, NULL::VARCHAR AS scope_catalog,
  NULL::VARCHAR AS scope_schema, NULL::VARCHAR AS scope_table, NULL::BIGINT AS source_data_type,
  'NO' AS is_autoincrement, 'NO' AS is_generatedcolumn
FROM lake_columns;
CREATE VIEW "jdbc.types" AS
SELECT type_name, data_type::BIGINT AS data_type, "precision"::BIGINT AS "precision",
  quote AS literal_prefix, quote AS literal_suffix, create_params, 1::BIGINT AS nullable,
  quote IS NOT NULL AS case_sensitive, 3::BIGINT AS searchable, radix IS NULL AS unsigned_attribute,
  false AS fixed_prec_scale, false AS auto_increment, NULL::VARCHAR AS local_type_name,
  CASE WHEN radix = 10 THEN 0::BIGINT END AS minimum_scale,
  CASE WHEN type_name = 'decimal' THEN 38::BIGINT WHEN radix = 10 THEN 0::BIGINT END AS maximum_scale,
  NULL::BIGINT AS sql_data_type, NULL::BIGINT AS sql_datetime_sub, radix::BIGINT AS num_prec_radix
FROM (VALUES
  ('boolean', 16, NULL, NULL, NULL, NULL), ('tinyint', -6, 3, NULL, NULL, 10),
  ('smallint', 5, 5, NULL, NULL, 10), ('integer', 4, 10, NULL, NULL, 10),
  ('bigint', -5, 19, NULL, NULL, 10), ('real', 7, 24, NULL, NULL, 2),
  ('double', 8, 53, NULL, NULL, 2), ('decimal', 3, 38, NULL, 'PRECISION,SCALE', 10),
  ('varchar', 12, NULL, '''', 'LENGTH', NULL), ('char', 1, NULL, '''', 'LENGTH', NULL),
  ('varbinary', -3, NULL, NULL, NULL, NULL), ('date', 91, 14, NULL, NULL, NULL),
  ('time', 92, 8, NULL, NULL, NULL), ('timestamp', 93, 23, NULL, NULL, NULL),
  ('timestamp with time zone', 2014, 29, NULL, NULL, NULL), ('uuid', 2000, NULL, NULL, NULL, NULL)
) AS known(type_name, data_type, "precision", quote, create_params, radix);

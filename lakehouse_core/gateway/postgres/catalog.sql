-- What clients ask of PostgreSQL's system catalog beyond what DuckDB has. Tables that are empty here are of things a
-- lake has none of: triggers, policies, publications.
-- The lake's tables; the schema `main` holds only what this file makes.
CREATE VIEW own_pg_namespace AS FROM pg_catalog.pg_namespace WHERE nspname <> 'main';
CREATE VIEW own_pg_class AS
SELECT * REPLACE (NULL::VARCHAR[] AS reloptions, NULL::VARCHAR[] AS relacl), false AS relforcerowsecurity FROM pg_catalog.pg_class WHERE relkind = 'r' AND oid IN (
  SELECT table_oid FROM duckdb_tables() WHERE database_name = current_database() AND schema_name <> 'main');
CREATE VIEW own_pg_attribute AS FROM pg_catalog.pg_attribute WHERE attrelid IN (SELECT oid FROM own_pg_class);
CREATE VIEW own_pg_tables AS FROM pg_catalog.pg_tables WHERE schemaname IN (SELECT nspname FROM own_pg_namespace);
CREATE VIEW own_pg_views AS FROM pg_catalog.pg_views WHERE false;
CREATE VIEW own_pg_settings AS
SELECT *, NULL::VARCHAR AS unit, '' AS category, '' AS short_desc, 'internal' AS context, 'string' AS vartype
FROM (VALUES ('server_version', '16.4'), ('server_version_num', '160004'), ('max_index_keys', '32'),
  ('max_identifier_length', '63'), ('standard_conforming_strings', 'on'), ('TimeZone', 'UTC'),
  ('server_encoding', 'UTF8'), ('block_size', '8192')) AS v (name, setting);
CREATE VIEW own_pg_proc AS FROM pg_catalog.pg_proc WHERE false;
CREATE VIEW own_is_schemata AS
FROM information_schema.schemata WHERE catalog_name = current_database() AND schema_name <> 'main';
CREATE VIEW own_is_tables AS
FROM information_schema.tables WHERE table_catalog = current_database() AND table_schema <> 'main';
CREATE VIEW own_is_views AS FROM information_schema.tables WHERE false;
CREATE VIEW own_is_columns AS
SELECT * REPLACE (CASE data_type
    WHEN 'VARCHAR' THEN 'character varying' WHEN 'DOUBLE' THEN 'double precision' WHEN 'FLOAT' THEN 'real'
    WHEN 'BLOB' THEN 'bytea' WHEN 'TIMESTAMP' THEN 'timestamp without time zone'
    WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'timestamp with time zone' WHEN 'TIME' THEN 'time without time zone'
    ELSE regexp_replace(lower(data_type), '^decimal.*', 'numeric') END AS data_type,
  CASE data_type WHEN 'VARCHAR' THEN 'varchar' WHEN 'DOUBLE' THEN 'float8' WHEN 'FLOAT' THEN 'float4'
    WHEN 'BIGINT' THEN 'int8' WHEN 'INTEGER' THEN 'int4' WHEN 'BOOLEAN' THEN 'bool' WHEN 'BLOB' THEN 'bytea'
    WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'timestamptz'
    ELSE regexp_replace(lower(data_type), '^decimal.*', 'numeric') END AS udt_name)
FROM information_schema.columns WHERE table_catalog = current_database() AND table_schema <> 'main';

CREATE VIEW own_pg_database AS
SELECT d.database_oid AS oid, d.database_name AS datname, 10 AS datdba, 6 AS encoding, 'c' AS datlocprovider,
  false AS datistemplate, true AS datallowconn, -1 AS datconnlimit, 'C' AS datcollate, 'C' AS datctype,
  NULL::VARCHAR AS daticulocale, NULL::VARCHAR AS daticurules, NULL::VARCHAR AS datcollversion,
  NULL::VARCHAR[] AS datacl, 1663 AS dattablespace
FROM duckdb_databases() d WHERE NOT d.internal AND d.database_name <> 'memory';

CREATE VIEW own_pg_roles AS
SELECT 10 AS oid, getvariable('lakehelm_user')::VARCHAR AS rolname, false AS rolsuper, true AS rolinherit,
  false AS rolcreaterole, false AS rolcreatedb, true AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit,
  NULL::VARCHAR AS rolpassword, NULL::TIMESTAMPTZ AS rolvaliduntil, false AS rolbypassrls, NULL::VARCHAR[] AS rolconfig;
CREATE VIEW own_pg_authid AS FROM own_pg_roles;
CREATE VIEW own_pg_user AS
SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper FROM own_pg_roles;
CREATE TABLE own_pg_auth_members (roleid BIGINT, member BIGINT, grantor BIGINT, admin_option BOOLEAN);
CREATE VIEW own_pg_am AS SELECT 2 AS oid, 'heap' AS amname, 't' AS amtype;
CREATE VIEW own_pg_language AS SELECT 14 AS oid, 'sql' AS lanname, true AS lanpltrusted;
CREATE VIEW own_pg_tablespace AS SELECT 1663 AS oid, 'pg_default' AS spcname, 10 AS spcowner, NULL::VARCHAR[] AS spcacl,
  NULL::VARCHAR[] AS spcoptions;
CREATE TABLE own_pg_extension (oid BIGINT, extname VARCHAR, extowner BIGINT, extnamespace BIGINT, extversion VARCHAR);
CREATE TABLE own_pg_available_extensions (name VARCHAR, default_version VARCHAR, installed_version VARCHAR, comment VARCHAR);
CREATE TABLE own_pg_policy (oid BIGINT, polname VARCHAR, polrelid BIGINT, polcmd VARCHAR, polpermissive BOOLEAN,
  polroles BIGINT[], polqual VARCHAR, polwithcheck VARCHAR);
CREATE TABLE own_pg_inherits (inhrelid BIGINT, inhparent BIGINT, inhseqno INTEGER, inhdetachpending BOOLEAN);
CREATE TABLE own_pg_statistic_ext (oid BIGINT, stxrelid BIGINT, stxname VARCHAR, stxnamespace BIGINT, stxowner BIGINT,
  stxstattarget INTEGER, stxkeys VARCHAR, stxkind VARCHAR[]);
CREATE TABLE own_pg_publication (oid BIGINT, pubname VARCHAR, puballtables BOOLEAN);
CREATE TABLE own_pg_publication_rel (oid BIGINT, prpubid BIGINT, prrelid BIGINT, prqual VARCHAR, prattrs VARCHAR);
CREATE TABLE own_pg_publication_namespace (oid BIGINT, pnpubid BIGINT, pnnspid BIGINT);
CREATE TABLE own_pg_trigger (oid BIGINT, tgrelid BIGINT, tgname VARCHAR, tgenabled VARCHAR, tgisinternal BOOLEAN,
  tgparentid BIGINT, tgtype INTEGER, tgconstraint BIGINT, tgfoid BIGINT);
CREATE TABLE own_pg_event_trigger (oid BIGINT, evtname VARCHAR, evtevent VARCHAR, evtowner BIGINT, evtfoid BIGINT,
  evtenabled VARCHAR, evttags VARCHAR[]);
CREATE TABLE own_pg_rewrite (oid BIGINT, rulename VARCHAR, ev_class BIGINT, ev_enabled VARCHAR, ev_type VARCHAR,
  is_instead BOOLEAN);
CREATE TABLE own_pg_foreign_table (ftrelid BIGINT, ftserver BIGINT, ftoptions VARCHAR[]);
CREATE TABLE own_pg_foreign_server (oid BIGINT, srvname VARCHAR, srvowner BIGINT, srvfdw BIGINT);
CREATE TABLE own_pg_foreign_data_wrapper (oid BIGINT, fdwname VARCHAR, fdwowner BIGINT);
CREATE TABLE own_pg_user_mapping (oid BIGINT, umuser BIGINT, umserver BIGINT);
CREATE TABLE own_pg_collation (oid BIGINT, collname VARCHAR, collnamespace BIGINT);
CREATE TABLE own_pg_conversion (oid BIGINT, conname VARCHAR, connamespace BIGINT);
CREATE TABLE own_pg_stat_activity (datid BIGINT, datname VARCHAR, pid INTEGER, usename VARCHAR, application_name VARCHAR,
  client_addr VARCHAR, backend_start TIMESTAMPTZ, query_start TIMESTAMPTZ, state VARCHAR, query VARCHAR);
CREATE TABLE own_pg_stat_ssl (pid INTEGER, ssl BOOLEAN, version VARCHAR, cipher VARCHAR, bits INTEGER);
CREATE TABLE own_pg_stat_user_tables (relid BIGINT, schemaname VARCHAR, relname VARCHAR, n_live_tup BIGINT);
CREATE TABLE own_pg_partitioned_table (partrelid BIGINT, partstrat VARCHAR, partnatts INTEGER, partdefid BIGINT);
CREATE TABLE own_pg_shdescription (objoid BIGINT, classoid BIGINT, description VARCHAR);
CREATE TABLE own_pg_range (rngtypid BIGINT, rngsubtype BIGINT, rngmultitypid BIGINT, rngcollation BIGINT, rngsubopc BIGINT,
  rngcanonical BIGINT, rngsubdiff BIGINT);
CREATE TABLE own_pg_opclass (oid BIGINT, opcname VARCHAR, opcmethod BIGINT, opcnamespace BIGINT, opcdefault BOOLEAN);
CREATE TABLE own_pg_operator (oid BIGINT, oprname VARCHAR, oprnamespace BIGINT);
CREATE TABLE own_pg_cast (oid BIGINT, castsource BIGINT, casttarget BIGINT, castfunc BIGINT, castcontext VARCHAR,
  castmethod VARCHAR);
CREATE TABLE own_pg_aggregate (aggfnoid BIGINT, aggkind VARCHAR);
CREATE TABLE own_pg_ts_config (oid BIGINT, cfgname VARCHAR, cfgnamespace BIGINT);
CREATE TABLE own_pg_locks (locktype VARCHAR, relation BIGINT, pid INTEGER, mode VARCHAR, granted BOOLEAN);
CREATE TABLE own_pg_matviews (schemaname VARCHAR, matviewname VARCHAR, matviewowner VARCHAR, definition VARCHAR);
CREATE TABLE own_pg_default_acl (oid BIGINT, defaclrole BIGINT, defaclnamespace BIGINT);
CREATE TABLE own_pg_seclabel (objoid BIGINT, classoid BIGINT, provider VARCHAR, label VARCHAR);
CREATE TABLE own_pg_replication_slots (slot_name VARCHAR, slot_type VARCHAR, database VARCHAR);
CREATE TABLE own_pg_prepared_xacts (transaction BIGINT, gid VARCHAR, prepared TIMESTAMPTZ, owner VARCHAR, database VARCHAR);
CREATE TABLE own_pg_attrdef (oid BIGINT, adrelid BIGINT, adnum INTEGER, adbin VARCHAR);
CREATE VIEW own_pg_timezone_names AS SELECT 'UTC' AS name, 'UTC' AS abbrev, INTERVAL 0 SECOND AS utc_offset, false AS is_dst;

CREATE MACRO own_version() AS 'PostgreSQL 16.4 (Lakehelm)';
CREATE MACRO pg_get_userbyid(id) AS getvariable('lakehelm_user')::VARCHAR;
CREATE MACRO pg_encoding_to_char(id) AS 'UTF8';
CREATE MACRO pg_backend_pid() AS 1;
CREATE MACRO pg_is_in_recovery() AS false;
CREATE MACRO pg_my_temp_schema() AS 0;
CREATE MACRO pg_is_other_temp_schema(id) AS false;
CREATE MACRO pg_postmaster_start_time() AS NULL::TIMESTAMPTZ;
CREATE MACRO pg_relation_is_publishable(id) AS false;
CREATE MACRO pg_get_indexdef(id, n := 0, pretty := false) AS '';
CREATE MACRO pg_get_ruledef(id, pretty := false) AS '';
CREATE MACRO pg_get_triggerdef(id, pretty := false) AS '';
CREATE MACRO pg_tablespace_location(id) AS '';
CREATE MACRO pg_get_partkeydef(id) AS NULL::VARCHAR;
CREATE MACRO pg_get_statisticsobjdef_columns(id) AS NULL::VARCHAR;
CREATE MACRO pg_get_function_result(id) AS '';
CREATE MACRO pg_get_function_arguments(id) AS '';
CREATE MACRO pg_table_size(id) AS 0::BIGINT;
CREATE MACRO pg_total_relation_size(id) AS 0::BIGINT;
CREATE MACRO pg_relation_size(id) AS 0::BIGINT;
CREATE MACRO pg_database_size(id) AS 0::BIGINT;
CREATE MACRO pg_stat_get_numscans(id) AS 0::BIGINT;
CREATE MACRO inet_server_addr() AS '127.0.0.1';
CREATE MACRO inet_server_port() AS 0;
CREATE MACRO inet_client_addr() AS '127.0.0.1';
CREATE MACRO to_regclass(name) AS (
  SELECT min(c.oid) FROM pg_catalog.pg_class c
  WHERE c.relname = replace(split_part(name, '.', -1), '"', '')
);
CREATE MACRO to_regtype(name) AS (SELECT min(t.oid) FROM pg_catalog.pg_type t WHERE t.typname = name);
-- DuckDB tells the short names; PostgreSQL's tools show those of the standard.
CREATE MACRO format_type(id, modifier) AS coalesce(
  map {'bool': 'boolean', 'int2': 'smallint', 'int4': 'integer', 'int8': 'bigint', 'float4': 'real',
    'float8': 'double precision', 'varchar': 'character varying', 'bpchar': 'character',
    'time': 'time without time zone', 'timestamp': 'timestamp without time zone',
    'timestamptz': 'timestamp with time zone'}[system.pg_catalog.format_type(id, modifier)],
  system.pg_catalog.format_type(id, modifier));
CREATE MACRO set_config(name, setting, is_local) AS setting;

-- What Quack clients may run; see gate.py. Runs in a database in memory called `gate`.

CREATE TABLE gate.main.role (server VARCHAR, role VARCHAR);
CREATE TABLE gate.main.command (name VARCHAR, pattern VARCHAR, script VARCHAR);

CREATE MACRO gate.main.role_of(connection) AS (
  SELECT role.role FROM quack_active_connections() AS active
  JOIN gate.main.role AS role ON role.server = active.server_id
  WHERE active.connection_id = connection
);

-- json_serialize_sql reads SELECT statements only; everything else it calls an error. Names are compared
-- in lower case, as the engine does.
CREATE MACRO gate.main.is_harmless(query) AS (
  SELECT parsed.tree ->> '$.error' = 'false'
    AND json_array_length(parsed.tree, '$.statements') = 1
    AND list_has_all(rules.functions, parsed.functions)
    AND list_has_all(rules.table_functions, parsed.table_functions)
    AND list_has_all(['', 'main'], parsed.schemas)
    AND list_has_all([''], parsed.catalogs)
    AND list_has_all(rules.tables || list_filter(parsed.ctes, lambda name:
      regexp_full_match(name, '[a-z_][a-z0-9_]*') AND NOT list_contains(rules.taken, name)
    ), parsed.tables)
  FROM gate.main.rules AS rules, (
    SELECT tree,
      json_extract_string(tree, '$..function_name') AS functions,
      json_extract_string(tree, '$..function.function_name') AS table_functions,
      json_extract_string(tree, '$..table_name') AS tables,
      json_extract_string(tree, '$..schema_name') AS schemas,
      json_extract_string(tree, '$..catalog_name') AS catalogs,
      json_extract_string(tree, '$..cte_map.map[*].key') AS ctes
    FROM (SELECT lower(json_serialize_sql(query::VARCHAR)) AS tree)
  ) AS parsed
);

-- `<verb> <object> <file>` → its script, with the file in its place.
CREATE MACRO gate.main.script_of(query) AS (
  SELECT replace(command.script, '{file}', asked.word[3])
  FROM gate.main.command AS command, (SELECT string_split(query::VARCHAR, ' ') AS word) AS asked
  WHERE len(asked.word) = 3 AND command.name = asked.word[1] || ' ' || asked.word[2]
    AND regexp_full_match(asked.word[3], command.pattern)
);

CREATE MACRO gate.main.authorize(connection, query) AS (
  SELECT CASE
    WHEN caller.role IN ('reader', 'writer') AND gate.main.is_harmless(query) THEN query
    WHEN caller.role = 'writer' THEN gate.main.script_of(query)
  END
  FROM (SELECT gate.main.role_of(connection) AS role) AS caller
);

-- What Quack clients may run; see gate.py. Lives in a database in memory called `gate`.
-- One flat query: it is planned anew for every statement of every client.

-- The tree is in lower case, because the engine compares names so.
CREATE MACRO gate.main.is_harmless(tree, functions, table_functions, tables, taken) AS
  json_extract_string(tree, '$.error') = 'false'
  AND json_array_length(tree, '$.statements') = 1
  AND list_has_all(functions, json_extract_string(tree, '$..function_name'))
  AND list_has_all(table_functions, json_extract_string(tree, '$..function.function_name'))
  AND list_has_all(['', 'main'], json_extract_string(tree, '$..schema_name'))
  AND list_has_all([''], json_extract_string(tree, '$..catalog_name'))
  AND list_has_all(
    tables || list_filter(json_extract_string(tree, '$..cte_map.map[*].key'), lambda name:
      regexp_full_match(name, '[a-z_][a-z0-9_]*') AND NOT list_contains(taken, name)),
    json_extract_string(tree, '$..table_name'));

-- `<verb> <object> <file>` → its script, with the file in its place; NULL when there is none.
CREATE MACRO gate.main.script_of(word, patterns, scripts) AS
  CASE
    WHEN len(word) = 3 AND length(word[3]) <= 16000
      AND regexp_full_match(word[3], patterns[word[1] || ' ' || word[2]])
    THEN replace(scripts[word[1] || ' ' || word[2]], '{file}', word[3])
  END;

-- json_serialize_sql reads SELECT statements only; everything else it calls an error.
CREATE MACRO gate.main.authorize(caller_id, text) AS (
  SELECT CASE
    WHEN rules.roles[caller.server_id] IS NULL THEN NULL
    WHEN rules.greetings[trim(text, E' \n\t')] IS NOT NULL
    THEN rules.greetings[trim(text, E' \n\t')]
    WHEN gate.main.is_harmless(
      caller.tree, rules.functions, rules.table_functions, rules.tables, rules.taken) THEN text
    WHEN rules.roles[caller.server_id] = 'writer'
      OR list_contains(rules.open_commands, caller.word[1] || ' ' || caller.word[2])
    THEN gate.main.script_of(caller.word, rules.patterns, rules.scripts)
  END
  FROM gate.main.rules AS rules, (
    SELECT server_id, lower(json_serialize_sql(text::VARCHAR)) AS tree,
      string_split(text::VARCHAR, ' ') AS word
    FROM quack_active_connections() WHERE connection_id = caller_id
  ) AS caller
);

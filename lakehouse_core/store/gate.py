"""What a Quack client may run: allow-lists, checked by the engine itself before every statement.

Quack calls one SQL function per statement, in a fresh connection, with the connection's id and the
text. The role is the server (port) the connection belongs to. The function answers with the text to
run, or NULL to refuse:

- both roles: the two questions Quack asks by itself, with empty answers;
- both roles: one SELECT over the store's tables, with functions that have no side effects;
- both roles: `run agent <name>`, which notes the wish that a scheduled job be run at once;
- both roles: `decide action <wish>`, which notes a wish about an action (views/decisions.py);
- both roles: `set engine <wish>`, which notes the state an engine is to be in (views/switches.py);
- both roles: `save query` and `drop query`, which keep statements of people (views/console.py);
- writer: also the commands below, which stand for scripts kept here. A writer never sends SQL that
  writes, so there is no such SQL to check.

The lists live in a database in memory, made anew at every start.
"""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from lakehouse_core.store.literals import identifier, literal
from lakehouse_core.store.merge import merge_script
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

    from lakehouse_core.config.models import StoreConfig

_MACROS = Path(__file__).with_name("gate.sql")
_FILE = r"(inflight/)?[A-Za-z0-9_.-]+\.parquet"
_BACKUP = r"telemetry-[A-Za-z0-9_-]+\.partial"
_TABLE_FUNCTIONS = ("generate_series", "json_each", "json_tree", "range", "unnest")

# Functions the engine calls harmless, and we do not: they wait, or tell about the server.
_UNWELCOME = (
    "current_setting", "getvariable", "pg_sleep", "sleep_ms", "stats", "json_serialize_plan",
    "json_serialize_sql", "json_deserialize_sql", "parse_duckdb_log_message", "current_query",
)  # fmt: skip

_RULES = """
CREATE TABLE gate.main.rules AS SELECT
  (SELECT list(DISTINCT lower(function_name)) FROM duckdb_functions()
   WHERE database_name = 'system' AND function_type IN ('scalar', 'aggregate', 'macro')
     AND has_side_effects IS NOT TRUE AND NOT starts_with(function_name, 'quack_')
     AND NOT starts_with(function_name, '__internal') AND function_name NOT IN (
       SELECT function_name FROM duckdb_functions() WHERE has_side_effects)
     AND function_name NOT IN (SELECT unnest($unwelcome))
  ) || $table_functions AS functions,
  $table_functions AS table_functions,
  $tables AS tables,
  (SELECT list(DISTINCT lower(view_name)) FROM duckdb_views() WHERE internal) AS taken,
  map($servers, $roles) AS roles,
  map($greetings, $replies) AS greetings,
  $open_commands AS open_commands,
  map($commands, $patterns) AS patterns,
  map($commands, $scripts) AS scripts
"""

# A wish, not a deed: the schedule takes it up. Only jobs it knows, and one waiting wish for each,
# so that a reader cannot fill the store. The answer is the wish that stands for this job now.
_RUN_AGENT = """
INSERT INTO agent_request (request_id, agent, asked_at, state)
SELECT gen_random_uuid()::VARCHAR, agent, now(), 'waiting' FROM agent_state
WHERE agent = '{file}' AND NOT EXISTS (
  SELECT 1 FROM agent_request WHERE agent = '{file}' AND state = 'waiting'
);
SELECT request_id, agent, asked_at, state, taken_at, ended_at, run_id, answer FROM agent_request
WHERE agent = '{file}' ORDER BY asked_at DESC LIMIT 1
"""
_AGENT = r"[A-Za-z0-9_.:-]{1,80}"
_OPEN_COMMANDS = ("run agent", "decide action", "set engine", "save query", "drop query")

# What a command's JSON in base64url says.
_SAID = "TRY(decode(from_base64(replace(replace('{file}', '-', '+'), '_', '/')))::JSON)"

# As a decision: of engines that are known, few that wait and few a minute.
_SET_ENGINE = """
INSERT INTO engine_request (request_id, asked_at, engine_id, configured, actor, reason, state)
SELECT wish.request_id, now(), wish.engine_id, wish.configured, wish.actor, wish.reason, 'waiting'
FROM (
  SELECT said->>'request_id' AS request_id, said->>'engine_id' AS engine_id,
    said->>'configured' AS configured, said->>'actor' AS actor, said->>'reason' AS reason
  FROM (SELECT {said} AS said)
) AS wish
WHERE regexp_full_match(wish.request_id, '[0-9a-f]{32}')
  AND wish.configured IN ('active', 'inactive', 'maintenance')
  AND length(wish.actor) BETWEEN 1 AND 120
  AND length(coalesce(wish.reason, '')) <= 1000
  AND EXISTS (SELECT 1 FROM engine WHERE engine.engine_id = wish.engine_id)
  AND NOT EXISTS (SELECT 1 FROM engine_request AS known WHERE known.request_id = wish.request_id)
  AND (SELECT count(*) FROM engine_request WHERE state = 'waiting') < 20
  AND (SELECT count(*) FROM engine_request WHERE asked_at > now() - INTERVAL 1 MINUTE) < 60;
SELECT * FROM engine_request WHERE request_id = ({said}->>'request_id')
""".replace("{said}", _SAID)

# A wish again: the agents process checks it and answers. JSON in base64url, so that it is one word
# and nothing in it is ever read as SQL. Only about actions that are known or,
# of a proposal by hand, not known yet; each wish once, few that wait and few a minute, so that a
# reader cannot fill the store. No row comes back for the others.
_DECIDE = """
INSERT INTO decision_request (
  request_id, asked_at, action_id, verb, actor, reason, plan_hash, confirmation, until, state,
  proposal)
SELECT wish.request_id, now(), wish.action_id, wish.verb, wish.actor, wish.reason, wish.plan_hash,
  wish.confirmation, wish.until, 'waiting', wish.proposal
FROM (
  SELECT said->>'request_id' AS request_id, said->>'action_id' AS action_id,
    said->>'verb' AS verb, said->>'actor' AS actor, said->>'reason' AS reason,
    said->>'plan_hash' AS plan_hash, said->>'confirmation' AS confirmation,
    said->>'proposal' AS proposal,
    said->>'until' AS until_text, TRY_CAST(said->>'until' AS TIMESTAMPTZ) AS until
  FROM (SELECT {said} AS said)
) AS wish
WHERE regexp_full_match(wish.request_id, '[0-9a-f]{32}')
  AND regexp_full_match(wish.action_id, '[A-Za-z0-9_.:-]{1,80}')
  AND wish.verb IN ('approve', 'reject', 'snooze', 'cancel', 'propose')
  AND regexp_full_match(wish.plan_hash, '[0-9a-f]{64}')
  AND length(wish.actor) BETWEEN 1 AND 120
  AND length(coalesce(wish.reason, '')) <= 1000
  AND length(coalesce(wish.confirmation, '')) <= 1000
  AND (wish.until IS NULL) = (wish.until_text IS NULL)
  AND length(coalesce(wish.proposal, '')) <= 4000
  AND (wish.verb = 'propose') = (wish.proposal IS NOT NULL)
  AND (wish.verb = 'propose') <> EXISTS (
    SELECT 1 FROM action WHERE action.action_id = wish.action_id
    UNION ALL SELECT 1 FROM route_trial WHERE route_trial.trial_id = wish.action_id)
  AND NOT EXISTS (SELECT 1 FROM decision_request AS known WHERE known.request_id = wish.request_id)
  AND (SELECT count(*) FROM decision_request WHERE state = 'waiting') < 50
  AND (SELECT count(*) FROM decision_request WHERE asked_at > now() - INTERVAL 1 MINUTE) < 60;
SELECT * FROM decision_request WHERE request_id = ({said}->>'request_id')
""".replace("{said}", _SAID)
_WISH = r"[A-Za-z0-9_-]+={0,2}"

# Statements people keep: so many, and few a minute. Who saved one may remove it.
_SAVE_QUERY = """
INSERT INTO saved_query (query_id, saved_at, saved_by, name, sql_text)
SELECT kept.query_id, now(), kept.actor, kept.name, kept.sql_text
FROM (
  SELECT said->>'query_id' AS query_id, said->>'actor' AS actor, said->>'name' AS name,
    said->>'sql' AS sql_text
  FROM (SELECT {said} AS said)
) AS kept
WHERE regexp_full_match(kept.query_id, '[0-9a-f]{16}')
  AND length(kept.actor) BETWEEN 1 AND 120 AND length(kept.name) BETWEEN 1 AND 120
  AND length(kept.sql_text) BETWEEN 1 AND 8000
  AND NOT EXISTS (SELECT 1 FROM saved_query AS known WHERE known.query_id = kept.query_id)
  AND (SELECT count(*) FROM saved_query) < 5000
  AND (SELECT count(*) FROM saved_query WHERE saved_at > now() - INTERVAL 1 MINUTE) < 60;
SELECT query_id, saved_at, saved_by, name, sql_text FROM saved_query
WHERE query_id = ({said}->>'query_id')
""".replace("{said}", _SAID)
_DROP_QUERY = """
DELETE FROM saved_query
WHERE query_id = ({said}->>'query_id') AND saved_by = ({said}->>'actor');
SELECT query_id FROM saved_query WHERE query_id = ({said}->>'query_id')
""".replace("{said}", _SAID)

# What Quack itself asks when a database is attached, and what it learns: nothing. Kept connections
# (sessions.py) are attached databases, but never looked into.
_GREETINGS = {
    """SELECT catalog_name, schema_name
FROM information_schema.schemata
WHERE catalog_name NOT IN ('system', 'temp')
ORDER BY ALL""": "SELECT current_database() AS catalog_name, 'main' AS schema_name",
    """SELECT schema_name, sql, 'table'
FROM duckdb_tables()
UNION ALL
SELECT schema_name, view_name, 'view'
FROM duckdb_views()""": "SELECT 'main' AS schema_name, '' AS sql, 'table' AS kind WHERE false",
}

# COPY FROM DATABASE changes settings underway, which are locked; so tables are copied one by one,
# in one transaction.
_BACK_UP = Template("""
ATTACH $target AS $database;
BEGIN TRANSACTION;
$copies;
COMMIT;
DETACH $database;
SELECT $target AS file
""")
_COPY = Template("""$create
INSERT INTO $database.main.$table FROM main.$table""")
_TABLES = """
SELECT table_name, sql FROM duckdb_tables()
WHERE database_name = current_database() AND schema_name = 'main' AND NOT temporary
"""
_DISCARD = Template("DETACH DATABASE IF EXISTS $database; SELECT true AS detached")


def install(
    connection: duckdb.DuckDBPyConnection, store: StoreConfig, roles: Mapping[str, str]
) -> None:
    """Set up the gate in a locked-down engine to be.

    Args:
        connection: the store's connection, before its configuration is locked.
        store: where spool and backups are.
        roles: listen address of a server → the role of those who connect to it.
    """
    commands, patterns, scripts = zip(*_commands(connection, store), strict=True)
    connection.execute("ATTACH ':memory:' AS gate")
    connection.execute(
        _RULES,
        {
            "unwelcome": list(_UNWELCOME),
            "table_functions": list(_TABLE_FUNCTIONS),
            "tables": [*TABLES, "schema_version"],
            "servers": list(roles),
            "roles": list(roles.values()),
            "greetings": list(_GREETINGS),
            "replies": list(_GREETINGS.values()),
            "open_commands": list(_OPEN_COMMANDS),
            "commands": list(commands),
            "patterns": list(patterns),
            "scripts": list(scripts),
        },
    )
    connection.execute(_MACROS.read_text(encoding="utf-8"))
    connection.execute("SET GLOBAL quack_authorization_function = 'gate.main.authorize'")


def _commands(
    connection: duckdb.DuckDBPyConnection, store: StoreConfig
) -> Iterator[tuple[str, str, str]]:
    file = literal(f"{store.spool}/{{file}}")
    for name, spec in TABLES.items():
        yield f"merge {name}", _FILE, merge_script(spec, f"read_parquet({file})")
    target = store.backups / "{file}"
    yield "backup store", _BACKUP, backup_script(connection, target)
    yield "discard backup", _BACKUP, discard_script(target)
    yield "run agent", _AGENT, _RUN_AGENT
    yield "decide action", _WISH, _DECIDE
    yield "set engine", _WISH, _SET_ENGINE
    yield "save query", _WISH, _SAVE_QUERY
    yield "drop query", _WISH, _DROP_QUERY


def backup_script(connection: duckdb.DuckDBPyConnection, target: Path) -> str:
    """Copies the store, as it is at one moment, into a new database file.

    Args:
        connection: the opened store.
        target: the file.
    """
    database, copies = _attached(target), []
    for name, create in connection.execute(_TABLES).fetchall():
        # The text is DuckDB's own, of tables we made: `CREATE TABLE name(…`, quoted if need be.
        _, _, columns = create.partition("(")
        placed = f"CREATE TABLE {database}.main.{identifier(name)}({columns}"
        copies.append(_COPY.substitute(create=placed, database=database, table=identifier(name)))
    return _BACK_UP.substitute(
        target=literal(str(target)), database=database, copies=";\n".join(copies)
    )


def discard_script(target: Path) -> str:
    """Lets go of the file of a backup that failed, and of no other's."""
    return _DISCARD.substitute(database=_attached(target))


def _attached(target: Path) -> str:
    """What the file of a backup is attached as; several may be made at once."""
    return identifier(f"backup {target.name}")

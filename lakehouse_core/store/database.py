"""The store file: opening it, finding out whether it is sound, and locking the engine down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from lakehouse_core import duck
from lakehouse_core.domain.errors import StoreCorruptError
from lakehouse_core.store.faults import first_line, opening_error
from lakehouse_core.store.literals import literal
from lakehouse_core.store.migrate import schema_version
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import StoreConfig

GATE = "gate"

# Two copies of the database header follow the file header; each takes one sector.
_HEADER_BYTES = 3 * 4096

_TABLES = """
SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT temporary
"""
_BLOCKS = "SELECT block_id, additional_block_ids, persistent FROM pragma_storage_info({table})"
_LAST_BLOCK = """
SELECT max(greatest(block_id, coalesce(list_max(additional_block_ids), -1)))
FROM ({blocks}) WHERE persistent
"""
_METADATA = """
SELECT
  (SELECT block_size FROM pragma_database_size() WHERE database_name = current_database()),
  (SELECT coalesce(max(block_id), -1) FROM pragma_metadata_info())
"""

_SEED_TURNS = """
INSERT INTO store_turn
SELECT name, 0 FROM (SELECT unnest($names) AS name)
WHERE name NOT IN (SELECT table_name FROM store_turn)
"""


def open_file(
    path: Path, memory_limit: int, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open the store file and make sure that it is whole.

    Raises:
        StoreLockedError: another process holds it; names it if DuckDB does.
        StoreCorruptError: it is not a DuckDB database, or a part of it is missing.
    """
    settings: dict[str, duck.Setting] = {
        "memory_limit": f"{memory_limit}B",
        "python_enable_replacements": False,
        "enable_external_file_cache": False,
    }
    try:
        connection = duck.connect(path, config=settings, read_only=read_only)
    except duckdb.Error as error:
        raise opening_error(path, error) from error
    try:
        check_whole(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check_whole(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Cheap signs of damage: metadata that cannot be read, blocks beyond the end of the file.

    The header's block count is of no use: free blocks at the end are cut off after it is written.

    Raises:
        StoreCorruptError: names the file.
    """
    try:
        schema_version(connection)
        tables = connection.execute(_TABLES).fetchall()
        last = _last_block(connection, [str(name) for (name,) in tables])
        row = connection.execute(_METADATA).fetchone()
    except duckdb.Error as error:
        raise StoreCorruptError(f"Store {path} is damaged: {first_line(error)}") from error
    block_bytes, last_metadata = row or (0, -1)
    wanted = _HEADER_BYTES + block_bytes * (max(last, last_metadata) + 1)
    present = path.stat().st_size
    if present < wanted:
        raise StoreCorruptError(
            f"Store {path} is cut off: it has {present} bytes, its tables reach to byte {wanted}"
        )


def _last_block(connection: duckdb.DuckDBPyConnection, tables: list[str]) -> int:
    """The last block that a table uses; one statement for all: each alone costs every start."""
    if not tables:
        return -1
    blocks = " UNION ALL ".join(_BLOCKS.format(table=literal(name)) for name in tables)
    row = connection.execute(_LAST_BLOCK.format(blocks=blocks)).fetchone()
    return int(row[0]) if row and row[0] is not None else -1


def seed_turns(connection: duckdb.DuckDBPyConnection) -> None:
    """Give every table its row in `store_turn` (see migrations/0002_turn.sql)."""
    connection.execute(_SEED_TURNS, {"names": list(TABLES)})


def lock_down(connection: duckdb.DuckDBPyConnection, store: StoreConfig) -> None:
    """Close the engine: no files but spool and backups, no network, no settings, until it ends.

    DuckDB grants writing to `allowed_directories` too: only the gate (gate.py) forbids that.
    """
    folders = [str(store.spool), str(store.backups)]
    for setting in (
        f"SET max_temp_directory_size = {literal(f'{4 * store.memory_limit}B')}",
        f"SET allowed_directories = {literal(folders)}",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(setting)

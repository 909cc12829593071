"""Numbered migrations: each is applied in one transaction together with its `schema_version` row.

A process killed in the middle leaves the store at the version before; the next start goes on. What
a store lacks is applied in order, also a number below its newest: two branches of work may each
bring theirs. One migration cannot alter a table whose rows it has changed: DuckDB wants two for it.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from lakehouse_core.domain.errors import StoreError, StoreTooNewError

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLDER = Path(__file__).parent / "migrations"

_CREATE_VERSION = """
CREATE TABLE IF NOT EXISTS schema_version (
  version INTEGER NOT NULL, name VARCHAR NOT NULL, applied_at TIMESTAMPTZ NOT NULL
)
"""
_HAS_VERSION = """
SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'main' AND table_name = 'schema_version'
  AND database_name = current_database()
"""
_RECORD = "INSERT INTO schema_version VALUES ($version, $name, now())"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema; its number is its place."""

    version: int
    name: str
    sql: str


def known_migrations(folder: Path = _FOLDER) -> tuple[Migration, ...]:
    """The migrations this release carries, in order.

    Raises:
        StoreError: two have one number.
    """
    found = tuple(
        Migration(int(file.stem.partition("_")[0]), file.stem, file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    )
    for before, after in itertools.pairwise(found):
        if before.version == after.version:
            raise StoreError(f"Migrations {before.name} and {after.name} have one number")
    return found


def newest_version() -> int:
    """The version of a store that has every migration of this release."""
    return max(step.version for step in known_migrations())


def schema_version(connection: duckdb.DuckDBPyConnection) -> int:
    """The version of the opened store; 0 when it is empty."""
    row = connection.execute(_HAS_VERSION).fetchone()
    if row is None or row[0] == 0:
        return 0
    newest = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    return int(newest[0]) if newest else 0


def migrate(
    connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration] | None = None
) -> int:
    """Bring the store to the newest version and return that version.

    Raises:
        StoreTooNewError: a newer Lakehelm has written it; nothing is changed.
        StoreError: a migration failed; the store is as it was before that migration.
    """
    steps = known_migrations() if migrations is None else migrations
    present = schema_version(connection)
    newest = max((step.version for step in steps), default=0)
    if present > newest:
        raise StoreTooNewError(
            f"The store has schema version {present}, this Lakehelm knows up to {newest}: "
            "upgrade Lakehelm, or restore a backup made before the upgrade "
            "(lakehelm store restore)"
        )
    applied = _applied(connection) if present else set()
    for step in steps:
        if step.version not in applied:
            _apply(connection, step)
    return newest


def _applied(connection: duckdb.DuckDBPyConnection) -> set[int]:
    rows = connection.execute("SELECT version FROM schema_version").fetchall()
    return {int(version) for (version,) in rows}


def _apply(connection: duckdb.DuckDBPyConnection, step: Migration) -> None:
    connection.begin()
    try:
        connection.execute(_CREATE_VERSION)
        connection.execute(step.sql)
        connection.execute(_RECORD, {"version": step.version, "name": step.name})
        connection.commit()
    except duckdb.Error as error:
        roll_back(connection)
        raise StoreError(f"Migration {step.name} of the store failed: {error}") from error


def roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    """Undo the open transaction; a failed commit has ended it already."""
    with suppress(duckdb.TransactionException):
        connection.rollback()

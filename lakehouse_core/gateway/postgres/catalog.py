"""PostgreSQL's system catalog of the lake: what psql and BI tools ask when they connect.

A DuckDB that holds the lake's tables without rows has most of `pg_catalog` and all of
`information_schema` built in; `catalog.sql` adds what clients ask beyond that. It is locked, reads
no file, and is made anew only where a table's metadata file is another than before.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.domain.errors import CatalogError, QueryFailedError
from lakehouse_core.gateway.names import full_name, visible_schemas
from lakehouse_core.gateway.questions import SECONDS, SETTINGS, Questions
from lakehouse_core.sql.postgres.catalog import names_of_nothing, quoted, turned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from lakehouse_core.catalog import LakeCatalog
    from lakehouse_core.domain.table import TableName
    from lakehouse_core.gateway.questions import Asked
    from lakehouse_core.routing.request import Sight

_SETUP = (Path(__file__).parent / "catalog.sql").read_text(encoding="utf-8")
_MOST_MIRRORS = 16  # of one catalog; there are few roles
_FIRST_SCHEMA = "public"  # what PostgreSQL's clients expect before they chose one
_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz_ns": "TIMESTAMPTZ",
    "string": "VARCHAR",
    "uuid": "UUID",
    "binary": "BLOB",
}


class PgCatalog:
    """Answers questions about names and types, one DuckDB per catalog of the lake."""

    def __init__(self, catalogs: Mapping[str, LakeCatalog], seconds: float = SECONDS) -> None:
        self._questions = Questions(seconds)
        self._catalogs = catalogs
        self._mirrors: dict[str, list[_Mirror]] = {name: [] for name in catalogs}

    @property
    def names(self) -> tuple[str, ...]:
        """Databases a client can connect to."""
        return tuple(self._mirrors)

    def concerns(self, tree: exp.Expr) -> bool:
        """Whether a statement asks for nothing but the system catalog."""
        return turned(tree) is not None

    async def query(
        self, tree: exp.Expr, database: str, user: str, sight: Sight, schema: str | None = None
    ) -> pa.Table:
        """Answer a question, with the names that `sight` shows.

        Raises:
            QueryFailedError: it cannot be answered.
        """
        sql = turned(tree)
        if sql is None or database not in self._mirrors:
            raise QueryFailedError(f'database "{database}" does not exist', code="3D000")
        nothing = names_of_nothing(tree)
        if nothing is not None:
            empty = pa.array([], pa.string())
            return pa.Table.from_arrays([empty] * len(nothing), names=nothing)
        mirror, place = self._mirror(database, sight), schema or _FIRST_SCHEMA
        return await self._questions.ask(lambda asked: mirror.answer(asked, sql, user, place))

    def _mirror(self, database: str, sight: Sight) -> _Mirror:
        """What DuckDB tells of itself cannot be filtered: each sight has a mirror of its own."""
        mirrors = self._mirrors[database]
        for mirror in mirrors:
            if mirror.sight == sight:
                return mirror
        made = _Mirror(database, self._catalogs[database], sight)
        mirrors.append(made)
        del mirrors[:-_MOST_MIRRORS]
        return made


class _Mirror:
    """The names of one catalog as empty tables, as far as somebody may know of them."""

    def __init__(self, name: str, catalog: LakeCatalog, sight: Sight) -> None:
        self.sight = sight
        self._name = name
        self._catalog = catalog
        self._turn = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None
        self._seen: dict[tuple[str, str], tuple[str, ...]] = {}
        self._schemas: set[str] = set()

    def answer(self, asked: Asked, sql: str, user: str, schema: str) -> pa.Table:
        with self._turn:
            try:
                cursor = self._fresh().cursor()
            except CatalogError as error:
                raise QueryFailedError(str(error), code="58000") from error
        # Others need not wait for the question itself: it sees the names as they were.
        try:
            cursor.execute(f"USE {quoted(self._name)}")
            cursor.execute("SET VARIABLE lakehelm_user = ?", [user])
            cursor.execute("SET VARIABLE lakehelm_schema = ?", [schema])
            return asked.read(cursor, sql, {})
        except duckdb.OutOfMemoryException as error:
            raise QueryFailedError(
                "The question needs more memory than is kept for the system catalog", code="53200"
            ) from error
        except duckdb.Error as error:
            message = str(error).partition("\nLINE ")[0]
            raise QueryFailedError(f"The system catalog: {message}", code="0A000") from error
        finally:
            cursor.close()

    def _fresh(self) -> duckdb.DuckDBPyConnection:
        """The database, with the tables that are in the catalog now."""
        database = self._database or self._opened()
        listed = self._catalog.tables()
        tables = self._tables(listed)
        schemas = visible_schemas(self._catalog, listed, tables, self.sight)
        for schema in schemas - self._schemas:
            database.execute(f"CREATE SCHEMA IF NOT EXISTS {self._place(schema)}")
        self._schemas |= schemas
        for schema, name in self._seen.keys() - tables.keys():
            database.execute(f"DROP TABLE IF EXISTS {self._place(schema, name)}")
            del self._seen[schema, name]
        for (schema, name), columns in tables.items():
            if self._seen.get((schema, name)) == columns or schema not in schemas:
                continue
            if columns:
                place = self._place(schema, name)
                database.execute(f"CREATE OR REPLACE TABLE {place} ({', '.join(columns)})")
            self._seen[schema, name] = columns
        return database

    def _tables(self, listed: Mapping[TableName, str]) -> dict[tuple[str, str], tuple[str, ...]]:
        """Definitions of the columns by schema and table, of those that may be known."""
        found = {}
        for one, location in listed.items():
            try:
                columns = _columns(location)
            except CatalogError:
                continue  # one table that cannot be read hides no other
            shown = self.sight.visible(full_name(one), tuple(columns))
            if shown is not None:
                key = ".".join(one.namespace), one.name
                found[key] = tuple(columns[name] for name in shown)
        return found

    def _opened(self) -> duckdb.DuckDBPyConnection:
        database = duck.connect(config=SETTINGS)
        database.execute(f"ATTACH ':memory:' AS {quoted(self._name)}")
        database.execute(f"USE {quoted(self._name)}")
        database.execute(_SETUP)
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        self._database, self._seen, self._schemas = database, {}, {"main"}
        return database

    def _place(self, *names: str) -> str:
        return ".".join(quoted(name) for name in (self._name, *names))


@lru_cache(maxsize=20_000)
def _columns(location: str) -> dict[str, str]:
    """Definitions of a table's columns by their names."""
    fields = [one for one in read_metadata(location).fields if one.is_column]
    return {one.name: f"{quoted(one.name)} {_type(one.type)}" for one in fields}


def _type(kind: str) -> str:
    if kind.startswith("decimal"):
        return kind.upper()
    return _TYPES.get(kind, "BLOB" if kind.startswith("fixed") else "VARCHAR")

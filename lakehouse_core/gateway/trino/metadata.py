"""Names of catalogs, schemas, tables and columns, whichever engine serves: read from the catalogs.

A question is answered by an empty, locked DuckDB that holds nothing but these names. A metadata
file of a table never changes, so each is read once.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.catalog import current_metadata_location
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.domain.errors import CatalogError, QueryFailedError, TableGoneError
from lakehouse_core.domain.table import TableName
from lakehouse_core.gateway.names import full_name, visible_schemas
from lakehouse_core.gateway.questions import SECONDS, SETTINGS, Questions
from lakehouse_core.gateway.trino.definition import definition
from lakehouse_core.gateway.trino.iceberg_types import jdbc_type, trino_type
from lakehouse_core.sql.metadata import mentions_metadata, parse_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.catalog import LakeCatalog
    from lakehouse_core.gateway.questions import Asked
    from lakehouse_core.gateway.trino.session import ClientSession
    from lakehouse_core.routing.request import Sight
    from lakehouse_core.sql.session import Show

_VIEWS = (Path(__file__).parent / "metadata.sql").read_text(encoding="utf-8")
_SHOW = {
    "catalogs": """
        SELECT "catalog" AS "Catalog" FROM lake_catalogs
        WHERE "catalog" LIKE coalesce($like, '%') ESCAPE '\\' ORDER BY 1""",
    "schemas": """
        SELECT "schema" AS "Schema" FROM lake_schemas
        WHERE "catalog" = $catalog AND "schema" LIKE coalesce($like, '%') ESCAPE '\\' ORDER BY 1""",
    "tables": """
        SELECT "table" AS "Table" FROM lake_tables
        WHERE "catalog" = $catalog AND "schema" = $schema
          AND "table" LIKE coalesce($like, '%') ESCAPE '\\' ORDER BY 1""",
    "columns": """
        SELECT "column" AS "Column", "type" AS "Type", '' AS "Extra", '' AS "Comment"
        FROM lake_columns
        WHERE "catalog" = $catalog AND "schema" = $schema AND "table" = $table
        ORDER BY position""",
}
_SESSION = """
    SELECT "name" AS "Name", "value" AS "Value", '' AS "Default", 'varchar' AS "Type",
      'Set by the client; for engines that speak the protocol of Trino' AS "Description"
    FROM (SELECT unnest($names::VARCHAR[]) AS "name", unnest($values::VARCHAR[]) AS "value")
    WHERE "name" LIKE coalesce($like, '%') ESCAPE '\\' ORDER BY 1"""
_ONE_TABLE = ("columns", "create table")
_COLUMNS = pa.schema(
    [
        ("catalog", pa.string()),
        ("schema", pa.string()),
        ("table", pa.string()),
        ("column", pa.string()),
        ("position", pa.int64()),
        ("type", pa.string()),
        ("jdbc_type", pa.int64()),
    ]
)


class Metadata:
    """Answers questions about names."""

    def __init__(self, catalogs: Mapping[str, LakeCatalog], seconds: float = SECONDS) -> None:
        self._catalogs = catalogs
        self._questions = Questions(seconds)
        self._columns_of = lru_cache(maxsize=20_000)(_columns_of)

    def concerns(self, sql: str, session: ClientSession) -> bool:
        """Whether a statement is about names of the lake and nothing else."""
        return mentions_metadata(sql) and self._parsed(sql, session) is not None

    def knows(self, show: Show, session: ClientSession) -> bool:
        """Whether a SHOW is about a catalog of the lake, or the session."""
        if show.what in ("catalogs", "session", "functions"):
            return show.what != "functions"
        catalog, _, _ = _place(show, session)
        return catalog in self._catalogs

    async def query(self, sql: str, session: ClientSession, sight: Sight) -> pa.Table:
        """Answer a query of `information_schema` and its kin.

        Raises:
            QueryFailedError: it cannot be answered.
        """
        text = self._parsed(sql, session)
        if text is None:
            raise QueryFailedError("Only names are told here", code="NOT_SUPPORTED")
        return await self._questions.ask(lambda asked: self._run(asked, text, {}, sight))

    async def show(self, show: Show, session: ClientSession, sight: Sight) -> pa.Table:
        """Answer a SHOW or DESCRIBE.

        Raises:
            QueryFailedError: there is no such schema or table.
        """
        if show.what == "session":
            return await self._session(show, session)
        catalog, schema, table = _place(show, session)
        if schema is None and show.what not in ("schemas", "catalogs"):
            raise QueryFailedError("Schema must be specified when session schema is not set",
                                   code="MISSING_SCHEMA_NAME")  # fmt: skip
        if show.what == "create table":
            name = str(catalog), str(schema), str(table)
            return await self._questions.ask(lambda asked: self._created(name, sight))
        given = {"like": show.like, "catalog": catalog, "schema": schema, "table": table}
        sql = _SHOW[show.what]
        params = {name: value for name, value in given.items() if f"${name}" in sql}
        rows = await self._questions.ask(lambda asked: self._run(asked, sql, params, sight))
        if show.what == "columns" and rows.num_rows == 0:
            raise _no_table(f"{catalog}.{schema}.{table}")
        return rows

    async def _session(self, show: Show, session: ClientSession) -> pa.Table:
        set_by_client = session.properties
        params = {
            "names": list(set_by_client),
            "values": list(set_by_client.values()),
            "like": show.like,
        }

        def run(asked: Asked) -> pa.Table:
            with duck.connect(config=SETTINGS) as database:
                return _read(asked, database, _SESSION, params)

        return await self._questions.ask(run)

    def _created(self, name: tuple[str, str, str], sight: Sight) -> pa.Table:
        """The statement that would create a table, as far as it may be known."""
        catalog, schema, table = name
        wanted = TableName(catalog, tuple(schema.split(".")), table)
        try:
            found = read_metadata(current_metadata_location(self._catalogs[catalog], wanted))
        except TableGoneError as error:
            raise _no_table(".".join(name)) from error
        except CatalogError as error:
            raise QueryFailedError(str(error), code="EXTERNAL") from error
        columns = tuple(field.name for field in found.fields if field.is_column)
        shown = sight.visible(full_name(wanted), columns)
        if shown is None:
            raise _no_table(".".join(name))
        return pa.table({"Create Table": [definition(name, found, shown)]})

    def _parsed(self, sql: str, session: ClientSession) -> str | None:
        return parse_metadata(sql, "trino", session.catalog)

    def _run(self, asked: Asked, sql: str, params: Mapping[str, object], sight: Sight) -> pa.Table:
        try:
            facts = self._facts(sight)
        except CatalogError as error:
            raise QueryFailedError(str(error), code="EXTERNAL") from error
        with duck.connect(config=SETTINGS) as database:
            for name, rows in facts.items():
                database.register(f"{name}_given", rows)
                database.execute(f'CREATE TABLE {name} AS FROM "{name}_given"')
                database.unregister(f"{name}_given")
            database.execute(_VIEWS)
            database.execute("SET enable_external_access = false; SET lock_configuration = true")
            return _read(asked, database, sql, params)

    def _facts(self, sight: Sight) -> dict[str, pa.Table]:
        names, columns, schemas = list(self._catalogs), [_COLUMNS.empty_table()], []
        for name, catalog in self._catalogs.items():
            listed = catalog.tables()
            tables = self._tables(catalog, listed, sight)
            columns += tables.values()
            shown = sorted(visible_schemas(catalog, listed, tables, sight))
            schemas += [{"catalog": name, "schema": schema} for schema in shown]
        schemas += [{"catalog": name, "schema": "information_schema"} for name in names]
        return {
            "lake_catalogs": pa.table({"catalog": pa.array([*names, "system"], pa.string())}),
            "lake_schemas": pa.Table.from_pylist(
                schemas, schema=pa.schema([("catalog", pa.string()), ("schema", pa.string())])
            ),
            "lake_columns": pa.concat_tables(columns),
        }

    def _tables(
        self, catalog: LakeCatalog, listed: Mapping[TableName, str], sight: Sight
    ) -> dict[tuple[str, str], pa.Table]:
        """The columns of each table that may be known of, by schema and name."""
        found = {}
        for table, location in listed.items():
            schema = ".".join(table.namespace)
            try:
                columns = self._columns_of(catalog.name, schema, table.name, location)
            except CatalogError:
                continue  # one table that cannot be read hides no other
            all_of_them = tuple(columns["column"].to_pylist())
            shown = sight.visible(full_name(table), all_of_them)
            if shown is None:
                continue
            if len(shown) < len(all_of_them):
                columns = columns.filter([column in shown for column in all_of_them])
            found[schema, table.name] = columns
        return found


def _read(
    asked: Asked, database: duckdb.DuckDBPyConnection, sql: str, params: Mapping[str, object]
) -> pa.Table:
    try:
        return asked.read(database, sql, params)
    except duckdb.Error as error:
        message = str(error).partition("\nLINE ")[0]
        raise QueryFailedError(message, code=type(error).__name__) from error


def _no_table(name: str) -> QueryFailedError:
    return QueryFailedError(f"Table '{name}' does not exist", code="TABLE_NOT_FOUND")


def _columns_of(catalog: str, schema: str, table: str, location: str) -> pa.Table:
    fields = [field for field in read_metadata(location).fields if field.is_column]
    types = [trino_type(field.type) for field in fields]
    count = len(fields)
    return pa.table(
        {
            "catalog": [catalog] * count,
            "schema": [schema] * count,
            "table": [table] * count,
            "column": [field.name for field in fields],
            "position": list(range(1, count + 1)),
            "type": types,
            "jdbc_type": [jdbc_type(kind) for kind in types],
        },
        schema=_COLUMNS,
    )


def _place(show: Show, session: ClientSession) -> tuple[str | None, str | None, str | None]:
    """Catalog, schema and table a SHOW is about."""
    names = list(show.names)
    table = names.pop() if show.what in _ONE_TABLE and names else None
    if show.what == "schemas":
        return (names[0] if names else session.catalog), None, None
    schema = names.pop() if names else session.schema
    catalog = names.pop() if names else session.catalog
    return catalog, schema, table

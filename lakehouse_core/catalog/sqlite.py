"""The Iceberg JDBC catalog on an SQLite file, read directly.

A look-up through SQLAlchemy costs a hundred times the query itself, and the DuckDB engine makes
one per table and query. The tables of the catalog are fixed by Iceberg's JDBC catalog (schema V0
and V1; V1 adds `iceberg_type`, which tells views from tables).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from lakehouse_core.catalog.port import Survey
from lakehouse_core.domain.errors import CatalogError, CatalogUnavailableError, TableGoneError
from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.catalog import Catalog

_BUSY_SECONDS = 5.0
_HALF_DONE = frozenset({"SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY"})
_TABLES = "SELECT * FROM iceberg_tables WHERE catalog_name = ?"
_TABLES_IN = f"{_TABLES} AND table_namespace = ?"
_TABLE = f"{_TABLES_IN} AND table_name = ?"
_NAMESPACES = """
SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1
UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1
ORDER BY 1
"""


class SqliteLake:
    """A `LakeCatalog` on the SQLite file that Spark, Trino and pyiceberg share."""

    def __init__(self, name: str, path: Path, warehouse: Path) -> None:
        self.name = name
        self._path = path
        self._warehouse = warehouse

    def namespaces(self) -> list[tuple[str, ...]]:
        """See `LakeCatalog.namespaces`."""
        return [_levels(row["namespace"]) for row in self._query(_NAMESPACES, self.name)]

    def tables(self, namespace: tuple[str, ...] | None = None) -> dict[TableName, str]:
        """See `LakeCatalog.tables`: one query."""
        if namespace is None:
            rows = self._query(_TABLES, self.name)
        else:
            rows = self._query(_TABLES_IN, self.name, ".".join(namespace))
        return {
            TableName(self.name, _levels(row["table_namespace"]), row["table_name"]): location
            for row in rows
            if (location := _location(row))
        }

    def survey(self) -> Survey:
        """See `LakeCatalog.survey`: whoever reads the file sees all of it."""
        return Survey(tables=self.tables())

    def metadata_location(self, table: TableName) -> str:
        """See `LakeCatalog.metadata_location`: one look-up by primary key."""
        rows = self._query(_TABLE, self.name, ".".join(table.namespace), table.name)
        location = _location(rows[0]) if rows else None
        if location is None:
            raise TableGoneError(f"Table {table} is not in catalog {self.name!r} ({self._path})")
        return location

    def iceberg(self) -> Catalog:
        """See `LakeCatalog.iceberg`."""
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 pulls in SQLAlchemy

        uri, warehouse = f"sqlite:///{self._path}", f"file://{self._warehouse}"
        return SqlCatalog(self.name, uri=uri, warehouse=warehouse)

    def close(self) -> None:
        """See `LakeCatalog.close`: each query has a connection of its own."""

    def _query(self, sql: str, *values: str) -> list[dict[str, Any]]:
        try:
            try:
                return self._read("ro", sql, values)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname not in _HALF_DONE:
                    raise
                # SQLite rolls back what a killed writer left; only who may write can let it.
                return self._read("rw", sql, values)
        except sqlite3.OperationalError as error:
            raise CatalogUnavailableError(self._why(error)) from error
        except sqlite3.Error as error:
            raise CatalogError(f"Catalog file {self._path} cannot be read: {error}") from error

    def _read(self, mode: str, sql: str, values: tuple[str, ...]) -> list[dict[str, Any]]:
        # A connection per query: it costs 0.1 ms and sees a catalog file that was replaced.
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(uri, timeout=_BUSY_SECONDS, uri=True)) as connection:
            cursor = connection.execute(sql, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def _why(self, error: sqlite3.OperationalError) -> str:
        if not self._path.exists():
            return f"Catalog file {self._path} does not exist: build the lake first (`lakehelm up`)"
        return f"Catalog file {self._path} does not answer: {error}"


def _levels(namespace: str) -> tuple[str, ...]:
    # Iceberg's JDBC catalog joins the levels of a namespace with dots and cannot escape one.
    return tuple(namespace.split("."))


def _location(row: dict[str, Any]) -> str | None:
    if row.get("iceberg_type") not in (None, "TABLE"):
        return None
    return row["metadata_location"] or None

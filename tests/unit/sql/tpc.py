"""TPC-H and TPC-DS with what DuckDB itself says each query needs.

The oracle shares nothing with sqlglot: a table or column is used when the query no longer binds
once it is renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from lakehouse_core.duck import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

MAKE_TABLES = {"tpch": "CALL dbgen(sf = 0)", "tpcds": "CALL dsdgen(sf = 0)"}
QUERIES = {
    "tpch": "SELECT query FROM tpch_queries() ORDER BY query_nr",
    "tpcds": "SELECT query FROM tpcds_queries() ORDER BY query_nr",
}
COLUMNS = "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
AWAY = "renamed_away"


@dataclass(frozen=True, slots=True)
class Query:
    """One query and what it cannot do without."""

    sql: str
    tables: frozenset[str]
    columns: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark's queries in order, and its tables with their columns."""

    schema: dict[str, list[str]]
    queries: list[Query]


def texts(name: str) -> list[str]:
    """The queries of a benchmark."""
    with connect(extensions=(name,)) as connection:
        return [row[0] for row in connection.execute(QUERIES[name]).fetchall()]


def load(name: str) -> Benchmark:
    """A benchmark with the oracle's answers."""
    with connect(extensions=(name,)) as connection:
        connection.execute(MAKE_TABLES[name])
        connection.execute("PRAGMA disable_optimizer")
        schema: dict[str, list[str]] = {}
        for table, column in connection.execute(COLUMNS).fetchall():
            schema.setdefault(table, []).append(column)
        sqls = [row[0] for row in connection.execute(QUERIES[name]).fetchall()]
        assert all(_binds(connection, sql) for sql in sqls)
        tables: list[set[str]] = [set() for _ in sqls]
        columns: list[set[tuple[str, str]]] = [set() for _ in sqls]
        for table, names in schema.items():
            for number in _needing(connection, table, None, sqls):
                tables[number].add(table)
            for column in names:
                for number in _needing(connection, table, column, sqls):
                    columns[number].add((table, column))
        return Benchmark(
            schema,
            [
                Query(sql, frozenset(tables[number]), frozenset(columns[number]))
                for number, sql in enumerate(sqls)
            ],
        )


def _needing(
    connection: duckdb.DuckDBPyConnection, table: str, column: str | None, sqls: list[str]
) -> Iterator[int]:
    """Numbers of the queries that do not bind without a table or column."""
    name = column or table
    candidates = [number for number, sql in enumerate(sqls) if name in sql.lower()]
    if not candidates:
        return
    there, back = _renaming(table, column)
    connection.execute(there)
    for number in candidates:
        if not _binds(connection, sqls[number]):
            yield number
    connection.execute(back)


def _renaming(table: str, column: str | None) -> tuple[str, str]:
    if column is None:
        return f"ALTER TABLE {table} RENAME TO {AWAY}", f"ALTER TABLE {AWAY} RENAME TO {table}"
    change = f"ALTER TABLE {table} RENAME"
    return f"{change} {column} TO {AWAY}", f"{change} {AWAY} TO {column}"


def _binds(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {sql}")
    except (duckdb.BinderException, duckdb.CatalogException):
        return False
    return True

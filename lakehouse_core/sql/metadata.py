"""Queries of `information_schema` and its kin, turned into queries of plain tables.

    parse_metadata("SELECT table_name FROM information_schema.tables", "trino", "lake")
    # SELECT table_name FROM (
    #   SELECT * FROM "information_schema.tables" WHERE table_catalog = 'lake') AS tables

Clients ask for names of tables in this way, whichever engine serves them. Only a statement that
reads nothing but such tables is turned; all others are none of this module's business.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

TARGET = "duckdb"
INFORMATION_SCHEMA = ("schemata", "tables", "columns", "views", "roles", "enabled_roles",
                      "applicable_roles", "table_privileges")  # fmt: skip
SYSTEM = {
    "jdbc": ("catalogs", "schemas", "tables", "columns", "table_types", "types"),
    "metadata": ("catalogs", "table_comments", "materialized_views"),
}
_WORDS = ("information_schema", "system.", '"system"')
_LONGEST = 64 * 1024  # characters; nobody asks for names at such length


def mentions_metadata(sql: str) -> bool:
    """Whether a text may be about metadata; cheap, and right when it says no."""
    if len(sql) > _LONGEST:
        return False
    lowered = sql.lower()
    return any(word in lowered for word in _WORDS)


def parse_metadata(sql: str, dialect: str, default_catalog: str | None) -> str | None:
    """The statement for a DuckDB that holds the tables above; None: it is about something else."""
    try:
        trees = sqlglot.parse(sql, dialect=dialect)
    except (SqlglotError, RecursionError):
        return None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query) or tree.find(exp.DML, exp.DDL, exp.Command, exp.Into):
        return None
    common = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    tables = [t for t in tree.find_all(exp.Table) if t.db or t.name not in common]
    sources = [_source(table, default_catalog) for table in tables]
    if not sources or any(source is None for source in sources):
        return None
    for table, source in zip(tables, sources, strict=True):
        assert source is not None  # noqa: S101 looked at above
        table.replace(source.subquery(table.alias_or_name, copy=False))
    try:
        return tree.sql(dialect=TARGET)
    except (SqlglotError, RecursionError):
        return None


def _source(table: exp.Table, default_catalog: str | None) -> exp.Select | None:
    if not isinstance(table.this, exp.Identifier):
        return None
    catalog, schema, name = table.catalog.lower(), table.db.lower(), table.name.lower()
    if schema == "information_schema" and name in INFORMATION_SCHEMA:
        column = "catalog_name" if name == "schemata" else "table_catalog"
        found = exp.select("*").from_(_plain(f"{schema}.{name}"))
        wanted = catalog or default_catalog
        if wanted is None:
            return None
        if name not in ("roles", "enabled_roles", "applicable_roles"):
            found = found.where(exp.column(column).eq(exp.Literal.string(wanted)))
        return found
    if catalog == "system" and name in SYSTEM.get(schema, ()):
        return exp.select("*").from_(_plain(f"{schema}.{name}"))
    return None


def _plain(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))

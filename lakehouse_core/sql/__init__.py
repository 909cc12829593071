"""SQL understanding through sqlglot: fingerprint, usage, statement kind.

inspect("SELECT a FROM t WHERE b = 5", "trino").columns
# ColumnUse("t", "a", "project"), ColumnUse("t", "b", "filter_eq")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.sql.dialect import dialect_names
from lakehouse_core.sql.inspector import Inspector, default_inspector
from lakehouse_core.sql.records import (
    ColumnUse,
    Fingerprint,
    Inspection,
    LiteralValue,
    Predicate,
    Role,
    UnparsedReason,
)
from lakehouse_core.sql.schema import Schema

if TYPE_CHECKING:
    from lakehouse_core.sql.inspector import Columns

__all__ = [
    "ColumnUse",
    "Fingerprint",
    "Inspection",
    "Inspector",
    "LiteralValue",
    "Predicate",
    "Role",
    "Schema",
    "UnparsedReason",
    "dialect_names",
    "fingerprint",
    "inspect",
]


def fingerprint(sql: str, dialect: str) -> Fingerprint:
    """The template of a statement, through the inspector this process shares."""
    return default_inspector().fingerprint(sql, dialect)


def inspect(
    sql: str,
    dialect: str,
    *,
    default_catalog: str | None = None,
    default_namespace: tuple[str, ...] = (),
    schema: Columns | None = None,
    literals: bool = False,
) -> Inspection:
    """Template, tables and columns of a statement, through the inspector this process shares.

    Never raises on account of the text or the dialect: what is not understood has `error` set and
    still a stable template. See `Inspector.inspect` for the arguments.
    """
    return default_inspector().inspect(
        sql,
        dialect,
        default_catalog=default_catalog,
        default_namespace=default_namespace,
        schema=schema,
        literals=literals,
    )

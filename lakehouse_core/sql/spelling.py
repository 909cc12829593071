"""Names as the lake spells them, whatever engine told them.

Snowflake folds names that are not quoted to upper case, other engines and Iceberg catalogs keep
them lower: LAKE.DEMO.T and lake.demo.t are one table. A part all in upper case was folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from lakehouse_core.domain.table import join_name, split_name

if TYPE_CHECKING:
    from collections.abc import Mapping

UPPER_CASE_DIALECTS = frozenset({"snowflake"})
_FULL_NAME = 3


def linked_databases(catalog: str, database: str | None) -> dict[str, str]:
    """Our catalog by what an engine that folds names calls it, however people wrote that down."""
    name = database or catalog
    return {name: catalog, name.upper(): catalog}


def lake_table(name: str, databases: Mapping[str, str]) -> str:
    """A table's name as its engine folded it, in the lake's spelling.

    Args:
        name: of a table, with dots.
        databases: our catalogs by the names of the databases that are linked to them.
    """
    try:
        parts = split_name(name)
    except ValueError:
        return name  # not a name: kept as it was told
    folded = tuple(lake_column(part) for part in parts)
    catalog = databases.get(parts[0]) if len(parts) >= _FULL_NAME else None
    return join_name((catalog, *folded[1:]) if catalog else folded)


def lake_column(name: str) -> str:
    """The same for a column, or one part of a name."""
    return name.lower() if name == name.upper() else name


def name_in(dialect: str, name: str) -> str:
    """One name as a statement has it: quoted where it must be."""
    return exp.to_identifier(name).sql(dialect=dialect)

"""Which names of the lake somebody may know of, when no engine and hence no guard is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.catalog import LakeCatalog
    from lakehouse_core.domain.table import TableName
    from lakehouse_core.routing.request import Sight


def full_name(table: TableName) -> tuple[str, ...]:
    """A table's name as a `Sight` wants it."""
    return tuple(part.lower() for part in (table.catalog, *table.namespace, table.name))


def visible_schemas(
    catalog: LakeCatalog,
    listed: Iterable[TableName],
    shown: Iterable[tuple[str, str]],
    sight: Sight,
) -> set[str]:
    """Schemas that may be known of: those of tables that are, and empty ones.

    Args:
        catalog: whose schemas.
        listed: all its tables.
        shown: schema and name of the tables that may be known of.
        sight: whose eyes.

    Raises:
        CatalogError: the catalog cannot be read.
    """
    schemas = {schema for schema, _ in shown}
    used = {one.namespace for one in listed}
    for levels in catalog.namespaces():
        whole = tuple(part.lower() for part in (catalog.name, *levels, "*"))
        if levels not in used and sight.visible(whole, ()) is not None:
            schemas.add(".".join(levels))
    return schemas

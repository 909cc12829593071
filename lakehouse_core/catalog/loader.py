"""From the configuration to an open catalog; a new catalog type is one entry in `LOADERS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.config.catalogs import CatalogConfig, RestCatalog, SqliteCatalog


def _open_sqlite(name: str, config: SqliteCatalog) -> LakeCatalog:
    return SqliteLake(name, config.path, config.warehouse)


def _open_rest(name: str, config: RestCatalog) -> LakeCatalog:
    from lakehouse_core.catalog.rest import RestLake  # noqa: PLC0415 an HTTP client

    return RestLake(name, config)


LOADERS: Mapping[str, Callable[[str, Any], LakeCatalog]] = {
    "sqlite": _open_sqlite,
    "rest": _open_rest,
}


def open_catalog(name: str, config: CatalogConfig) -> LakeCatalog:
    """Open one configured catalog; nothing is read until it is asked something."""
    return LOADERS[config.type](name, config)


def current_metadata_location(catalog: LakeCatalog, table: TableName | str) -> str:
    """Where the table's metadata is at this moment; never from a cache.

    Args:
        catalog: an open catalog.
        table: a table of it, or its id (`lake.demo.events`).

    Raises:
        TableGoneError: the catalog has no such table.
        CatalogUnavailableError: the catalog does not answer.
        CatalogRefusedError: it does not let us read the table.
    """
    name = TableName.parse(table) if isinstance(table, str) else table
    return catalog.metadata_location(name)

"""The lake's catalog as the rest of Lakehelm sees it: names and current metadata locations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from lakehouse_core.domain.table import TableName


class LakeCatalog(Protocol):
    """A catalog that is open; every call sees the present state, nothing is kept between calls."""

    name: str

    def namespaces(self) -> list[tuple[str, ...]]:
        """All namespaces, nested ones as tuples of their levels.

        Raises:
            CatalogUnavailableError: the catalog does not answer.
        """
        ...

    def tables(self) -> dict[TableName, str]:
        """All tables with their current metadata location, in as few calls as possible.

        Raises:
            CatalogUnavailableError: the catalog does not answer.
        """
        ...

    def metadata_location(self, table: TableName) -> str:
        """Where the table's current metadata file is.

        Raises:
            TableGoneError: the catalog has no such table.
            CatalogUnavailableError: the catalog does not answer.
        """
        ...

    def iceberg(self) -> Catalog:
        """The same catalog through pyiceberg, for whoever writes; the caller closes it."""
        ...

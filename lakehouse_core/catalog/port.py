"""The lake's catalog as the rest of Lakehelm sees it: names and current metadata locations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog

    from lakehouse_core.domain.table import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a catalog lists, and what it lists but does not let us see.

    Attributes:
        tables: current metadata locations.
        unreadable: tables whose location the catalog does not tell, with its reason.
        closed: namespaces that we may not look into, with the reason: nobody knows what is in them.
    """

    tables: dict[TableName, str]
    unreadable: Mapping[TableName, str] = field(default_factory=dict)
    closed: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def hides(self, namespace: tuple[str, ...]) -> bool:
        """Whether a namespace is, or is below, one that we may not look into."""
        return any(namespace[: len(one)] == one for one in self.closed)


class LakeCatalog(Protocol):
    """A catalog that is open; every call tells the present state, never a remembered one.

    Safe to use from many threads.
    """

    name: str

    def namespaces(self) -> list[tuple[str, ...]]:
        """All namespaces, nested ones as tuples of their levels.

        Raises:
            CatalogUnavailableError: the catalog does not answer.
            CatalogRefusedError: it does not let us in.
        """
        ...

    def tables(self, namespace: tuple[str, ...] | None = None) -> dict[TableName, str]:
        """Tables with their current metadata location, in as few calls as possible.

        Args:
            namespace: only those right in it.

        Raises:
            CatalogUnavailableError: the catalog does not answer.
            CatalogRefusedError: it does not let us in.
        """
        ...

    def survey(self) -> Survey:
        """All tables, also those whose location cannot be told.

        Raises:
            CatalogUnavailableError: the catalog does not answer.
            CatalogRefusedError: it does not let us in.
        """
        ...

    def metadata_location(self, table: TableName) -> str:
        """Where the table's current metadata file is.

        Raises:
            TableGoneError: the catalog has no such table.
            CatalogUnavailableError: the catalog does not answer.
            CatalogRefusedError: it does not let us read the table.
        """
        ...

    def iceberg(self) -> Catalog:
        """The same catalog through pyiceberg, for whoever writes; the caller closes it."""
        ...

    def close(self) -> None:
        """Let connections go; the catalog may be used again."""
        ...

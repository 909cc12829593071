"""Tables and columns of the lake as the guard needs them: a name that is not here is no table.

A metadata file never changes once it is written, so each is read once; after that a look costs one
listing per catalog.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.domain.errors import CatalogError
from lakehouse_core.sql.guard import Relation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.catalog import LakeCatalog
    from lakehouse_core.governance.guard import Guard

_log = structlog.get_logger(__name__)


class LakeRelations:
    """Reads the tables of some catalogs."""

    def __init__(self, catalogs: Mapping[str, LakeCatalog]) -> None:
        self._catalogs = catalogs
        self._relation_at = lru_cache(maxsize=20_000)(_relation_at)
        self._told: dict[str, Relation] = {}

    def tell(self, guard: Guard) -> None:
        """Let a guard know the tables as they are now, when a role depends on it."""
        if not guard.needs_relations:
            return
        try:
            found = self.read()
        except CatalogError as error:
            _log.warning("the guard keeps the tables it knows", error=str(error))
            return
        if found != self._told:
            guard.reload(relations=found)
            self._told = found

    def read(self) -> dict[str, Relation]:
        """Every table by its full name in lower case; one that cannot be read is left out.

        Raises:
            CatalogError: a catalog does not answer; what was known before stays true then.
        """
        found: dict[str, Relation] = {}
        for catalog in self._catalogs.values():
            for table, location in catalog.tables().items():
                parts = (table.catalog, *table.namespace, table.name)
                try:
                    found[".".join(parts).lower()] = self._relation_at(location)
                except CatalogError:
                    continue  # one broken table shuts out no other
        return found


def _relation_at(location: str) -> Relation:
    return Relation(tuple(f.name for f in read_metadata(location).fields if f.is_column))

"""Bounds of the whole lake kept in memory, and brought up to date by looking at the catalogs.

    lake = LakeBounds(catalogs, home / "cache" / "iceberg")
    lake.refresh()            # off the event loop, again and again
    lake.memory.get("lake.demo.events")

A look costs one listing per catalog. A table whose metadata location did not change is left alone;
of one that changed only manifests that nobody has read before are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.estimate_tables import BoundsMemory
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.domain.errors import CatalogError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.domain.table import TableName

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look brought: tables read, tables let go, and what could not be read with the why."""

    read: int
    gone: int
    unreadable: Mapping[str, str]


class LakeBounds:
    """Keeps the bounds of every table; for any number of threads."""

    def __init__(
        self, catalogs: Mapping[str, LakeCatalog], folder: Path, memory: BoundsMemory | None = None
    ) -> None:
        """Keep bounds.

        Args:
            catalogs: by name.
            folder: copies of manifests, one folder per catalog; shared with who else reads tables.
            memory: where they are kept.
        """
        self.memory = memory or BoundsMemory()
        self._catalogs = catalogs
        self._avro = AvroReader()
        self._readers = {
            name: TableReader(catalog, folder / name, self._avro)
            for name, catalog in catalogs.items()
        }
        self._seen: dict[str, str] = {}  # table → metadata location, also of those that gave way
        self._looking = Lock()
        self._is_closed = False

    def refresh(self) -> Looked:
        """Read what is new; a catalog that does not answer leaves what is known of it."""
        with self._looking:
            return self._look()

    def _look(self) -> Looked:
        read, gone = 0, 0
        unreadable: dict[str, str] = {}
        missed = self.memory.take_missed()
        for name, catalog in self._catalogs.items():
            try:
                listed = {str(table): (table, at) for table, at in catalog.tables().items()}
            except CatalogError as error:
                unreadable[name] = str(error)
                continue
            for table_id in [one for one in self._seen if one.partition(".")[0] == name]:
                if table_id not in listed:
                    gone += 1
                    del self._seen[table_id]
                    self.memory.forget(table_id)
            # Those that a statement waits for come first.
            for table_id in sorted(listed, key=lambda one: one not in missed):
                table, location = listed[table_id]
                if self._is_closed:
                    return Looked(read, gone, unreadable)
                if self._seen.get(table_id) == location and table_id not in missed:
                    continue
                problem = self._read(name, table, location)
                read += problem is None
                if problem is not None:
                    unreadable[table_id] = problem
        if unreadable:
            _log.info("scans not estimated", tables=len(unreadable), first=min(unreadable))
        return Looked(read, gone, unreadable)

    def close(self) -> None:
        """Stop at the next table, and let go of what reads."""
        self._is_closed = True
        self._avro.close()

    def _read(self, catalog: str, table: TableName, location: str) -> str | None:
        """Keep a table's bounds; why not, when it cannot be read."""
        table_id, reader = str(table), self._readers[catalog]
        self._seen[table_id] = location  # one that is broken is not read again until it changes
        try:
            self.memory.keep(table_id, reader.bounds(reader.read(table, location)))
        except (CatalogError, ValueError) as error:
            self.memory.forget(table_id)
            return str(error)
        return None

"""One table from its catalog entry to its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.catalog.cache import ManifestCache
from lakehouse_core.catalog.estimate_tables import load_bounds
from lakehouse_core.catalog.files import live_files
from lakehouse_core.catalog.manifest_list import read_manifest_list
from lakehouse_core.catalog.measure import Reading
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.catalog.reachable import ReachableFiles
from lakehouse_core.domain.errors import MetadataUnreadableError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from lakehouse_core.catalog.avro_reader import AvroReader
    from lakehouse_core.catalog.estimate_tables import TableBounds
    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.domain.table import TableName

# A busy table commits and cleans up while we read it; a third miss in a row is a broken table.
_ATTEMPTS = 3


class TableReader:
    """Reads tables of one catalog; keeps what it learned below a cache folder.

    reader = TableReader(catalog, home / "cache")
    reading = reader.read(TableName.parse("lake.demo.events"))
    metrics = measure(reading, small_file_bytes=32 * MIB, collected_at=utc_now())
    """

    def __init__(self, catalog: LakeCatalog, cache: Path, avro: AvroReader) -> None:
        self._catalog = catalog
        self._avro = avro
        self._manifests = ManifestCache(self._avro, cache / "manifests")
        self._reachable = ReachableFiles(cache / "reachable")

    def read(self, table: TableName, location: str | None = None) -> Reading:
        """Read the table as it is now.

        Args:
            table: which one.
            location: its current metadata location, when the caller has just asked the catalog.

        Raises:
            TableGoneError: it was dropped or renamed meanwhile.
            MetadataUnreadableError: a file of its metadata is missing or broken; names it.
            CatalogUnavailableError: the catalog does not answer.
        """
        location = location or self._catalog.metadata_location(table)
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._read(table, location)
            except MetadataUnreadableError:
                # Perhaps a commit replaced these files, or a drop took them: the catalog knows.
                newer = self._catalog.metadata_location(table)
                if newer == location:
                    raise
                location = newer
        return self._read(table, location)

    def bounds(self, reading: Reading, columns: Collection[str] | None = None) -> TableBounds:
        """Bounds of a table's columns, for estimating scans; see `load_bounds`."""
        return load_bounds(self._manifests, reading, columns)

    def is_intact(self, table: TableName, location: str) -> bool:
        """Whether a table whose location did not change can be left alone."""
        return self._reachable.is_intact(str(table), location)

    def _read(self, table: TableName, location: str) -> Reading:
        metadata = read_metadata(location)
        manifests = read_manifest_list(self._avro, metadata)
        leading = metadata.sort_order.leading if metadata.sort_order else None
        rows, counts = self._manifests.entries(
            metadata.table_uuid, manifests, leading.field_id if leading else None
        )
        files = live_files(rows, counts, manifests, metadata.partition_names)
        lists = [metadata.current.manifest_list] if metadata.current else []
        others = [*(one for one in lists if one), *(one.path for one in manifests)]
        self._reachable.remember(str(table), location, others)
        return Reading(str(table), metadata, manifests, files)

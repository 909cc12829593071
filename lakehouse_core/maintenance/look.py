"""A table as it is at this moment: read from its catalog, never from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.contents import reachable_files, written_partitions
from lakehouse_core.catalog.loader import open_catalog
from lakehouse_core.catalog.measure import measure
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.catalog.rollback import roll_back
from lakehouse_core.domain.errors import CatalogError, MetadataUnreadableError, TableGoneError
from lakehouse_core.domain.table import TableName
from lakehouse_core.health import thresholds_for
from lakehouse_core.maintenance.replan import columns_of, planned

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from lakehouse_core.catalog.contents import WrittenPartition
    from lakehouse_core.catalog.files import LiveFiles
    from lakehouse_core.catalog.measure import Reading
    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.catalog.port import LakeCatalog
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.table import TableMetrics
    from lakehouse_core.maintenance.replan import Read

# Where a table may keep files beside its own folder.
_FOLDER_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was seen.

    Attributes:
        files: location → recorded size of all that is reachable; None when that was not asked.
    """

    at: datetime
    reading: Reading
    metrics: TableMetrics
    files: Mapping[str, int | None] | None = None

    @property
    def metadata(self) -> TableMetadata:
        """What its metadata file says."""
        return self.reading.metadata

    @property
    def live(self) -> LiveFiles:
        """The live files of its current snapshot."""
        return self.reading.files


class Lookout:
    """Looks at tables of the configured catalogs."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._avro = AvroReader()
        self._readers: dict[str, TableReader] = {}
        self._catalogs: dict[str, LakeCatalog] = {}
        # By metadata file, which is never written again: the fleet is read once, then what changed.
        self._folders: dict[str, tuple[str, ...]] = {}

    def now(self) -> datetime:
        """The present moment."""
        return self._clock()

    def look(self, table_id: str, *, is_whole: bool = False) -> Look:
        """Read a table; `is_whole` reads every manifest of every snapshot too.

        Raises:
            TableGoneError: there is no such table.
            MetadataUnreadableError: a file of its metadata is missing or broken; names it.
            CatalogUnavailableError: the catalog does not answer.
        """
        try:
            return self._look(table_id, is_whole=is_whole)
        except MetadataUnreadableError:
            # Much hangs on it: a disk that stumbled once is not a table that is damaged.
            return self._look(table_id, is_whole=is_whole)

    def _look(self, table_id: str, *, is_whole: bool) -> Look:
        name = TableName.parse(table_id)
        at = self._clock()
        reading = self._reader(name.catalog).read(name)
        limit = thresholds_for(self._config.health, table_id).small_file_bytes
        return Look(
            at=at,
            reading=reading,
            metrics=measure(reading, small_file_bytes=limit, collected_at=at),
            files=reachable_files(self._avro, reading.metadata) if is_whole else None,
        )

    def metadata(self, table_id: str) -> TableMetadata:
        """The table's metadata file alone.

        Raises:
            CatalogError: as `look`.
        """
        name = TableName.parse(table_id)
        return read_metadata(self._catalog(name.catalog).metadata_location(name))

    def written(self, look: Look, snapshot_ids: Collection[int]) -> list[WrittenPartition]:
        """The partitions these commits changed.

        Raises:
            MetadataUnreadableError: a manifest is missing or broken; names it.
        """
        return written_partitions(self._avro, look.metadata, snapshot_ids) if snapshot_ids else []

    def planned(self, look: Look, reads: Sequence[Read]) -> dict[str, float]:
        """Files and bytes that readers of a table plan at this look; see `replan`.

        Raises:
            MetadataUnreadableError: a manifest is missing or broken; names it.
        """
        if not reads:
            return {}
        reader = self._reader(TableName.parse(look.reading.table_id).catalog)
        return planned(reader.bounds(look.reading, columns_of(reads)), reads)

    def roll_back(self, table_id: str, *, head: int, to: int) -> bool:
        """Make an earlier snapshot the current one; False when `head` is not current any more.

        Raises:
            CatalogError: the catalog does not answer, or refuses it; says why.
        """
        name = TableName.parse(table_id)
        return roll_back(self._catalog(name.catalog), name, head=head, to=to)

    def folders(self) -> dict[str, tuple[str, ...]]:
        """Every table of every catalog, and the folders it keeps files in.

        Raises:
            CatalogError: a catalog does not answer, or a table's metadata cannot be read: then
                nobody knows whose files are whose.
        """
        found: dict[str, tuple[str, ...]] = {}
        known, self._folders = self._folders, {}
        for catalog_name in self._config.catalogs:
            for table, location in self._catalog(catalog_name).tables().items():
                try:
                    folders = known.get(location) or table_folders(read_metadata(location))
                except MetadataUnreadableError as error:
                    if self._is_gone(catalog_name, table):
                        continue
                    raise CatalogError(
                        f"Table {table} cannot be read, so that nobody knows which files are its "
                        f"own: {error}"
                    ) from error
                found[str(table)] = self._folders[location] = folders
        return found

    def close(self) -> None:
        """Let DuckDB go."""
        self._avro.close()

    def _is_gone(self, catalog_name: str, table: TableName) -> bool:
        try:
            self._catalog(catalog_name).metadata_location(table)
        except TableGoneError:
            return True
        return False

    def _catalog(self, name: str) -> LakeCatalog:
        if name not in self._config.catalogs:
            raise TableGoneError(f"Catalog {name!r} is not configured")
        if name not in self._catalogs:
            self._catalogs[name] = open_catalog(name, self._config.catalogs[name])
        return self._catalogs[name]

    def _reader(self, name: str) -> TableReader:
        if name not in self._readers:
            cache = self._config.home / "cache" / "iceberg" / name
            self._readers[name] = TableReader(self._catalog(name), cache, self._avro)
        return self._readers[name]


def table_folders(metadata: TableMetadata) -> tuple[str, ...]:
    """The folders a table keeps files in."""
    more = (metadata.properties.get(name) for name in _FOLDER_PROPERTIES)
    return tuple(dict.fromkeys([metadata.table_location, *(one for one in more if one)]))

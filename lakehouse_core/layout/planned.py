"""The files of a table at any snapshot that is kept, with their bounds: what planning would see."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.cache import ManifestCache
from lakehouse_core.catalog.estimate_partition import partition_telling
from lakehouse_core.catalog.estimate_tables import load_bounds
from lakehouse_core.catalog.files import live_files
from lakehouse_core.catalog.loader import open_catalog
from lakehouse_core.catalog.manifest_list import read_manifest_list
from lakehouse_core.catalog.measure import Reading
from lakehouse_core.catalog.metadata import read_metadata
from lakehouse_core.domain.errors import NotFoundError, TableGoneError
from lakehouse_core.domain.table import TableName

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from lakehouse_core.catalog.estimate import FileBounds
    from lakehouse_core.catalog.estimate_partition import PartitionTelling
    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.config.models import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partitions of a table's data files.

    Attributes:
        of_file: the partition of every data file by its location, numbered from 0.
        sizes: bytes of each.
        telling: what each says of its columns.
    """

    of_file: dict[str, int]
    sizes: NDArray[np.float64]
    telling: PartitionTelling


class LakeFiles:
    """Reads tables of the configured catalogs; shares the manifest cache with the collectors."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._avro = AvroReader()

    def metadata(self, table_id: str) -> TableMetadata:
        """A table's present metadata.

        Raises:
            CatalogError: the catalog does not answer, or the file is broken; names it.
        """
        name = TableName.parse(table_id)
        if name.catalog not in self._config.catalogs:
            raise TableGoneError(f"Catalog {name.catalog!r} is not configured")
        catalog = open_catalog(name.catalog, self._config.catalogs[name.catalog])
        try:
            return read_metadata(catalog.metadata_location(name))
        finally:
            catalog.close()

    def read(
        self, table_id: str, metadata: TableMetadata, snapshot_id: int | None = None
    ) -> Reading:
        """The live files of a snapshot; of the current one by default.

        Raises:
            NotFoundError: the snapshot has expired.
            MetadataUnreadableError: a manifest is missing or broken; names it.
        """
        at = metadata
        if snapshot_id is not None:
            found = [one for one in metadata.snapshots if one.snapshot_id == snapshot_id]
            if not found:
                raise NotFoundError(f"Snapshot {snapshot_id} of {table_id} is not kept any more")
            at = replace(metadata, current=found[0])
        manifests = read_manifest_list(self._avro, at)
        rows, counts = self._cache(table_id).entries(at.table_uuid, manifests, None)
        files = live_files(rows, counts, manifests, at.partition_names)
        return Reading(table_id, at, manifests, files)

    def bounds(self, reading: Reading, columns: Collection[str]) -> FileBounds:
        """Sizes and bounds of the data files of a reading."""
        return load_bounds(self._cache(reading.table_id), reading, columns).data

    def partitions(self, reading: Reading) -> Partitions:
        """The partitions of a reading's data files."""
        cache, metadata = self._cache(reading.table_id), reading.metadata
        entries, _ = cache.columns(metadata.table_uuid, reading.manifests, ["file_path"])
        files, is_data = reading.files, reading.files.is_data
        _, first, number = np.unique(
            files.partition[is_data], return_index=True, return_inverse=True
        )
        sizes = np.bincount(number, weights=files.sizes[is_data], minlength=1)
        paths = np.asarray(entries.column("file_path").to_pylist(), object)[is_data]
        one_each = np.flatnonzero(is_data)[first]
        spec_ids = np.array([one.spec_id for one in reading.manifests], np.int64)
        telling = partition_telling(
            metadata, files.partition_key.take(one_each), spec_ids[files.manifest[one_each]]
        )
        return Partitions(
            of_file=dict(zip(paths.tolist(), number.tolist(), strict=True)),
            sizes=sizes.astype(np.float64),
            telling=telling,
        )

    def batches(self, reading: Reading, most_bytes: int) -> list[list[dict[str, Any]]]:
        """The partitions in batches of so many bytes; none where one commit does it.

        A partition is told as field → value, as stored. A table with files of several partition
        specs is not cut up: its older files would be in no batch.
        """
        files, metadata = reading.files, reading.metadata
        specs = {reading.manifests[int(one)].spec_id for one in np.unique(files.manifest)}
        names = metadata.partition_names.get(next(iter(specs)), ()) if len(specs) == 1 else ()
        if not names or int(files.sizes[files.is_data].sum()) <= most_bytes:
            return []
        _, first, number = np.unique(files.partition, return_index=True, return_inverse=True)
        sizes = np.bincount(number, weights=files.sizes)
        found: list[list[dict[str, Any]]] = []
        filled = float(most_bytes)
        for place, size in zip(first.tolist(), sizes.tolist(), strict=True):
            if filled + size > most_bytes:
                found.append([])
                filled = 0.0
            values = json.loads(files.partition_key[place].as_py(), strict=False)
            found[-1].append(dict(zip(names, values, strict=True)))
            filled += size
        return found if len(found) > 1 else []

    def close(self) -> None:
        """Let DuckDB go."""
        self._avro.close()

    def _cache(self, table_id: str) -> ManifestCache:
        catalog = TableName.parse(table_id).catalog
        folder = self._config.home / "cache" / "iceberg" / catalog / "manifests"
        return ManifestCache(self._avro, folder)

"""All that a table reaches: every file of every snapshot that is kept, with its recorded size.

Deleting is judged by this: before (may anything be deleted?) and after (is all still there?).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.catalog.entries import read_entries
from lakehouse_core.catalog.location import file_size, unreadable
from lakehouse_core.catalog.manifest_list import manifests_of
from lakehouse_core.catalog.partition_key import partition_keys
from lakehouse_core.domain.errors import MetadataUnreadableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from lakehouse_core.catalog.avro_reader import AvroReader, AvroRows
    from lakehouse_core.catalog.metadata import TableMetadata

_PORTION = 500  # manifests read at a time
_EXISTING = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """A file that is not as it was recorded."""

    location: str
    recorded_bytes: int | None
    found_bytes: int | None  # None: it is gone


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """A partition that a commit added files to or took files from."""

    snapshot_id: int
    spec_id: int
    values: Mapping[str, Any]  # field → value as stored: days and hours are numbers


def reachable_files(reader: AvroReader, metadata: TableMetadata) -> dict[str, int | None]:
    """Location → recorded size (None where none is) of every file of every snapshot.

    Raises:
        MetadataUnreadableError: a manifest list or manifest is missing or broken; names it.
    """
    manifests = manifests_of(reader, metadata)
    files: dict[str, int | None] = {metadata.location: metadata.size_bytes}
    files |= dict.fromkeys(metadata.statistics)
    files |= {one.manifest_list: None for one in metadata.snapshots if one.manifest_list}
    files |= {one.path: one.length for one in manifests.values()}
    paths = list(manifests)
    for start in range(0, len(paths), _PORTION):
        for _, entries in read_entries(reader, paths[start : start + _PORTION]):
            locations = entries.column("file_path").to_pylist()
            files |= zip(locations, entries.column("file_size_in_bytes").to_pylist(), strict=True)
    return files


def losses(files: Mapping[str, int | None]) -> list[Loss]:
    """Those of the files that are gone or of another size than recorded."""
    found = [loss for one in files.items() if (loss := _loss(*one))]
    # Asked again: a disk that stumbled once has lost nothing.
    return [loss for one in found if (loss := _loss(one.location, one.recorded_bytes))]


def _loss(location: str, recorded: int | None) -> Loss | None:
    try:
        size = file_size(location)
    except MetadataUnreadableError:
        return Loss(location, recorded, None)
    return Loss(location, recorded, size) if recorded is not None and size != recorded else None


def written_partitions(
    reader: AvroReader, metadata: TableMetadata, snapshot_ids: Collection[int]
) -> list[WrittenPartition]:
    """The partitions that these commits changed, from the manifests they wrote.

    Raises:
        MetadataUnreadableError: a manifest is missing or broken; names it.
    """
    wanted = set(snapshot_ids)
    chosen = {
        path: one for path, one in manifests_of(reader, metadata).items() if one.added_by in wanted
    }
    found: dict[tuple[int, int, str], WrittenPartition] = {}
    for part in reader.read(list(chosen)):
        start = 0
        for location, count in zip(part.locations, part.counts, strict=True):
            manifest = chosen[location]
            for key in _changed_keys(part, start, count, location):
                snapshot_id = manifest.added_by or 0
                names = metadata.partition_names.get(manifest.spec_id, ())
                values = dict(zip(names, json.loads(key, strict=False), strict=True))
                found[snapshot_id, manifest.spec_id, key] = WrittenPartition(
                    snapshot_id, manifest.spec_id, values
                )
            start += count
    return list(found.values())


def _changed_keys(part: AvroRows, start: int, count: int, location: str) -> Iterator[str]:
    """Partition keys of the entries that a manifest's own commit added or removed."""
    if not count:
        return
    try:
        rows = part.rows.slice(start, count)
        rows = rows.filter(pc.not_equal(rows.column("status"), _EXISTING))
        for chunk in rows.column("data_file").chunks:
            yield from pc.unique(partition_keys(pc.struct_field(chunk, "partition"))).to_pylist()
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        reason = f"not a manifest, {type(error).__name__}: {error}"
        raise unreadable(location, reason) from error

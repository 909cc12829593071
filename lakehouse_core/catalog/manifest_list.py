"""A snapshot's manifest list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.catalog.location import unreadable

if TYPE_CHECKING:
    from lakehouse_core.catalog.avro_reader import AvroReader
    from lakehouse_core.catalog.metadata import Snapshot, TableMetadata

DATA, DELETES = 0, 1  # what a manifest holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One line of a manifest list."""

    path: str
    length: int
    spec_id: int
    content: int = DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    entries: int | None = None  # of any status; None when the list does not say
    added_by: int | None = None  # the snapshot that wrote it


def read_manifest_list(reader: AvroReader, metadata: TableMetadata) -> list[Manifest]:
    """The manifests of the current snapshot, in the order of the list; none without a snapshot.

    Raises:
        MetadataUnreadableError: the list is missing or broken; names it.
    """
    if metadata.current is None:
        return []
    location = _location(metadata.current, metadata.location)
    rows = [row for part in reader.read([location]) for row in part.rows.to_pylist()]
    if not rows and metadata.current.summary.get("total-data-files", "0") != "0":
        raise unreadable(location, "it lists no manifests, but the snapshot has data files")
    return _manifests(location, rows)


def manifests_of(reader: AvroReader, metadata: TableMetadata) -> dict[str, Manifest]:
    """Every manifest of every snapshot that is kept, by path.

    Raises:
        MetadataUnreadableError: a list is missing or broken; names it.
    """
    lists = [_location(one, metadata.location) for one in metadata.snapshots]
    found: dict[str, Manifest] = {}
    for part in reader.read(list(dict.fromkeys(lists))):
        rows = part.rows.to_pylist()
        found |= {one.path: one for one in _manifests(part.locations[0], rows)}
    return found


def _manifests(location: str, rows: list[dict[str, Any]]) -> list[Manifest]:
    try:
        return [
            Manifest(
                path=str(row["manifest_path"]),
                length=int(row["manifest_length"]),
                spec_id=int(row["partition_spec_id"]),
                # v1 lists know no deletes and no sequence numbers
                content=int(row.get("content") or DATA),
                sequence_number=int(row.get("sequence_number") or 0),
                min_sequence_number=int(row.get("min_sequence_number") or 0),
                entries=_entries(row),
                added_by=row.get("added_snapshot_id"),
            )
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(
            location, f"not a manifest list, {type(error).__name__}: {error}"
        ) from error


def _entries(row: dict[str, Any]) -> int | None:
    # Older writers say `added_data_files_count`.
    counts = [
        row.get(f"{kind}_files_count", row.get(f"{kind}_data_files_count"))
        for kind in ("added", "existing", "deleted")
    ]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _location(snapshot: Snapshot, metadata_location: str) -> str:
    if snapshot.manifest_list is None:
        raise unreadable(metadata_location, f"snapshot {snapshot.snapshot_id} has no manifest list")
    return snapshot.manifest_list

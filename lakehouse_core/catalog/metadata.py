"""A table's metadata file, the part of it that structure and commits need.

pyiceberg validates every snapshot of a file into models; a table with hundreds of snapshots is
read here in a tenth of that time, and each commit makes a new file to read.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakehouse_core.catalog.location import read_file, unreadable
from lakehouse_core.catalog.schema import Field, SortOrder, flatten, sort_order, source_id

if TYPE_CHECKING:
    from collections.abc import Mapping

_GZIP_MAGIC = b"\x1f\x8b"
_LAST_MS = 253_402_300_800_000  # the year 10000


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One snapshot as the metadata file lists it."""

    snapshot_id: int
    parent_id: int | None
    timestamp_ms: int
    manifest_list: str | None
    summary: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """What one metadata file says; it never changes, a commit writes another."""

    location: str
    size_bytes: int
    table_uuid: str
    format_version: int
    snapshots: tuple[Snapshot, ...]
    current: Snapshot | None
    fields: tuple[Field, ...]  # of the current schema, nested ones included
    partition_names: Mapping[int, tuple[str, ...]]  # by partition spec id
    partition_transforms: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # as above
    partition_sources: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # field ids
    partition_spec_id: int = 0  # what new files are partitioned by
    sort_order: SortOrder | None
    properties: Mapping[str, str]
    table_location: str = ""
    refs: Mapping[str, int] = field(default_factory=dict)  # branch or tag → its snapshot
    statistics: tuple[str, ...] = ()  # files of statistics, of the table and of its partitions

    @property
    def history(self) -> tuple[Snapshot, ...]:
        """The current snapshot and its ancestors, newest first, as far as they are kept."""
        by_id = {one.snapshot_id: one for one in self.snapshots}
        found: dict[int, Snapshot] = {}
        at = self.current
        while at is not None and at.snapshot_id not in found:
            found[at.snapshot_id] = at
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        return tuple(found.values())


def read_metadata(location: str) -> TableMetadata:
    """Read one metadata file, plain or gzipped.

    Raises:
        MetadataUnreadableError: it is missing or broken; names it.
    """
    data = read_file(location)
    try:
        text = gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data
        return _parse(json.loads(text), location, len(data))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        OSError,
        zlib.error,
    ) as error:
        reason = f"{type(error).__name__}: {error}"
        raise unreadable(location, reason) from error


def _parse(raw: dict[str, Any], location: str, size_bytes: int) -> TableMetadata:
    snapshots = tuple(_snapshot(one) for one in raw.get("snapshots") or ())
    current_id = raw.get("current-snapshot-id")
    fields = tuple(flatten(_current_schema(raw)))
    return TableMetadata(
        location=location,
        size_bytes=size_bytes,
        # Optional in v1; the location of the table tells such tables apart well enough.
        table_uuid=raw.get("table-uuid") or raw["location"],
        format_version=int(raw["format-version"]),
        snapshots=snapshots,
        current=_current(snapshots, None if current_id == -1 else current_id),
        fields=fields,
        partition_names=_of_specs(raw, "name"),
        partition_transforms=_of_specs(raw, "transform"),
        partition_sources=_sources(raw),
        partition_spec_id=int(raw.get("default-spec-id") or 0),
        sort_order=sort_order(raw, fields),
        properties=raw.get("properties") or {},
        table_location=str(raw["location"]),
        refs={
            name: int(ref["snapshot-id"]) for name, ref in sorted((raw.get("refs") or {}).items())
        },
        statistics=tuple(
            str(one["statistics-path"])
            for key in ("statistics", "partition-statistics")
            for one in raw.get(key) or ()
        ),
    )


def _snapshot(raw: dict[str, Any]) -> Snapshot:
    return Snapshot(
        snapshot_id=int(raw["snapshot-id"]),
        parent_id=raw.get("parent-snapshot-id"),
        timestamp_ms=_timestamp(int(raw["timestamp-ms"])),
        manifest_list=raw.get("manifest-list"),
        summary=raw.get("summary") or {},
    )


def _timestamp(value: int) -> int:
    if not 0 <= value < _LAST_MS:
        raise ValueError(f"{value} is not a time in milliseconds")
    return value


def _current(snapshots: tuple[Snapshot, ...], current_id: int | None) -> Snapshot | None:
    if current_id is None:
        return None
    for snapshot in snapshots:
        if snapshot.snapshot_id == current_id:
            return snapshot
    raise ValueError(f"the current snapshot {current_id} is not among the snapshots")


def _current_schema(raw: dict[str, Any]) -> dict[str, Any]:
    for schema in raw.get("schemas") or ():
        if schema.get("schema-id") == raw.get("current-schema-id"):
            return dict(schema)
    return dict(raw["schema"])  # v1 files may have this alone


def _of_specs(raw: dict[str, Any], key: str) -> dict[int, tuple[str, ...]]:
    return {
        int(spec["spec-id"]): tuple(str(field[key]) for field in spec["fields"])
        for spec in _specs(raw)
    }


def _sources(raw: dict[str, Any]) -> dict[int, tuple[int, ...]]:
    return {
        int(spec["spec-id"]): tuple(source_id(field) for field in spec["fields"])
        for spec in _specs(raw)
    }


def _specs(raw: dict[str, Any]) -> list[dict[str, Any]]:
    specs = raw.get("partition-specs")
    # v1 files may have the one spec alone
    return specs if specs is not None else [{"spec-id": 0, "fields": raw["partition-spec"]}]

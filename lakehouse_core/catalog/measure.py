"""Structural metrics of a table from its metadata, its manifest list and its live files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.catalog.files import EQUALITY_DELETES, POSITION_DELETES
from lakehouse_core.catalog.manifest_list import DATA
from lakehouse_core.catalog.overlap import sort_overlap
from lakehouse_core.catalog.partitions import (
    largest_partitions,
    lone_small_files,
    mergeable_delete_files,
)
from lakehouse_core.domain.table import HISTOGRAM_BOUNDS, TableMetrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lakehouse_core.catalog.files import LiveFiles
    from lakehouse_core.catalog.manifest_list import Manifest
    from lakehouse_core.catalog.metadata import TableMetadata


TARGET_PROPERTY = "write.target-file-size-bytes"


@dataclass(frozen=True, slots=True)
class Reading:
    """One table as it was read."""

    table_id: str
    metadata: TableMetadata
    manifests: Sequence[Manifest]
    files: LiveFiles


def measure(reading: Reading, *, small_file_bytes: int, collected_at: datetime) -> TableMetrics:
    """All structural metrics; counts and sums equal pyiceberg's `inspect` tables."""
    metadata, files = reading.metadata, reading.files
    is_data = files.is_data
    sizes = files.sizes[is_data]
    data_files, total_bytes = len(sizes), int(sizes.sum())
    position = np.equal(files.content, POSITION_DELETES)
    delete_files = int((~is_data).sum())
    partitions, skew = _partitions(reading)
    order = metadata.sort_order
    leading = order.leading if order else None
    times = [snapshot.timestamp_ms for snapshot in metadata.snapshots]
    kept = _kept_by_refs(metadata)
    free = [one.timestamp_ms for one in metadata.snapshots if one.snapshot_id not in kept]
    return TableMetrics(
        table_id=reading.table_id,
        snapshot_id=metadata.current.snapshot_id if metadata.current else 0,
        metadata_location=metadata.location,
        collected_at=collected_at,
        format_version=metadata.format_version,
        data_files=data_files,
        total_bytes=total_bytes,
        total_rows=int(files.rows[is_data].sum()),
        small_files=int((sizes < small_file_bytes).sum()),
        avg_file_bytes=total_bytes / data_files if data_files else None,
        median_file_bytes=float(np.median(sizes)) if data_files else None,
        file_size_histogram=_histogram(sizes),
        delete_files=delete_files,
        position_delete_files=int((position & ~files.is_puffin).sum()),
        equality_delete_files=int(np.equal(files.content, EQUALITY_DELETES).sum()),
        deletion_vectors=int((position & files.is_puffin).sum()),
        deleted_rows=int(files.rows[~is_data].sum()),
        delete_ratio=delete_files / data_files if data_files else None,
        manifests=len(reading.manifests),
        manifest_bytes=sum(manifest.length for manifest in reading.manifests),
        snapshots=len(metadata.snapshots),
        oldest_snapshot_at=_at(min(times, default=None)),
        latest_snapshot_at=_at(max(times, default=None)),
        metadata_bytes=metadata.size_bytes,
        partitions=partitions,
        skew=skew,
        sort_order=order.text if order else None,
        sort_overlap=sort_overlap(files, leading.type) if leading else None,
        unsorted_share=(
            float(np.not_equal(files.sort_order_id[is_data], order.order_id).mean())
            if order and data_files
            else None
        ),
        largest_partitions=largest_partitions(
            metadata, reading.manifests, files, small_file_bytes=small_file_bytes
        ),
        lone_small_files=lone_small_files(files, small_file_bytes=small_file_bytes),
        target_file_bytes=_target(metadata),
        mergeable_delete_files=mergeable_delete_files(files),
        ref_snapshot_ids=kept,
        oldest_free_snapshot_at=_at(min(free, default=None)),
    )


def _kept_by_refs(metadata: TableMetadata) -> tuple[int, ...]:
    """Snapshots that stay as long as a branch or tag names them; the current one stays anyway."""
    current = metadata.current.snapshot_id if metadata.current else None
    known = {one.snapshot_id for one in metadata.snapshots}
    return tuple(sorted((set(metadata.refs.values()) & known) - {current}))


def _target(metadata: TableMetadata) -> int | None:
    """The size of files that the table asks its writers for; None: it does not say, or nonsense."""
    asked = metadata.properties.get(TARGET_PROPERTY, "").strip()
    return int(asked) if asked.isascii() and asked.isdecimal() and int(asked) > 0 else None


def _histogram(sizes: NDArray[np.int64]) -> tuple[int, ...]:
    bucket = np.searchsorted(HISTOGRAM_BOUNDS, sizes, side="right")
    counts = np.bincount(bucket, minlength=len(HISTOGRAM_BOUNDS) + 1)
    return tuple(int(count) for count in counts)


def _partitions(reading: Reading) -> tuple[int, float | None]:
    """How many partitions a scan of everything would plan, and their skew in bytes of data.

    As pyiceberg plans: files without rows are skipped, and so are manifests of deletes that are
    older than all data.
    """
    files, manifests = reading.files, reading.manifests
    oldest_data = min(
        (one.min_sequence_number for one in manifests if one.content == DATA), default=0
    )
    is_planned = np.array(
        [one.content == DATA or one.sequence_number >= oldest_data for one in manifests], bool
    )
    chosen = np.not_equal(files.rows, 0)
    if len(manifests):
        chosen &= is_planned[files.manifest]
    found, number = np.unique(files.partition[chosen], return_inverse=True)
    if not len(found):
        return 0, None
    sizes = np.zeros(len(found), np.int64)
    is_data = files.is_data[chosen]
    np.add.at(sizes, number[is_data], files.sizes[chosen][is_data])
    mean = int(sizes.sum()) / len(found)
    return len(found), int(sizes.max()) / mean if mean else None


def _at(timestamp_ms: int | None) -> datetime | None:
    return None if timestamp_ms is None else datetime.fromtimestamp(timestamp_ms / 1000, UTC)

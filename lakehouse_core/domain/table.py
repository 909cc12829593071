"""Tables of the lake: names, structural metrics, commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A catalog-qualified table name; `str()` gives its table id, e.g. `lake.demo.events`."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return ".".join((self.catalog, *self.namespace, self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetrics:
    """Structure of one table at one snapshot; a row of `table_metrics`.

    Counts are of the current snapshot on the main branch. `None` means not known.
    """

    table_id: str
    snapshot_id: int  # 0 when the table has no snapshot yet
    metadata_location: str
    collected_at: datetime
    format_version: int
    data_files: int
    total_bytes: int
    total_rows: int
    small_files: int
    avg_file_bytes: float | None
    median_file_bytes: float | None
    file_size_histogram: tuple[int, ...]  # counts per bucket of HISTOGRAM_BOUNDS
    delete_files: int
    position_delete_files: int
    equality_delete_files: int
    deletion_vectors: int
    deleted_rows: int
    delete_ratio: float | None
    manifests: int
    manifest_bytes: int
    snapshots: int
    oldest_snapshot_at: datetime | None
    latest_snapshot_at: datetime | None
    metadata_bytes: int
    partitions: int
    skew: float | None  # bytes of the largest partition / mean bytes per partition
    sort_order: str | None
    sort_overlap: float | None  # share of a file's leading-sort-column range met by other files
    unsorted_share: float | None  # share of data files written without the current sort order


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeTable:
    """A table as last seen in its catalog; a row of `lake_table`."""

    table_id: str
    catalog: str
    namespace: str
    table_name: str
    seen_at: datetime
    table_uuid: str | None = None
    metadata_location: str | None = None
    current_snapshot_id: int | None = None
    dropped_at: datetime | None = None
    error: str | None = None  # why it could not be read, if it could not


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCommit:
    """One commit of a table; a row of `snapshot_commit`."""

    table_id: str
    snapshot_id: int
    parent_id: int | None
    committed_at: datetime
    operation: str | None
    added_files: int | None
    deleted_files: int | None
    added_rows: int | None
    deleted_rows: int | None
    added_bytes: int | None
    engine_name: str | None
    app_id: str | None
    flink_job_id: str | None
    flink_checkpoint_id: int | None


# Upper bounds (bytes, exclusive) of the file-size histogram's buckets; the last bucket is open.
MIB = 1024 * 1024
HISTOGRAM_BOUNDS: tuple[int, ...] = (1 * MIB, 8 * MIB, 32 * MIB, 128 * MIB, 512 * MIB)

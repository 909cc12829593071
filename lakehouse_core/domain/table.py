"""Tables of the lake: names, structural metrics, commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A catalog-qualified table name; `str()` gives its table id, e.g. `lake.demo.events`.

    A part that holds a dot or a quote is quoted (`lake.demo."a.b"`), so that two tables never
    share an id and `parse` gives back the very parts.
    """

    catalog: str
    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return join_name((self.catalog, *self.namespace, self.name))

    @classmethod
    def parse(cls, table_id: str) -> TableName:
        """Read a table id back.

        Raises:
            ValueError: it is not catalog, namespace and name, or a quote stays open.
        """
        parts = split_name(table_id)
        if len(parts) < 3:
            raise ValueError(f"{table_id!r} is not <catalog>.<namespace>.<table>")
        return cls(parts[0], parts[1:-1], parts[-1])


def join_name(parts: tuple[str, ...]) -> str:
    """Join the parts of a name with dots, quoting those that need it."""
    return ".".join(_quoted(part) for part in parts)


def split_name(text: str) -> tuple[str, ...]:
    """The reverse of `join_name`.

    Raises:
        ValueError: a quote stays open, or text follows a closing quote.
    """
    parts: list[str] = []
    rest = text
    while True:
        part, rest = _take_quoted(rest, text) if rest.startswith('"') else _take_plain(rest)
        parts.append(part)
        if not rest:
            return tuple(parts)
        rest = rest[1:]


def _quoted(part: str) -> str:
    if part and "." not in part and '"' not in part:
        return part
    return '"' + part.replace('"', '""') + '"'


def _take_plain(rest: str) -> tuple[str, str]:
    part, dot, after = rest.partition(".")
    return part, dot + after


def _take_quoted(rest: str, text: str) -> tuple[str, str]:
    end = 1
    while True:
        end = rest.find('"', end)
        if end < 0:
            raise ValueError(f"a quote stays open in the name {text!r}")
        if not rest.startswith('""', end):
            break
        end += 2
    part, after = rest[1:end].replace('""', '"'), rest[end + 1 :]
    if after and not after.startswith("."):
        raise ValueError(f"text follows a closing quote in the name {text!r}")
    return part, after


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetrics:
    """Structure of one partition."""

    partition: str  # as people say it: `region=eu, ts_day=2026-11-16`
    data_files: int
    total_bytes: int
    total_rows: int
    small_files: int
    delete_files: int


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
    delete_ratio: float | None  # delete files / data files
    manifests: int
    manifest_bytes: int
    snapshots: int
    oldest_snapshot_at: datetime | None
    latest_snapshot_at: datetime | None
    metadata_bytes: int
    partitions: int
    skew: float | None  # bytes of the largest partition / mean bytes per partition
    sort_order: str | None
    sort_overlap: float | None  # mean share of a partition's other files that meet a file's range
    unsorted_share: float | None  # share of data files written without the current sort order
    amoro_score: int | None = None  # Apache Amoro's health score, 0-100
    largest_partitions: tuple[PartitionMetrics, ...] = ()  # and those with the most files
    lone_small_files: int | None = None  # the only small one of their partition
    target_file_bytes: int | None = None  # what the table asks for; None: it does not say
    mergeable_delete_files: int | None = None  # fewer position delete files after a merge
    ref_snapshot_ids: tuple[int, ...] | None = None  # kept by branches and tags, without current
    oldest_free_snapshot_at: datetime | None = None  # the oldest that no branch or tag keeps


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
    columns: tuple[str, ...] | None = None  # of its current schema, top level only


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
    query_id: str | None = None  # the engine's own id of the writing query, where it leaves one


# Upper bounds (bytes, exclusive) of the file-size histogram's buckets; the last bucket is open.
MIB = 1024 * 1024
HISTOGRAM_BOUNDS: tuple[int, ...] = (1 * MIB, 8 * MIB, 32 * MIB, 128 * MIB, 512 * MIB)

"""Tables of the lake: structure and verdict side by side, history, and who uses which column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import HISTOGRAM_BOUNDS, MIB
from lakehouse_core.views.current import CURRENT_ROWS
from lakehouse_core.views.filters import Filters, over_events
from lakehouse_core.views.formatting import size
from lakehouse_core.views.health import HealthView, list_health, show_health
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

TABLES_SQL = f"""
SELECT t.table_id, t.seen_at, t.error, m.snapshot_id, m.collected_at, m.format_version,
  m.data_files, m.total_bytes, m.total_rows, m.small_files, m.avg_file_bytes, m.median_file_bytes,
  m.file_size_histogram, m.delete_files, m.position_delete_files, m.equality_delete_files,
  m.deletion_vectors, m.deleted_rows, m.delete_ratio, m.manifests, m.manifest_bytes, m.snapshots,
  m.oldest_snapshot_at, m.latest_snapshot_at, m.metadata_bytes, m.partitions, m.skew,
  m.sort_order, m.sort_overlap, m.unsorted_share,
  coalesce(m.metadata_location, t.metadata_location) AS metadata_location
FROM lake_table t
LEFT JOIN (SELECT * FROM table_metrics WHERE rowid IN ({CURRENT_ROWS})) m USING (table_id)
WHERE t.dropped_at IS NULL AND ($table::VARCHAR IS NULL OR t.table_id = $table::VARCHAR)
ORDER BY t.table_id
"""  # noqa: S608 a constant of ours

COMMITS_SQL = """
SELECT make_timestamptz(epoch_us(committed_at) // $step_us::BIGINT * $step_us::BIGINT) AS bucket_at,
  coalesce(operation, 'unknown') AS operation, count(*) AS commits,
  sum(added_files)::BIGINT AS added_files, sum(deleted_files)::BIGINT AS deleted_files
FROM snapshot_commit
WHERE table_id = $table::VARCHAR
  AND committed_at >= $start::TIMESTAMPTZ AND committed_at < $end::TIMESTAMPTZ
GROUP BY ALL ORDER BY bucket_at, operation
"""

HISTORY_SQL = """
SELECT coalesce(latest_snapshot_at, collected_at) AS committed_at, data_files, small_files,
  delete_files, total_bytes, total_rows, manifests, snapshots
FROM table_metrics WHERE table_id = $table::VARCHAR
ORDER BY committed_at DESC LIMIT $limit::BIGINT
"""

# Events are counted per template first, so that the join is with templates, not with events.
USAGE_SQL = over_events("""
WITH used AS (
  SELECT template_id, default_catalog, default_namespace, column_name, role
  FROM column_usage WHERE table_name = $table::VARCHAR
), runs AS (
  SELECT template_id, coalesce(default_catalog, '') AS default_catalog,
    coalesce(default_namespace, '') AS default_namespace, engine_id, count(*) AS queries
  FROM {events} WHERE template_id IN (SELECT template_id FROM used) GROUP BY ALL
)
SELECT column_name, role, engine_id, queries FROM (
  SELECT column_name, role, engine_id, sum(queries)::BIGINT AS queries,
    sum(sum(queries)) OVER (PARTITION BY column_name, role) AS over_engines
  FROM used JOIN runs USING (template_id, default_catalog, default_namespace)
  GROUP BY column_name, role, engine_id
)
QUALIFY dense_rank() OVER (ORDER BY over_engines DESC, column_name, role) <= $limit::BIGINT
ORDER BY over_engines DESC, column_name, role, engine_id
""")

READERS_SQL = over_events("""
SELECT engine_id, count(*) AS queries, count(DISTINCT user_name) AS users
FROM {events}
WHERE (template_id, coalesce(default_catalog, ''), coalesce(default_namespace, '')) IN (
  SELECT (template_id, default_catalog, default_namespace) FROM template_table
  WHERE table_name = $table::VARCHAR
  UNION ALL
  SELECT (template_id, default_catalog, default_namespace) FROM column_usage
  WHERE table_name = $table::VARCHAR)
GROUP BY engine_id ORDER BY engine_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStructure:
    """A table's structure at its current snapshot; None where nothing was collected."""

    table_id: str
    seen_at: datetime
    error: str | None
    snapshot_id: int | None
    metadata_location: str | None
    collected_at: datetime | None
    format_version: int | None
    data_files: int | None
    total_bytes: int | None
    total_rows: int | None
    small_files: int | None
    avg_file_bytes: float | None
    median_file_bytes: float | None
    file_size_histogram: tuple[int, ...] | None
    delete_files: int | None
    position_delete_files: int | None
    equality_delete_files: int | None
    deletion_vectors: int | None
    deleted_rows: int | None
    delete_ratio: float | None
    manifests: int | None
    manifest_bytes: int | None
    snapshots: int | None
    oldest_snapshot_at: datetime | None
    latest_snapshot_at: datetime | None
    metadata_bytes: int | None
    partitions: int | None
    skew: float | None
    sort_order: str | None
    sort_overlap: float | None
    unsorted_share: float | None

    @property
    def small_file_share(self) -> float | None:
        """Small files out of all data files."""
        if self.small_files is None or not self.data_files:
            return None
        return self.small_files / self.data_files


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table's structure and its verdict."""

    structure: TableStructure
    health: HealthView


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBucket:
    """How many data files have a size below `label`'s bound."""

    order: int
    label: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """Commits per bucket and operation: bucket_at, operation, commits, added and deleted files."""

    window: Window
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReaders:
    """How often an engine's queries used the table in the window, and for how many users."""

    engine_id: str
    queries: int
    users: int


def list_tables(store: TelemetryStore) -> tuple[TableView, ...]:
    """Every table, lowest score first, unknown last."""
    structures = {
        row.table_id: row for row in records(TableStructure, store.read(TABLES_SQL, table=None))
    }
    return tuple(
        TableView(structure=structures[verdict.table_id], health=verdict)
        for verdict in list_health(store)
        if verdict.table_id in structures
    )


def show_table(store: TelemetryStore, name: str) -> TableView:
    """One table.

    Raises:
        NotFoundError: no such table; names the nearest.
    """
    verdict = show_health(store, name)
    structure = records(TableStructure, store.read(TABLES_SQL, table=verdict.table_id))[0]
    return TableView(structure=structure, health=verdict)


def size_histogram(structure: TableStructure) -> tuple[SizeBucket, ...]:
    """The file-size histogram with labels, smallest files first; empty when not collected."""
    counts = structure.file_size_histogram or ()
    bounds = (0, *HISTOGRAM_BOUNDS)
    labels = [
        f"< {_whole(high)}" if low == 0 else f"{low // MIB}-{_whole(high)}"
        for low, high in zip(bounds, HISTOGRAM_BOUNDS, strict=False)
    ]
    labels.append(f"≥ {_whole(HISTOGRAM_BOUNDS[-1])}")
    return tuple(
        SizeBucket(order=order, label=label, files=files)
        for order, (label, files) in enumerate(zip(labels, counts, strict=False))
    )


def commits(store: TelemetryStore, table_id: str, filters: Filters, clock: Clock) -> Commits:
    """The table's commits over the window."""
    window = filters.window_at(clock())
    rows = store.read(
        COMMITS_SQL,
        table=table_id,
        start=window.start,
        end=window.end,
        step_us=int(window.step.total_seconds() * 1_000_000),
    )
    return Commits(window=window, rows=rows)


def history(store: TelemetryStore, table_id: str, *, limit: int = 500) -> pa.Table:
    """The table's structure over time, one row per snapshot we saw, newest first."""
    return store.read(HISTORY_SQL, table=table_id, limit=limit)


def column_usage(
    store: TelemetryStore, table_id: str, filters: Filters, clock: Clock, *, limit: int = 15
) -> pa.Table:
    """How often each engine used each column of the table, by role, in the window.

    Only the most frequent pairs of column and role, over all engines.
    """
    params = filters.only_engine().params(filters.window_at(clock()))
    return store.read(USAGE_SQL, table=table_id, limit=limit, **params)


def readers(
    store: TelemetryStore, table_id: str, filters: Filters, clock: Clock
) -> tuple[TableReaders, ...]:
    """Which engines' queries used the table in the window."""
    params = filters.only_engine().params(filters.window_at(clock()))
    return records(TableReaders, store.read(READERS_SQL, table=table_id, **params))


def _whole(value: int) -> str:
    return size(value).replace(".0 ", " ")

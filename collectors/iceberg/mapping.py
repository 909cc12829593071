"""Snapshots and tables as read → rows of the store. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from collectors.letters import dead_letter
from lakehouse_core.domain.table import LakeTable, SnapshotCommit, TableName, join_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse_core.catalog.measure import Reading
    from lakehouse_core.catalog.metadata import Snapshot
    from lakehouse_core.domain.agent import DeadLetter

SOURCE = "iceberg"

# Summary keys that only one engine writes, for snapshots that do not name their engine.
_ENGINE_BY_KEY = {
    "spark.app.id": "spark",
    "flink.job-id": "flink",
    "trino_query_id": "trino",
}
_MAX_BIGINT = 2**63 - 1


def to_commit(table_id: str, snapshot: Snapshot) -> SnapshotCommit:
    """One commit, from the summary its writer left."""
    summary = snapshot.summary
    return SnapshotCommit(
        table_id=table_id,
        snapshot_id=snapshot.snapshot_id,
        parent_id=snapshot.parent_id,
        committed_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        operation=summary.get("operation"),
        added_files=_count(summary, "added-data-files"),
        deleted_files=_count(summary, "deleted-data-files"),
        added_rows=_count(summary, "added-records"),
        deleted_rows=_count(summary, "deleted-records"),
        added_bytes=_count(summary, "added-files-size"),
        engine_name=_engine(summary),
        app_id=summary.get("app-id") or summary.get("spark.app.id"),
        flink_job_id=summary.get("flink.job-id"),
        flink_checkpoint_id=_number(summary.get("flink.max-committed-checkpoint-id")),
        query_id=summary.get("trino_query_id"),
    )


def to_lake_table(table: TableName, reading: Reading, seen_at: datetime) -> LakeTable:
    """A table that could be read."""
    metadata = reading.metadata
    return replace(
        _named(table, seen_at),
        table_uuid=metadata.table_uuid,
        metadata_location=metadata.location,
        current_snapshot_id=metadata.current.snapshot_id if metadata.current else None,
        columns=tuple(field.name for field in metadata.fields if field.is_column),
    )


def to_unreadable(
    table: TableName, location: str | None, error: str, before: LakeTable | None, seen_at: datetime
) -> LakeTable:
    """A table whose metadata is missing or broken; what was known of it stays."""
    return replace(
        before or _named(table, seen_at),
        seen_at=seen_at,
        metadata_location=location,
        dropped_at=None,
        error=error,
    )


def to_dropped(before: LakeTable, dropped_at: datetime) -> LakeTable:
    """A table that the catalog no longer has."""
    return replace(before, seen_at=dropped_at, dropped_at=dropped_at, error=None)


def unreadable_letter(
    table_id: str, location: str | None, error: str, seen_at: datetime
) -> DeadLetter:
    """A letter per table, metadata file and cause: the next sweep does not double it."""
    payload = {"table": table_id, "metadata_location": location, "error": error}
    return dead_letter(SOURCE, json.dumps(payload, ensure_ascii=False), error, seen_at)


def _named(table: TableName, seen_at: datetime) -> LakeTable:
    return LakeTable(
        table_id=str(table),
        catalog=table.catalog,
        namespace=join_name(table.namespace),
        table_name=table.name,
        seen_at=seen_at,
    )


def _engine(summary: Mapping[str, str]) -> str | None:
    named = summary.get("engine-name")
    if named:
        return named
    return next((engine for key, engine in _ENGINE_BY_KEY.items() if key in summary), None)


def _count(summary: Mapping[str, str], key: str) -> int | None:
    # Writers leave out what is zero, but only those that count at all write totals.
    if key not in summary and any(one.startswith("total-") for one in summary):
        return 0
    return _number(summary.get(key))


def _number(text: str | None) -> int | None:
    try:
        value = int(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and abs(value) <= _MAX_BIGINT else None

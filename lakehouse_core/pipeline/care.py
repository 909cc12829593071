"""Which of the pipeline's own tables want tidying up, judged from their metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.catalog.metadata import TableMetadata
    from lakehouse_core.config.models import PipelineConfig
    from lakehouse_core.pipeline.state import LakeState

# The others are replaced day by day: they have few files however often they change.
GROWING = (
    "query_event_bronze",
    "snapshot_commit_bronze",
    "charge_bronze",
    "query_attribution_bronze",
    "query_event",
    "snapshot_commit",
    "sql_text",
    "query_template",
    "column_usage",
    "charge",
    "query_attribution",
    "cost_label",
)


def plan_care(state: LakeState, settings: PipelineConfig, now: datetime) -> dict[str, Any]:
    """The `care` part of a plan."""
    oldest_kept = (now - settings.keep_snapshots).timestamp() * 1_000
    compact = [
        name
        for name, table in state.tables.items()
        if name in GROWING and _files_since_rewrite(table) > settings.compact_after_files
    ]
    expire = [
        name
        for name, table in state.tables.items()
        if _older_than(table, oldest_kept) > settings.expire_after_snapshots
    ]
    return {
        "compact": sorted(compact),
        "expire": sorted(expire),
        "keep_hours": settings.keep_snapshots.total_seconds() / 3600,
    }


def _older_than(table: TableMetadata, moment_ms: float) -> int:
    """How many snapshots an expiry may take: a job that would take none is not worth its start."""
    return sum(snapshot.timestamp_ms < moment_ms for snapshot in table.snapshots)


def _files_since_rewrite(table: TableMetadata) -> int:
    """How many files were added since files were last put together."""
    files = 0
    for snapshot in table.snapshots:  # oldest first
        if snapshot.summary.get("operation") == "replace":
            files = 0
        else:
            added = ("added-data-files", "added-delete-files")
            files += sum(int(snapshot.summary.get(name, 0)) for name in added)
    return files

"""Who writes a table and who reads it, as commits and reports tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.parts.cells import counted, mebibytes, number, seconds, show, time_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.views.scans import Scans
    from lakehouse_core.views.table_detail import TableCommit


def commit_grid(commits: Sequence[TableCommit]) -> None:
    """The newest commits, newest first."""
    show(
        [
            {
                "at": one.committed_at,
                "operation": one.operation,
                "by": _writer(one),
                "added": one.added_files,
                "removed": one.deleted_files,
                "rows": one.added_rows,
                "gone": one.deleted_rows,
                "size": mebibytes(one.added_bytes),
                "took": seconds(one.duration_ms),
                "attempts": one.attempts,
                "snapshot": str(one.snapshot_id),
            }
            for one in commits
        ],
        {
            "at": time_of("Committed"),
            "operation": "Operation",
            "by": "Written by",
            "added": counted("Files added"),
            "removed": counted("Files removed"),
            "rows": counted("Rows added"),
            "gone": counted("Rows removed"),
            "size": number("Added", "%.1f MiB"),
            "took": number("Commit took", "%.2f s", "Where its client reports it."),
            "attempts": number("Tries", "%d", "More than one: it met other writers."),
            "snapshot": "Snapshot",
        },
    )


def scan_grid(rows: Sequence[Scans]) -> None:
    """Scans by engine, with a filter and without."""
    show(
        [
            {
                "engine": one.engine_name or "not said",
                "filter": "with a filter" if one.is_filtered else "whole table",
                "scans": one.scans,
                "read": one.files_read,
                "skipped": one.files_skipped,
                "share": one.skipped_share,
                "size": mebibytes(one.bytes_read),
                "manifests": one.manifests_skipped,
                "planning": seconds(one.p95_planning_ms),
            }
            for one in rows
        ],
        {
            "engine": "Client",
            "filter": "Condition",
            "scans": counted("Scans"),
            "read": counted("Files read"),
            "skipped": counted("Files skipped"),
            "share": st.column_config.ProgressColumn(
                "Skipped", min_value=0, max_value=1, format="percent"
            ),
            "size": number("Read", "%.1f MiB"),
            "manifests": counted("Manifests skipped"),
            "planning": number("Planning p95", "%.2f s"),
        },
    )


def _writer(commit: TableCommit) -> str:
    if commit.is_care:
        return "Lakehelm maintenance"
    if commit.flink_checkpoint_id is not None:
        return f"{commit.engine_name or 'flink'}, checkpoint {commit.flink_checkpoint_id}"
    return commit.engine_name or ""

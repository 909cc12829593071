"""Tables of the lake's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.parts.cells import (
    counted,
    mebibytes,
    number,
    percent,
    show,
    state_word,
    time_of,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.domain.health import Contributor
    from lakehouse_core.domain.table import PartitionMetrics
    from lakehouse_core.views.table_detail import TableCare
    from lakehouse_core.views.tables import TableView


def table_grid(tables: Sequence[TableView], key: str, on_select: Callable[[], None]) -> Any:
    """The tables of the lake; a row can be chosen."""
    return show(
        [
            {
                "table": view.structure.table_id,
                "state": state_word(view.health.state),
                "score": view.health.score,
                "worst": view.health.worst,
                "files": view.structure.data_files,
                "size": mebibytes(view.structure.total_bytes),
                "average": mebibytes(view.structure.avg_file_bytes),
                "deletes": percent(view.structure.delete_ratio),
                "snapshots": view.structure.snapshots,
                "manifests": view.structure.manifests,
                "skew": view.structure.skew,
                "commit": view.structure.latest_snapshot_at,
            }
            for view in tables
        ],
        {
            "table": st.column_config.TextColumn("Table", pinned=True),
            "state": "State",
            "score": st.column_config.ProgressColumn(
                "Score", min_value=0, max_value=100, format="%.0f", help="100 is best."
            ),
            "worst": st.column_config.TextColumn("What hurts most", width=300),
            "files": counted("Data files"),
            "size": number("Size", "%.1f MiB"),
            "average": number("Average file", "%.1f MiB"),
            "deletes": number("Delete ratio", "%.0f %%", "Delete files for 100 data files."),
            "snapshots": counted("Snapshots"),
            "manifests": counted("Manifests"),
            "skew": number("Skew", "%.1f x", "Largest partition over the mean, in bytes."),
            "commit": time_of("Last commit"),
        },
        key=key,
        on_select=on_select,
    )


def contributor_grid(contributors: Sequence[Contributor]) -> None:
    """What costs a table its points, with the limits."""
    show(
        [
            {
                "rule": item.rule.replace("_", " "),
                "state": state_word(item.state.value),
                "lost": item.points_lost,
                "message": item.message,
                "value": item.value,
                "warning": item.warning,
                "critical": item.critical,
                "unit": item.unit,
            }
            for item in contributors
        ],
        {
            "rule": "Signal",
            "state": "State",
            "lost": number("Points lost", "%.1f"),
            "message": wide("What is wrong"),
            "value": number("Value", "%.4g"),
            "warning": number("Warning from", "%.4g"),
            "critical": number("Critical from", "%.4g"),
            "unit": "Unit",
        },
    )


def partition_grid(partitions: Sequence[PartitionMetrics]) -> None:
    """The partitions that matter most."""
    whole = max((one.total_bytes for one in partitions), default=0)
    show(
        [
            {
                "partition": one.partition,
                "share": one.total_bytes / whole if whole else 0,
                "size": mebibytes(one.total_bytes),
                "files": one.data_files,
                "small": one.small_files,
                "deletes": one.delete_files,
                "rows": one.total_rows,
            }
            for one in partitions
        ],
        {
            "partition": wide("Partition"),
            "share": st.column_config.ProgressColumn(
                "Of the largest", min_value=0, max_value=1, format="percent"
            ),
            "size": number("Size", "%.1f MiB"),
            "files": counted("Data files"),
            "small": counted("Small files"),
            "deletes": counted("Delete files"),
            "rows": counted("Rows"),
        },
    )


def care_grid(actions: Sequence[TableCare]) -> None:
    """What was proposed for a table and done to it."""
    show(
        [
            {
                "at": one.ended_at or one.updated_at,
                "state": one.state,
                "title": one.title,
                "why": one.explanation,
                "by": one.decided_by,
                "id": one.action_id,
            }
            for one in actions
        ],
        {
            "at": time_of("When"),
            "state": "State",
            "title": wide("What"),
            "why": wide("Why it stands there"),
            "by": "Decided by",
            "id": "Action",
        },
    )

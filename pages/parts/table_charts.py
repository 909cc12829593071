"""Charts of one table: file sizes, commits, structure over time, columns used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from lakehouse_core.views.theme import look
from pages.parts.charts import CATEGORIES, NAMES, draw, engine_scale, stacked

if TYPE_CHECKING:
    from lakehouse_core.views.tables import SizeBucket
    from lakehouse_core.views.window import Window

_SMALL_BUCKETS = 3  # the buckets below 32 MiB


def file_sizes(buckets: tuple[SizeBucket, ...]) -> None:
    """How many data files there are of each size; small ones in the colour of a warning."""
    rows = pa.Table.from_pylist(
        [
            {
                "size": bucket.label,
                "order": bucket.order,
                "files": bucket.files,
                "kind": "small" if bucket.order < _SMALL_BUCKETS else "large enough",
            }
            for bucket in buckets
        ]
    )
    chart = (
        alt.Chart(rows)
        .mark_bar()
        .encode(
            x=alt.X(
                "size:N",
                sort=alt.SortField("order"),
                title="size of a data file",
                axis=alt.Axis(labelAngle=0, labelOverlap=False, labelFontSize=11),
            ),
            y=alt.Y("files:Q", title="data files", axis=alt.Axis(tickMinStep=1)),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(
                    domain=["small", "large enough"],
                    range=[look("warning").colour, look("healthy").colour],
                ),
                legend=alt.Legend(orient="top", title=None),
            ),
            tooltip=["size:N", "files:Q"],
        )
    )
    draw(chart, "Bars: data files by size")


def commits_over_time(rows: pa.Table, window: Window) -> None:
    """Commits of a table, stacked by operation."""
    by = alt.Color(
        "operation:N",
        scale=alt.Scale(range=list(CATEGORIES)),
        legend=alt.Legend(orient="top", title=None),
    )
    tooltip = [
        alt.Tooltip("operation:N", title="operation"),
        alt.Tooltip("commits:Q", title="commits"),
        alt.Tooltip("added_files:Q", title="files added"),
        alt.Tooltip("deleted_files:Q", title="files removed"),
    ]
    chart = stacked(rows, window, "commits", by, tooltip)
    draw(chart, "Stacked bars: commits over time, by operation")


def structure_over_time(rows: pa.Table) -> None:
    """Data files, small files and delete files of a table over its snapshots."""
    long = pa.concat_tables(
        pa.table(
            {
                "committed_at": rows["committed_at"],
                "files": rows[name],
                "what": pa.array([label] * rows.num_rows),
            }
        )
        for name, label in (
            ("data_files", "data files"),
            ("small_files", "small files"),
            ("delete_files", "delete files"),
        )
    )
    chart = (
        alt.Chart(long)
        .mark_line(interpolate="step-after", point=alt.OverlayMarkDef(size=18), strokeWidth=1.6)
        .encode(
            x=alt.X(
                "committed_at:T",
                title="snapshot committed at, UTC",
                scale=alt.Scale(type="utc"),
                axis=alt.Axis(grid=False, labelOverlap=True, tickCount=8, format="%b %d, %H:%M"),
            ),
            y=alt.Y("files:Q", title="files", axis=alt.Axis(tickMinStep=1)),
            color=alt.Color(
                "what:N",
                sort=["data files", "small files", "delete files"],
                scale=alt.Scale(range=[CATEGORIES[0], look("warning").colour, CATEGORIES[2]]),
                legend=alt.Legend(orient="top", title=None),
            ),
            tooltip=[
                alt.Tooltip("utcyearmonthdatehoursminutes(committed_at):T", title="at (UTC)"),
                alt.Tooltip("what:N", title="kind"),
                "files:Q",
            ],
        )
    )
    draw(chart, "Lines: data files, small files and delete files over time")


def columns_used(rows: pa.Table, colours: dict[str, str]) -> None:
    """How often each column is used and as what, by engine."""
    use = pc.binary_join_element_wise(rows["column_name"], rows["role"], " · ")
    named = rows.append_column("use", use)
    chart = (
        alt.Chart(named)
        .mark_bar()
        .encode(
            y=alt.Y("use:N", sort="-x", title=None, axis=NAMES),
            x=alt.X("queries:Q", title="queries in the window", axis=alt.Axis(tickMinStep=1)),
            color=engine_scale(rows, colours),
            tooltip=[
                alt.Tooltip("column_name:N", title="column"),
                alt.Tooltip("role:N", title="used as"),
                alt.Tooltip("engine_id:N", title="engine"),
                "queries:Q",
            ],
        )
    )
    st.altair_chart(chart, width="stretch", alt="Bars: uses of each column by role and engine")

"""Column by engine by role: how often queries use each column of a table, and as what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pyarrow as pa
import streamlit as st

from pages.parts.cells import counted, show
from pages.parts.charts import PADDING

if TYPE_CHECKING:
    from lakehouse_core.views.usage import TableUsage

# From what prunes files to what only reads them: the order a layout cares about.
ROLES = ("filter_eq", "filter_in", "filter_range", "join", "group", "order", "project")
_COLUMNS = 25


def matrix_chart(seen: TableUsage) -> None:
    """The most used columns as a heat map, one panel per engine, roles across."""
    columns = list(seen.matrix())[:_COLUMNS]
    cells = [cell for cell in seen.cells if cell.column_name in set(columns)]
    rows = pa.table(
        {
            "column": [cell.column_name for cell in cells],
            "role": [cell.role for cell in cells],
            "engine": [cell.engine_id for cell in cells],
            "queries": [cell.runs for cell in cells],
            "users": [cell.users for cell in cells],
        }
    )
    roles = [role for role in ROLES if role in set(rows["role"].to_pylist())]
    named = alt.Axis(
        labelAngle=-45, labelExpr="replace(datum.value, '_', ' ')", labelOverlap=False, orient="top"
    )
    base = alt.Chart(rows).encode(
        x=alt.X("role:N", sort=roles, title=None, axis=named),
        y=alt.Y("column:N", sort=columns, title=None, axis=alt.Axis(labelLimit=220)),
        tooltip=[
            alt.Tooltip("column:N"),
            alt.Tooltip("role:N", title="used as"),
            alt.Tooltip("engine:N"),
            alt.Tooltip("queries:Q", format=","),
            alt.Tooltip("users:Q", format=","),
        ],
    )
    # One hue by opacity reads the same on a light and on a dark ground: more is stronger.
    heat = base.mark_rect(cornerRadius=2, color="#0f9488").encode(
        opacity=alt.Opacity(
            "queries:Q",
            scale=alt.Scale(type="sqrt", domainMin=0, range=[0.1, 1]),
            legend=alt.Legend(orient="bottom", title="queries in the window"),
        )
    )
    # All engines side by side in the width a laptop has, so that they are compared at one glance.
    panel = min(62 * len(roles), 880 // len({cell.engine_id for cell in cells}))
    chart = heat.properties(width=panel, height=26 * len(columns)).facet(
        column=alt.Column("engine:N", title=None, header=alt.Header(labelFontWeight="bold"))
    )
    st.altair_chart(
        chart.properties(padding=PADDING),
        alt="Heat map: queries by column and role, one panel per engine",
    )


def matrix_grid(seen: TableUsage) -> None:
    """The same as numbers: a row per column and engine, a column per role."""
    roles = [role for role in ROLES if any(cell.role == role for cell in seen.cells)]
    roles += sorted({cell.role for cell in seen.cells} - set(ROLES))
    show(
        [
            {"column": column, "engine": engine, **{role: used.get(role) for role in roles}}
            for column, by_engine in seen.matrix().items()
            for engine, used in sorted(by_engine.items())
        ],
        {
            "column": st.column_config.TextColumn("Column", pinned=True),
            "engine": "Engine",
            **{role: counted(role.replace("_", " ")) for role in roles},
        },
    )

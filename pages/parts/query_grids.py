"""Tables of queries and engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lakehouse_core.views.queries import ColumnRoles
from pages.parts.cells import (
    counted,
    mebibytes,
    number,
    one_line,
    percent,
    seconds,
    show,
    state_word,
    time_of,
    wide,
)
from pages.parts.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakehouse_core.views.queries import QueryDetail, QueryRow, RunningQuery
    from lakehouse_core.views.red import Red


def query_grid(rows: Sequence[QueryRow], key: str, on_select: Callable[[], None]) -> Any:
    """The query history; a row can be chosen."""
    return show(
        [
            {
                "submitted": row.submitted_at,
                "engine": row.engine_id,
                "status": state_word(row.status),
                "duration": seconds(row.elapsed_ms),
                "user": row.user_name,
                "kind": row.statement_kind,
                "scanned": mebibytes(row.bytes_scanned),
                "rows": row.rows_returned,
                "error": row.error_class,
                "sql": one_line(row.sql_text),
                "tags": list(row.tags or ()),
                "origin": row.origin,
            }
            for row in rows
        ],
        {
            "submitted": time_of("Submitted"),
            "engine": "Engine",
            "status": "Status",
            "duration": number("Duration", "%.2f s", "From submission to the last row."),
            "user": "User",
            "kind": "Kind",
            "scanned": number("Scanned", "%.1f MiB", "Empty: the engine did not say."),
            "rows": counted("Rows returned"),
            "error": st.column_config.TextColumn("Error class", width=190),
            "sql": wide("SQL"),
            "tags": st.column_config.ListColumn("Tags"),
            "origin": st.column_config.TextColumn(
                "Origin", help="Simulated rows come from a generator, not from an engine."
            ),
        },
        key=key,
        on_select=on_select,
    )


def running_grid(rows: Sequence[RunningQuery], seconds: Callable[[RunningQuery], float]) -> None:
    """What runs now."""
    show(
        [
            {
                "engine": row.engine_id,
                "status": state_word(row.status),
                "since": seconds(row),
                "user": row.user_name,
                "sql": one_line(row.sql_text),
                "link": row.engine_url,
            }
            for row in rows
        ],
        {
            "engine": "Engine",
            "status": "Status",
            "since": number("For", "%.0f s"),
            "user": "User",
            "sql": wide("SQL"),
            "link": st.column_config.LinkColumn("Engine UI", display_text="open"),
        },
    )


def red_grid(
    engines: Sequence[Red],
    trend: Callable[[str], list[int]],
    states: Mapping[str, str] | None = None,
) -> None:
    """Rate, errors and duration per engine, beside its state where that is asked for."""
    show(
        [
            {
                "engine": red.engine_id,
                **({"state": state_word(states[red.engine_id or ""])} if states else {}),
                "rate": red.queries_per_hour,
                "queries": red.queries,
                "errors": percent(red.error_ratio),
                "p50": seconds(red.p50_ms),
                "p95": seconds(red.p95_ms),
                "trend": trend(red.engine_id or ""),
            }
            for red in engines
        ],
        {
            "engine": "Engine",
            "state": "Observed",
            "rate": number("Rate", "%.1f / h", "Queries submitted per hour of the window."),
            "queries": counted("Queries"),
            "errors": number("Errors", "%.1f %%", "Failed out of finished and failed."),
            "p50": number("p50", "%.2f s", "Of finished queries."),
            "p95": number("p95", "%.2f s", "Of finished queries."),
            "trend": st.column_config.BarChartColumn("Queries over the window", y_min=0),
        },
    )


def usage_grid(columns: Sequence[ColumnRoles]) -> None:
    """The columns one query uses."""
    show(
        [
            {"table": c.table_name, "column": c.column_name, "roles": ", ".join(c.roles)}
            for c in columns
        ],
        {"table": "Table", "column": "Column", "roles": "Used as"},
    )


def touched(seen: QueryDetail) -> None:
    """The tables and columns of one query; also tables of which it names no column."""
    if not seen.tables and not seen.columns:
        st.caption("None is known: the text was not understood yet, or it names no table.")
    else:
        named = {one.table_name for one in seen.columns}
        whole = [
            ColumnRoles(table_name=name, column_name="(no column by name)", roles=("table",))
            for name in seen.tables
            if name not in named
        ]
        usage_grid((*seen.columns, *whole))
    if seen.unresolved:
        names = ", ".join(sorted({one.column_name for one in seen.unresolved}))
        st.caption(
            f"Not resolved, so not counted as use of any table: {plain(names)}. The text names no "
            "table for them, and no collected table explains them."
        )
    if seen.accessed:
        st.markdown("**What its engine logged, through views, too**")
        show(
            [
                {"table": a.table_name, "column": a.column_name, "access": ", ".join(a.access)}
                for a in seen.accessed
            ],
            {"table": "Table", "column": "Column", "access": "Access"},
        )

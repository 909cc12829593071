"""Which columns do queries use, and as what? A table's columns by engine and role."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.names import most_used_table, resolve_table, table_ids
from lakehouse_core.views.usage import TableUsage, UsageFilters, table_usage
from pages.parts import cards, frame, menu, session
from pages.parts.cells import counted, show, wide
from pages.parts.text import plain
from pages.parts.usage_matrix import matrix_chart, matrix_grid
from pages.parts.workload_grids import coverage

VIEWS = ("Heat map", "Numbers")


def chosen_table() -> str | None:
    """The table in the address or in the list; one nobody knows is told with the nearest."""
    known = session.read_now(table_ids)
    asked = st.query_params.get("table")
    if asked and asked not in known:
        try:
            st.query_params["table"] = session.read_now(resolve_table, asked)
        except NotFoundError as error:
            st.info(plain(str(error)), icon=":material/search_off:")
    if not known:
        frame.empty(
            "No table was collected yet",
            "Tables appear once the Iceberg catalog was read; in the demo that is within a minute "
            "after the lake was built.",
            "lakehelm collect --once iceberg",
        )
        return None
    usual = session.read_now(most_used_table)
    index = known.index(usual) if usual in known else 0
    return st.selectbox("Table", known, index=index, key="table", bind="query-params")


def figures(seen: TableUsage) -> None:
    first, second, third, fourth = st.columns(4)
    first.metric(f"Queries on it, {seen.window.label}", f.count(seen.runs), border=True)
    second.metric("Engines that used it", f.count(len(seen.engines)), border=True)
    third.metric("Columns used", f.count(len(seen.matrix())), border=True)
    filtered = {c.column_name for c in seen.cells if c.role.startswith("filter")}
    fourth.metric("Columns filtered by", f.count(len(filtered)), border=True)


def literals(seen: TableUsage) -> None:
    st.subheader("What do conditions compare with?", anchor=False)
    if not seen.literals:
        st.caption(
            "No literal is known for this window: the pipeline reads them out of the texts. "
            "`lakehelm pipeline run` runs it at once."
        )
        return
    show(
        [
            {
                "column": row.column_name,
                "operator": row.operator,
                "engine": row.engine_id,
                "queries": row.runs,
                "distinct": row.distinct_literals,
                "least": row.min_literal,
                "most": row.max_literal,
                "sample": ", ".join(row.sample),
            }
            for row in seen.literals
        ],
        {
            "column": st.column_config.TextColumn("Column", pinned=True),
            "operator": "Condition",
            "engine": "Engine",
            "queries": counted("Queries"),
            "distinct": counted("Different values", "On the day that had most."),
            "least": "Least",
            "most": "Greatest",
            "sample": wide("Some of them"),
        },
    )
    frame.caption(f"{seen.window.phrase.capitalize()}, as far as the pipeline has read.", "queries")


def body(table: str) -> None:
    bar = session.bar()
    filters = UsageFilters(window=bar.window, engine=bar.engine)
    seen = session.read(table_usage, table, filters)
    if not seen.cells:
        frame.empty(
            "No query used this table",
            f"None of {seen.window.phrase} did, as far as their texts were understood. Choose a "
            "longer window, or run some queries:",
            "lakehelm demo workload --minutes 5",
        )
        return
    figures(seen)
    st.subheader("Which columns do queries use, and as what?", anchor=False)
    view = st.segmented_control("Show as", VIEWS, default=VIEWS[0], key="usage_view")
    if view == VIEWS[1]:
        matrix_grid(seen)
    else:
        matrix_chart(seen)
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption(
            f"Queries of {seen.window.phrase}; one counts once per column and role. "
            f"{coverage(seen.coverage)}",
            "queries",
        )
        cards.how(cards.HOW_USAGE)
    literals(seen)


menu.enter()
frame.lead("Which columns do queries use, and as what?", "queries")
table = chosen_table()
if table:
    body(table)

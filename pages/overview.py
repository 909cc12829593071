"""What do I need to know today? Figures first, then what changed, what runs, what needs care."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views import formatting as f
from lakehouse_core.views.overview import Overview, overview
from lakehouse_core.views.queries import running_now
from lakehouse_core.views.red import Trend, trend
from pages.parts import cards, charts, frame, menu, session
from pages.parts.query_grids import red_grid, running_grid
from pages.parts.text import plain, shorten

CHANGE_ICONS = {"failure": "error", "table": "table_chart", "engine": "memory"}


def figures() -> None:
    filters = session.bar()
    every = session.config().agents.probe_every
    seen = session.read(overview, session.expected_jobs(), filters, probe_every=every)
    over_time = session.read(trend, filters)
    frame.lead("What do I need to know today?", "queries", "tables", "health", "engines")
    if not seen.red.total.queries and not seen.tables.total:
        frame.empty(
            "Nothing was collected yet",
            "Queries appear here as soon as an engine has run one, tables as soon as the catalog "
            "was read. In the demo both take less than a minute after the start.",
            "lakehelm collect --once",
        )
        return
    with cards.red_cards(seen.red.total, seen.before, seen.window):
        cards.lag_card(seen.freshness.of("queries", "tables"))
    cards.state_cards(seen.tables)
    cards.how(cards.HOW_QUERIES + cards.HOW_HEALTH)

    service(seen, over_time)
    changed, care = st.columns(2)
    with changed:
        what_changed(seen)
    with care:
        what_needs_care(seen)


def service(seen: Overview, over_time: Trend) -> None:
    st.subheader("How does each engine serve?", anchor=False)
    if seen.engines:
        states = {view.engine.engine_id: view.state for view in seen.engines}
        red_grid([view.served for view in seen.engines], over_time.counts, states)
    frame.caption(f"Queries submitted in {seen.window.phrase}.", "queries", "engines")
    if not seen.red.total.queries:
        frame.empty(
            "No query in this window",
            f"No engine was asked anything in {seen.window.phrase}. Choose a longer window, or:",
            "lakehelm demo workload --minutes 5",
        )
        return
    left, right = st.columns(2)
    with left:
        st.markdown("**How many queries came, and where did they run?**")
        charts.queries_over_time(over_time.rows, over_time.window, session.colours())
        frame.caption(f"Queries submitted in {seen.window.phrase}.", "queries")
    with right:
        st.markdown("**How long did the slowest twentieth take?**")
        charts.durations_over_time(over_time.rows, over_time.window, session.colours())
        frame.caption(f"Finished queries of {seen.window.phrase}.", "queries")


def what_changed(seen: Overview) -> None:
    st.subheader("What changed?", anchor=False)
    for change in seen.changes:
        sign = "trending_down" if change.is_worse else "trending_up"
        with st.container(border=True, gap=None):
            st.page_link(
                f"pages/{change.page}.py",
                label=plain(change.title),
                icon=f":material/{CHANGE_ICONS[change.kind]}:",
                query_params=dict(change.query),
            )
            when = f.both(change.happened_at, seen.freshness.at)
            st.caption(f":material/{sign}: {plain(shorten(change.detail))}  \n{when}")
    if not seen.changes:
        st.markdown(":material/check_circle: No new failure; tables and engines are as before.")
    frame.caption(f"Compared with {seen.window.previous().label}.", "queries", "health")


def what_needs_care(seen: Overview) -> None:
    st.subheader("Which tables need care?", anchor=False)
    for verdict in seen.care:
        with st.container(border=True, gap=None):
            st.page_link(
                "pages/tables.py",
                label=plain(verdict.table_id),
                icon=":material/table_chart:",
                query_params={"table": verdict.table_id},
            )
            with st.container(horizontal=True, vertical_alignment="center"):
                frame.badge(verdict.state)
                st.caption(f"{f.count(verdict.score)} of 100. {plain(verdict.worst or '')}")
    if not seen.care:
        st.markdown(":material/check_circle: No table is in a warning or critical state.")
    frame.caption("Newest verdict on each table.", "health")


def running() -> None:
    st.subheader("What runs now?", anchor=False)
    rows = session.read(running_now, session.bar())
    now = utc_now()
    if rows:
        running_grid(rows, lambda row: (now - row.submitted_at).total_seconds())
    else:
        st.markdown(":material/bedtime: No query is queued or running, as far as engines told us.")
    frame.caption("Queued and running queries of the last day.", "queries")


menu.enter()
frame.live(figures)
frame.live(running)

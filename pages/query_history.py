"""What ran, where, how? One history over all engines, and every query in full."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.filters import STATUSES, Filters
from lakehouse_core.views.queries import Place, list_queries, show_query
from lakehouse_core.views.red import red, trend
from pages.parts import cards, choice, frame, menu, session, trace
from pages.parts.charts import phases
from pages.parts.query_facts import measures
from pages.parts.query_grids import query_grid, red_grid, touched
from pages.parts.text import plain

PAGE_ROWS = 200
PLACES, PLACES_OF = "history_places", "history_places_of"


def own_filters() -> Filters:
    status, user, tag, text = st.columns(4)
    own = Filters(
        status=status.selectbox(
            "Status", STATUSES, index=None, key="status", bind="query-params", placeholder="Any"
        ),
        user=user.text_input("User", key="user", bind="query-params", placeholder="Exact name"),
        tag=tag.text_input("Tag", key="tag", bind="query-params", placeholder="team:bi"),
        text=text.text_input(
            "Search", key="text", bind="query-params", placeholder="In SQL, error, or a query id"
        ),
        template=st.query_params.get("template"),
    )
    if own.template:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/filter_alt: Only template {plain(own.template)}")
            st.button("Show all templates", key="history_all", on_click=_all_templates)
    return session.bar_with(own)


def _all_templates() -> None:
    st.query_params.pop("template", None)


def strip(filters: Filters) -> None:
    """RED per engine under all filters."""
    seen = session.read(red, filters)
    over_time = session.read(trend, filters)
    with cards.red_cards(seen.total, None, seen.window):
        cards.scan_card(seen.total, seen.window)
    if seen.engines:
        red_grid(seen.engines, over_time.counts)
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption(f"Queries of {seen.window.phrase}, under all filters.", "queries")
        cards.how(cards.HOW_QUERIES)


def listing(filters: Filters) -> str | None:
    behind: list[Place] = st.session_state.get(PLACES, [])
    if st.session_state.get(PLACES_OF) != filters:  # another question begins at its first page
        behind = st.session_state[PLACES] = []
        st.session_state[PLACES_OF] = filters
    place = behind[-1] if behind else None
    found = session.read(list_queries, filters, limit=PAGE_ROWS, behind=place)
    if not found.total:
        frame.empty(
            "No query matches",
            f"Nothing was submitted in {found.window.phrase} that passes these filters. Choose a "
            "longer window, clear a filter, or run some queries:",
            "lakehelm demo workload --minutes 5",
        )
        return None
    st.subheader("What ran?", anchor=False)
    ids = [f"{row.engine_id}:{row.query_id}" for row in found.rows]
    query_grid(found.rows, "history_grid", choice.remember("history_grid", "query", ids))
    first = len(behind) * PAGE_ROWS + 1
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption(
            f"Queries {f.count(first)} to {f.count(first + len(ids) - 1)} of "
            f"{f.count(found.total)} of {found.window.phrase}, newest first. Choose a row for its "
            "detail.",
            "queries",
        )
        if found.total > PAGE_ROWS:
            st.button(
                "Newer",
                key="history_newer",
                icon=":material/chevron_left:",
                disabled=not behind,
                on_click=_newer,
            )
            st.button(
                "Older",
                key="history_older",
                icon=":material/chevron_right:",
                disabled=first + len(ids) > found.total,
                on_click=_older,
                args=(found.end,),
            )
    return choice.chosen("history_grid", "query", ids)


def _newer() -> None:
    st.session_state[PLACES] = st.session_state[PLACES][:-1]


def _older(end: Place) -> None:
    st.session_state[PLACES] = [*st.session_state[PLACES], end]


def detail(chosen: str) -> None:
    engine_id, _, query_id = chosen.partition(":")
    st.subheader(f"Query {plain(query_id)} on {plain(engine_id)}", anchor=False)
    try:
        seen = session.read_now(show_query, engine_id, query_id)
    except NotFoundError as error:
        st.info(plain(str(error)), icon=":material/search_off:")
        return
    event = seen.event
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.badge(event.status.value)
        if event.origin == "simulated":
            st.badge("simulated", icon=":material/smart_toy:", color="violet")
        if event.engine_url:
            st.link_button("Open in engine UI", event.engine_url, icon=":material/open_in_new:")
        if event.template_id:
            st.page_link(
                "pages/workloads.py",
                label="Its template",
                icon=":material/workspaces:",
                query_params={"template": event.template_id},
            )
    if event.error_message or event.error_class:
        st.markdown(f":material/error: **{plain(event.error_class or 'Unclassified error')}**")
        st.code(
            event.error_message or "The engine gave no message.", language=None, wrap_lines=True
        )
    left, right = st.columns(2)
    with left:
        st.markdown("**SQL as submitted**")
        st.code(event.sql_text or "The engine did not keep the text.", "sql", wrap_lines=True)
    with right:
        st.markdown("**Template (without literals)**")
        st.code(seen.template or "Not understood yet.", "sql", wrap_lines=True)
        if seen.parse_error:
            st.warning(f"It does not parse: {plain(seen.parse_error)}", icon=":material/code_off:")
    if seen.phases:
        st.markdown("**Where did its time go?**")
        phases(seen.phases)
    measures(seen)
    if event.gateway_id:
        st.markdown("**How was it routed?**")
        trace.of_statement(event.gateway_id)
    st.markdown("**Tables and columns it uses**")
    touched(seen)
    frame.caption("As the engine reported it.", "queries")


menu.enter()
frame.lead("What ran, where, how?", "queries")
filters = own_filters()
strip(filters)
chosen = listing(filters) or st.query_params.get("query")
if chosen:
    detail(chosen)

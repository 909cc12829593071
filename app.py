"""The frame of the pages: navigation, the shared filter bar in the address, failures in words."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import LakehouseError
from pages.parts import frame, session

PAGES = {
    "Observe": [
        st.Page("pages/overview.py", title="Overview", icon=":material/monitoring:", default=True),
        st.Page("pages/query_history.py", title="Query history", icon=":material/history:"),
        st.Page("pages/engines.py", title="Engines", icon=":material/memory:"),
    ],
    "Optimise": [
        st.Page("pages/tables.py", title="Tables", icon=":material/table_chart:"),
    ],
    "Govern": [
        st.Page("pages/agents.py", title="Agents", icon=":material/smart_toy:"),
        st.Page("pages/settings.py", title="Settings", icon=":material/settings:"),
    ],
}


def filter_bar(title: str) -> None:
    """The page's title and, beside it, window and engine; both live in the address."""
    heading, window, engine = st.columns([3, 1, 1], vertical_alignment="bottom")
    heading.title(title, anchor=False)
    window.selectbox(
        "Window",
        session.WINDOWS,
        index=session.WINDOWS.index("24h"),
        key="window",
        bind="query-params",
        accept_new_options=True,
        help="The time up to now, a calendar period, or two days: 2026-11-01/2026-11-07. UTC.",
    )
    engine.selectbox(
        "Engine",
        sorted(session.config().engines),
        index=None,
        key="engine",
        bind="query-params",
        placeholder="All engines",
    )


st.set_page_config(page_title="Lakehelm", page_icon=":material/sailing:", layout="wide")
st.logo(":material/sailing:", size="large")
page = st.navigation(PAGES)
try:
    filter_bar(page.title)
    frame.banner()
    page.run()
except LakehouseError as error:
    frame.failure(error)

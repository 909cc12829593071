"""The frame of the pages: navigation, the shared filter bar in the address, failures in words."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lakehouse_core.domain.errors import LakehouseError
from pages.parts import frame, session

ASSETS = Path(__file__).parent / "pages" / "assets"
PAGES = {
    "Observe": {
        st.Page("pages/overview.py", title="Overview", default=True): "monitoring",
        st.Page("pages/query_history.py", title="Query history"): "history",
        st.Page("pages/engines.py", title="Engines"): "memory",
    },
    "Optimise": {st.Page("pages/tables.py", title="Tables"): "table_chart"},
    "Govern": {
        st.Page("pages/agents.py", title="Agents"): "smart_toy",
        st.Page("pages/settings.py", title="Settings"): "settings",
    },
}


def menu() -> None:
    """The sections of the sidebar.

    Not the built-in menu: the icon of its current page is fetched from another host for the tab.
    """
    for section, entries in PAGES.items():
        st.sidebar.caption(section)
        for entry, icon in entries.items():
            st.sidebar.page_link(entry, icon=f":material/{icon}:")


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


page = st.navigation([page for entries in PAGES.values() for page in entries], position="hidden")
st.set_page_config(
    page_title=f"{page.title} · Lakehelm", page_icon=str(ASSETS / "icon.svg"), layout="wide"
)
st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))
try:
    filter_bar(page.title)
    menu()
    frame.banner()
    page.run()
except LakehouseError as error:
    frame.failure(error)

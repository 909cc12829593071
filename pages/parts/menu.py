"""Which pages there are, in which sections; and that none is ever shown without its frame."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamlit.navigation.page import StreamlitPage

# Section → file of the page, its title and icon; the first page is the one that opens.
SECTIONS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Observe": (
        ("overview", "Overview", "monitoring"),
        ("console", "SQL console", "terminal"),
        ("query_history", "Query history", "history"),
        ("workloads", "Workloads", "workspaces"),
        ("engines", "Engines", "memory"),
        ("comparison", "Engine comparison", "compare_arrows"),
        ("routing", "Routing", "alt_route"),
    ),
    "Spend": (
        ("costs", "Costs", "payments"),
        ("budgets", "Budgets and alerts", "notifications"),
        ("groups", "Workload groups", "rule"),
        ("whatif", "What if", "help_center"),
        ("exports", "Exports", "download"),
    ),
    "Optimise": (
        ("tables", "Tables", "table_chart"),
        ("usage", "Column usage", "grid_on"),
        ("recommendations", "Recommendations", "recommend"),
        ("maintenance", "Maintenance", "build"),
    ),
    "Govern": (
        ("agents", "Agents", "smart_toy"),
        ("settings", "Settings", "settings"),
    ),
}
_IS_FRAMED: ContextVar[bool] = ContextVar("is_framed", default=False)


def navigation() -> StreamlitPage:
    """The page of this run. The built-in menu is hidden: see `sidebar`."""
    names = [entry for entries in SECTIONS.values() for entry in entries]
    pages = [
        st.Page(f"pages/{name}.py", title=title, default=(name == names[0][0]))
        for name, title, _ in names
    ]
    return st.navigation(pages, position="hidden")


def sidebar() -> None:
    """The menu.

    Not the built-in one: for the browser's tab it fetches the icon of the page from another host.
    """
    for section, entries in SECTIONS.items():
        st.sidebar.caption(section)
        for name, title, icon in entries:
            st.sidebar.page_link(f"pages/{name}.py", label=title, icon=f":material/{icon}:")


@contextmanager
def frame() -> Iterator[None]:
    """Around the run of a page: title, filters and failures are taken care of."""
    token = _IS_FRAMED.set(True)
    try:
        yield
    finally:
        _IS_FRAMED.reset(token)


def enter() -> None:
    """Begin a page; each one calls this first.

    Before `st.navigation` was ever called in a process, Streamlit takes the folder `pages` for its
    old kind of multipage app and runs the file of a page by itself, without app.py. Calling it
    ends that, and the page is run again in its frame.
    """
    if not _IS_FRAMED.get():
        navigation()
        st.rerun()

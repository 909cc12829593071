"""The frame of the pages: navigation, the shared filter bar in the address, failures in words."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.views.filters import check_engine
from pages.parts import frame, menu, session

ASSETS = Path(__file__).parent / "pages" / "assets"


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
    asked = st.query_params.get("engine")  # the widget below forgets a name it does not offer
    engine.selectbox(
        "Engine",
        sorted(session.config().engines),
        index=None,
        key="engine",
        bind="query-params",
        placeholder="All engines",
    )
    check_engine(asked, session.config().engines)


page = menu.navigation()
st.set_page_config(
    page_title=f"{page.title} · Lakehelm", page_icon=str(ASSETS / "icon.svg"), layout="wide"
)
st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))
menu.sidebar()
try:
    filter_bar(page.title)
    session.bar().window_at(utc_now())  # a window nobody understands is the whole page's failure
    frame.banner()
    with menu.frame():
        page.run()
except LakehouseError as error:
    frame.failure(error)

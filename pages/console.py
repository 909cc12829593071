"""Run this, cheaply, and say why it went there: SQL through the gateway, explained first."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views.console import saved_query
from lakehouse_core.views.gateway import GatewayAwayError, Override
from lakehouse_core.views.switches import LONGEST_NAME
from pages.parts import console_result, console_side, console_state, frame, menu, session
from pages.parts.text import plain

BELOW = ("History", "Saved queries")


def overrides() -> tuple[Override, ...]:
    """Groups and engines a client may ask for; when the gateway is away that is said."""
    try:
        return console_state.rules().overrides
    except GatewayAwayError as error:
        st.warning(plain(str(error)), icon=":material/cloud_off:")
        st.code("lakehelm up", language="bash")
        return ()


def open_link() -> None:
    """Open the saved query that the address names, once."""
    wanted = st.query_params.get("query")
    if not wanted or st.session_state.get(console_state.OPENED) == wanted:
        return
    st.session_state[console_state.OPENED] = wanted
    try:
        console_state.new_tab(session.read_now(saved_query, wanted).sql_text)
    except NotFoundError as error:
        st.info(plain(str(error)), icon=":material/search_off:")


def tab_bar() -> str:
    """The tabs; returns the open one."""
    names = console_state.tabs()
    if st.session_state.get(console_state.TAB) not in names:
        st.session_state[console_state.TAB] = names[0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Tabs", names, key=console_state.TAB, required=True, label_visibility="collapsed"
        )
        st.button(
            "New tab",
            key="console_new",
            icon=":material/add:",
            type="tertiary",
            on_click=console_state.new_tab,
        )
        st.button(
            "Close tab",
            key="console_close",
            icon=":material/close:",
            type="tertiary",
            on_click=_close,
        )
    return str(st.session_state[console_state.TAB])


def _close() -> None:
    console_state.close_tab(st.session_state[console_state.TAB])


def who() -> None:
    """As whom statements are sent."""
    sql = session.config().gateway.sql
    name, secret = st.columns(2) if sql.asks_who else (st, st)
    kept = st.session_state.get("console_user_kept", st.session_state.get("actor_name"))
    st.session_state.setdefault("console_user", kept or "analyst")
    st.session_state["console_user_kept"] = name.text_input(
        "Your name",
        key="console_user",
        max_chars=LONGEST_NAME,
        help="The gateway finds your role, your guards and your history by it.",
    )
    if sql.asks_who:
        secret.text_input(
            "Password",
            key="console_password",
            type="password",
            help="Sent to the gateway with your statements; kept for this visit only.",
        )


def editor(tab: str, choices: tuple[Override, ...]) -> None:
    """The text and what is done with it."""
    st.session_state.setdefault(f"console_sql_{tab}", console_state.text_of(tab))
    st.text_area(
        "SQL in Trino's dialect",
        key=f"console_sql_{tab}",
        height=220,
        placeholder="SELECT … Ctrl+Enter runs it. The gateway translates it for its engine.",
    )
    console_state.text_of(tab)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Run",
            key="console_run",
            type="primary",
            icon=":material/play_arrow:",
            shortcut="Ctrl+Enter",
            on_click=console_state.run,
            args=(tab, choices),
        )
        st.button(
            "Explain",
            key="console_explain",
            icon=":material/alt_route:",
            on_click=console_state.look,
            args=(tab, choices),
        )
        st.selectbox(
            "Where",
            [console_state.FREE, *dict.fromkeys(choice.label for choice in choices)],
            key="console_on",
            width=165,
            help="Groups the rules let a client ask for, and engines. Each group lets in whom it "
            "lets in; your role says whether you may name an engine.",
        )
        st.selectbox(
            "Rows at most", console_state.ROW_LIMITS, index=1, key="console_limit", width=112
        )
        st.selectbox(
            "Time at most",
            list(console_state.SECONDS),
            index=1,
            key="console_seconds",
            width=112,
        )


menu.enter()
frame.lead("Where does this run, what does it read, and what comes back?", "queries")
choices = overrides()
open_link()
side, main = st.columns([1, 3], gap="medium")
with side:
    who()
    console_side.tree()
with main:
    tab = tab_bar()
    editor(tab, choices)
    console_result.explained(tab, console_state.question(tab, choices))
    console_result.outcome(tab)
    part = st.segmented_control("More", BELOW, default=BELOW[0], key="console_part")
    if part == BELOW[1]:
        console_side.saved(tab)
    else:
        console_side.history()

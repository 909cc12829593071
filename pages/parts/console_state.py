"""What the console remembers of a visit: tabs, their texts, what runs in them, and as whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.views.gateway import Override, Question, RulesNow
from lakehouse_core.views.statements import SOURCE, Connection, Limits, Run, connection_to, limited
from pages.parts import session

if TYPE_CHECKING:
    from lakehouse_core.views.gateway import Explained

TABS, TAB, TEXTS = "console_tabs", "console_tab", "console_texts"
OPENED = "console_opened"  # the saved query of the address that has its tab already
MOST_TABS = 8
ROW_LIMITS = (100, 1_000, 10_000)
SECONDS = {"1 min": 60.0, "5 min": 300.0, "30 min": 1_800.0}
FREE = "the router decides"
QUICK_SECONDS = 0.8  # a statement that ends this soon is shown at once


def tabs() -> list[str]:
    """The names of the open tabs."""
    found: list[str] = st.session_state.setdefault(TABS, ["Query 1"])
    return found


def new_tab(text: str = "") -> None:
    """Open a tab and go there."""
    taken = [int(name.split()[-1]) for name in tabs()]
    name = f"Query {max(taken, default=0) + 1}"
    st.session_state[TABS] = [*tabs(), name][-MOST_TABS:]
    st.session_state[TAB] = name
    write(name, text)


def close_tab(tab: str) -> None:
    """Close a tab and stop what runs in it; the last one stays, empty."""
    run = st.session_state.pop(f"console_run_{tab}", None)
    if run is not None:
        run.cancel()
    st.session_state.pop(f"console_explained_{tab}", None)
    left = [name for name in tabs() if name != tab] or ["Query 1"]
    st.session_state[TABS], st.session_state[TAB] = left, left[-1]
    if tab in left:
        write(tab, "")


def name_address(query_id: str) -> None:
    """Let the page's address lead to a saved query that has its tab."""
    st.query_params["query"] = st.session_state[OPENED] = query_id


def write(tab: str, text: str) -> None:
    """Put a text into a tab."""
    st.session_state.setdefault(TEXTS, {})[tab] = text
    st.session_state[f"console_sql_{tab}"] = text


def text_of(tab: str) -> str:
    """The text of a tab, also when its field was not drawn meanwhile."""
    kept: dict[str, str] = st.session_state.setdefault(TEXTS, {})
    kept[tab] = st.session_state.get(f"console_sql_{tab}", kept.get(tab, ""))
    return kept[tab]


@st.cache_data(ttl=10, max_entries=4, show_spinner=False)
def _rules(url: str) -> RulesNow:
    del url  # the key of the cache
    return session.gateway().rules()


def rules() -> RulesNow:
    """The gateway's rules, at most some seconds old.

    Raises:
        GatewayAwayError: it does not answer.
    """
    return _rules(session.gateway().url)


def chosen_override(overrides: tuple[Override, ...]) -> Override | None:
    """The group or engine the visitor asks for."""
    wanted = st.session_state.get("console_on")
    return next((one for one in overrides if one.label == wanted), None)


def connection(headers: dict[str, str] | None = None) -> Connection:
    """To the gateway, as the visitor."""
    config, given = session.config(), st.session_state
    place = given.get("console_schema") or ""
    catalog, _, schema = place.partition(".")
    return connection_to(
        config.gateway.sql,
        user=(given.get("console_user") or "").strip() or "analyst",
        password=(given.get("console_password") or None) if config.gateway.sql.asks_who else None,
        catalog=catalog or next(iter(config.catalogs), None),
        schema=schema or None,
        headers=headers or {},
    )


def _asked(tab: str, overrides: tuple[Override, ...]) -> tuple[str, dict[str, str]]:
    override = chosen_override(overrides)
    limit = st.session_state.get("console_limit", 1_000)
    sql = limited(text_of(tab), limit)
    return sql, {override.header: override.value} if override else {}


def look(tab: str, overrides: tuple[Override, ...]) -> None:
    """Explain the text of a tab; what ran there before is over and gone."""
    if text_of(tab).strip():
        stop(tab)
        st.session_state.pop(f"console_run_{tab}", None)
        explain(tab, overrides)


def question(tab: str, overrides: tuple[Override, ...]) -> Question:
    """What the visitor asks in a tab, as it stands."""
    sql, headers = _asked(tab, overrides)
    way = connection(headers)
    return Question(
        sql=sql,
        user=way.user,
        catalog=way.catalog,
        schema=way.schema,
        source=SOURCE,
        headers=headers,
    )


def explain(tab: str, overrides: tuple[Override, ...]) -> None:
    """Ask what would happen to the text of a tab."""
    asked = question(tab, overrides)
    try:
        found: Explained | str = session.gateway().explain(asked)
    except LakehouseError as error:
        found = str(error)
    st.session_state[f"console_explained_{tab}"] = (asked, found)


def explanation(tab: str) -> tuple[Question, Explained | str] | None:
    """What was asked last in a tab, and what the gateway said or why it said nothing."""
    found: tuple[Question, Explained | str] | None = st.session_state.get(
        f"console_explained_{tab}"
    )
    return found


def run(tab: str, overrides: tuple[Override, ...]) -> None:
    """Explain and run the text of a tab."""
    if not text_of(tab).strip():
        return
    stop(tab)
    explain(tab, overrides)
    sql, headers = _asked(tab, overrides)
    limits = Limits(
        rows=st.session_state.get("console_limit", 1_000),
        seconds=SECONDS[st.session_state.get("console_seconds", "5 min")],
    )
    started = Run(connection(headers), sql, limits).start()
    started.wait(QUICK_SECONDS)
    st.session_state[f"console_run_{tab}"] = started


def stop(tab: str) -> None:
    """Cancel what runs in a tab."""
    running = st.session_state.get(f"console_run_{tab}")
    if running is not None:
        running.cancel()
        running.wait(QUICK_SECONDS)

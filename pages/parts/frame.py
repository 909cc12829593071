"""What stands around a page's own content: freshness, banners, failures, empty states."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import (
    ConfigError,
    FilterError,
    LakehouseError,
    StoreError,
    StoreUnavailableError,
)
from lakehouse_core.views.freshness import freshness
from lakehouse_core.views.theme import look
from pages.parts import session
from pages.parts.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.views.freshness import Freshness

RETRY_SECONDS = 5
LIVE_SECONDS = 10


def fresh(*feeds: str) -> Freshness:
    """The freshness of the figures that rest on these feeds."""
    return session.read(freshness, session.expected_jobs()).of(*feeds)


def lead(question: str, *feeds: str) -> None:
    """The question a page answers, how fresh its figures are, and a banner when they are stale."""
    state = fresh(*feeds)
    st.caption(f"{question} {state.caption()}.")
    warning = state.warning()
    if warning:
        st.warning(plain(warning), icon=":material/update_disabled:")


def caption(basis: str, *feeds: str) -> None:
    """What a figure is made of and how fresh it is; stands under every chart and table."""
    st.caption(f"{basis} {fresh(*feeds).caption()}.")


def banner() -> None:
    """Says which profile this is, where it matters."""
    profile = session.config().profile
    st.sidebar.space("small")
    if profile == "demo":
        st.sidebar.info(
            "Demo profile: real engines and a real lake on this machine, with a made-up workload.",
            icon=":material/science:",
        )
    else:
        st.sidebar.caption(f"Profile {plain(profile)}")


def badge(state: str) -> None:
    """A state as icon, word and colour."""
    style = look(state)
    st.badge(state, icon=f":material/{style.icon}:", color=style.badge)


def empty(title: str, why: str, command: str | None = None) -> None:
    """An empty state that teaches: what is missing, why, and the one command that fixes it."""
    with st.container(border=True):
        st.markdown(f":material/inbox: **{title}**")
        st.markdown(why)
        if command:
            st.code(command, language="bash")


def failure(error: LakehouseError) -> None:
    """Instead of a page: what happened and what to do; goes away by itself when it is mended."""
    if isinstance(error, StoreUnavailableError):
        title, command = "The telemetry store does not answer", "lakehelm up"
        why = "The agents process owns the store, and it is not running or still starting."
    elif isinstance(error, ConfigError):
        title, command = "The configuration cannot be used", "lakehelm config validate"
        why = "The pages read the same file as every other process."
    elif isinstance(error, FilterError):
        title, command = "This filter is not known", None
        why = "Choose another window or engine above."
    elif isinstance(error, StoreError):
        title, command = "The telemetry store refused a read", "lakehelm store check"
        why = "The store answers, but not to this question."
    else:
        title, command, why = (
            "This page cannot be shown",
            "lakehelm doctor",
            "Something is missing.",
        )
    st.error(f"**{title}**", icon=":material/cloud_off:")
    st.markdown(why)
    st.text(str(error))
    if command:
        st.markdown("What to do:")
        st.code(command, language="bash")
    if not isinstance(error, FilterError):
        st.caption(f"This page tries again every {RETRY_SECONDS} s and comes back by itself.")
        st.session_state["failed_at"] = utc_now()
        _try_again()


@st.fragment(run_every=RETRY_SECONDS)
def _try_again() -> None:
    """Run the whole page again; not at once, for this part is also run with the page itself."""
    if utc_now() - st.session_state["failed_at"] < timedelta(seconds=RETRY_SECONDS - 1):
        return
    session.forget_store()
    st.rerun()


def live(part: Callable[[], None]) -> None:
    """Show a part and refresh it by itself, while the rest of the page stays as it is."""
    fresh()  # a store that does not answer is the whole page's failure, not this part's

    @st.fragment(run_every=LIVE_SECONDS)
    def refreshed() -> None:
        try:
            part()
        except LakehouseError as error:
            st.warning(
                f"This part cannot be read now and tries again every {LIVE_SECONDS} s: "
                f"{plain(str(error))}",
                icon=":material/cloud_off:",
            )

    refreshed()

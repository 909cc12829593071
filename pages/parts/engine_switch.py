"""Taking an engine out of service and back: state, name, reason, and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.engine import ConfiguredState
from lakehouse_core.views.switches import LONGEST_NAME, LONGEST_REASON, set_engine
from pages.parts import answers, session
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.views.engines import EngineRow

_ACTOR = "actor_name"  # kept for the visit, whichever page is open
_ASKED = "switch_asked"  # the engine whose dialog is open
_NEW = "switch_new"  # it was asked for just now
MEANING = {
    ConfiguredState.ACTIVE: "Active: it gets statements.",
    ConfiguredState.INACTIVE: "Inactive: it gets none until somebody activates it.",
    ConfiguredState.MAINTENANCE: "Maintenance: it gets no new ones; what runs on it ends in peace.",
}


def button(engine: EngineRow) -> None:
    """The button that opens the dialog."""
    st.button(
        "Switch",
        key=f"switch_open_{engine.engine_id}",
        icon=":material/toggle_on:",
        on_click=_open,
        args=(engine,),
        help="Put it into service or take it out",
    )


def tell(engine_id: str) -> None:
    """The answer to the last switch of an engine."""
    answers.tell(_subject(engine_id))


def leave_fragment() -> None:
    """In the part that refreshes: a dialog that was asked for there is the whole page's."""
    if st.session_state.pop(_NEW, False):
        st.rerun()


def dialog() -> None:
    """Show the dialog somebody asked for, until it is answered or dismissed."""
    engine = st.session_state.get(_ASKED)
    if engine is not None:
        _ask(engine)


def _open(engine: EngineRow) -> None:
    st.session_state[_ASKED] = engine
    st.session_state[_NEW] = True
    st.session_state["switch_state"] = engine.configured
    st.session_state["switch_actor"] = st.session_state.get(_ACTOR, "")
    st.session_state["switch_reason"] = ""


def _close() -> None:
    st.session_state.pop(_ASKED, None)


@st.dialog("Switch an engine", on_dismiss=_close)
def _ask(engine: EngineRow) -> None:
    if _ASKED not in st.session_state:  # answered: the page again, without the dialog
        st.rerun()
    st.markdown(f"**{plain(engine.engine_id)}** is {plain(engine.configured)} now.")
    wanted = st.segmented_control(
        "State",
        [state.value for state in ConfiguredState],
        key="switch_state",
        format_func=str.capitalize,
        required=True,
    )
    st.caption(MEANING[ConfiguredState(wanted or engine.configured)])
    actor = st.text_input("Your name", key="switch_actor", max_chars=LONGEST_NAME)
    reason = st.text_input(
        "Reason",
        key="switch_reason",
        max_chars=LONGEST_REASON,
        help="Shown to whoever is not served by it.",
    )
    is_leaving = wanted != ConfiguredState.ACTIVE.value
    st.button(
        "Set",
        key="switch_set",
        type="primary",
        disabled=not actor.strip() or (is_leaving and not reason.strip()),
        on_click=_set,
        args=(engine.engine_id,),
    )
    st.caption("Name and reason stay with it. The gateway sends statements elsewhere in seconds.")


def _set(engine_id: str) -> None:
    given = st.session_state
    given[_ACTOR] = given["switch_actor"]
    answers.keep(
        _subject(engine_id),
        lambda: set_engine(
            session.store(),
            engine_id,
            ConfiguredState(given["switch_state"]),
            actor=given["switch_actor"],
            reason=given["switch_reason"].strip() or None,
        ),
    )
    _close()


def _subject(engine_id: str) -> str:
    return f"engine {engine_id}"

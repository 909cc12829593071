"""What came of a wish that a page sent: kept for the visit, told beside what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import streamlit as st

from lakehouse_core.domain.errors import LakehouseError
from pages.parts import session
from pages.parts.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable

_OUTCOMES = "wish_outcomes"  # subject → whether it was done, and the answer


class Answer(Protocol):
    """A wish after it was taken up."""

    @property
    def state(self) -> str:
        """Done or refused."""

    @property
    def answer(self) -> str | None:
        """In words."""


def keep(subject: str, send: Callable[[], Answer]) -> None:
    """Send a wish, and keep what comes of it."""
    try:
        answer = send()
        outcome = (answer.state == "done", answer.answer or answer.state)
    except LakehouseError as error:
        outcome = (False, str(error))
    st.session_state.setdefault(_OUTCOMES, {})[subject] = outcome
    session.forget_reads()


def tell(subject: str) -> None:
    """The answer to the last wish about something."""
    outcome = st.session_state.get(_OUTCOMES, {}).get(subject)
    if outcome is None:
        return
    is_done, answer = outcome
    if is_done:
        st.success(plain(answer), icon=":material/check_circle:")
    else:
        st.warning(f"Not done: {plain(answer)}", icon=":material/block:")

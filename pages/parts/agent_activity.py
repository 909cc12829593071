"""What moves on the agents page: running a job at once, and how far running jobs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.agents import list_agents
from lakehouse_core.views.requests import ask_for_run
from pages.parts import session
from pages.parts.text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.views.agents import AgentView

MOVE_SECONDS = 2
_ASKED = "agents_asked"  # job → the request of this visitor that is not answered yet
_ICONS = {"ok": ":material/check_circle:", "partial": ":material/warning:"}


def controls(jobs: Sequence[str]) -> None:
    """Choose a job and run it at once."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        job = st.selectbox("Run a job at once", jobs, key="agents_job", width=320)
        st.button(
            "Run now",
            key="agents_run",
            icon=":material/play_arrow:",
            on_click=_ask,
            args=(job,),
            disabled=not job,
            help="Beside its schedule; never beside itself. An open circuit is probed by it.",
        )


@st.fragment(run_every=MOVE_SECONDS)
def activity() -> None:
    """Jobs that run or were asked for, with their progress; tells when an asked one ended."""
    try:
        seen = session.read_fresh(list_agents, session.expected_jobs(), session.bar())
    except LakehouseError as error:
        st.caption(f"What runs now cannot be read: {plain(str(error))}")
        return
    _tell_ended(seen.agents)
    moving = [view for view in seen.agents if view.is_running or view.is_asked_for]
    if not moving:
        st.caption(":material/bedtime: No job runs at this moment.")
    for view in moving:
        _bar(view)


def _bar(view: AgentView) -> None:
    name = f"**{plain(view.agent)}**"
    if not view.is_running or view.last is None:
        st.markdown(f":material/schedule: {name} is about to start")
        return
    since = f.span(utc_now() - view.last.started_at)
    said = view.progress
    if said is None:
        st.markdown(f":material/play_circle: {name} runs for {since}")
    elif said.total:
        share = min(1.0, said.done / said.total)
        text = f"{f.count(said.done)} of {f.count(said.total)} {said.unit}"
        st.progress(share, text=f"{name}: {text}, for {since}")
    else:
        st.markdown(
            f":material/play_circle: {name}: {f.count(said.done)} {said.unit} so far, for {since}"
        )


def _ask(job: str) -> None:
    try:
        asked = ask_for_run(session.store(), job)
    except LakehouseError as error:
        st.toast(f"{plain(job)} was not asked for: {plain(str(error))}", icon=":material/error:")
        return
    st.session_state.setdefault(_ASKED, {})[job] = asked.request_id
    st.toast(f"Asked for {plain(job)}: it starts within a second", icon=":material/play_circle:")


def _tell_ended(agents: Sequence[AgentView]) -> None:
    asked: dict[str, str] = st.session_state.get(_ASKED, {})
    for view in agents:
        request = view.request
        if request is None or asked.get(view.agent) != request.request_id or view.is_asked_for:
            continue
        del asked[view.agent]
        answer = request.answer or request.state
        icon = _ICONS.get(answer.partition(":")[0], ":material/error:")
        st.toast(f"{plain(view.agent)} ended: {plain(answer)}", icon=icon)

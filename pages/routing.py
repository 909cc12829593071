"""Where do statements go, and why? Rules with their hits, groups with their load, one trace."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.gateway import GatewayAwayError, Question, RulesNow
from lakehouse_core.views.routing import RoutingReport, routing_report
from pages.parts import cards, choice, frame, menu, session, trace
from pages.parts.routing_grids import decisions_grid, groups_grid, rules_grid
from pages.parts.text import plain

GRID, TOLD, ASKED = "routing_grid", "routing_reload_told", "routing_explained"
HOW = """
- **Statements**: given to the gateway within the window, also those that no engine saw.
- **Decided**: statements for which this rule was the first that answered; each counts once, however
  often it was sent again.
- **Refused**: by a rule, a guard, a group's authorization, or because no engine could take it.
- **Wait p95**: of statements of the group that got a place.

Hits and statements come from the gateway's records in the telemetry store, some seconds behind;
load and circuits are asked of the gateway itself. `lakehelm route rules`, `lakehelm route trace ID`
and `lakehelm route explain` show the same.
"""


def rules_now() -> RulesNow | None:
    """The rules in force; when the gateway is away that is said, and the records still show."""
    try:
        return session.gateway().rules()
    except GatewayAwayError as error:
        st.warning(plain(str(error)), icon=":material/cloud_off:")
        return None


def figures(now: RulesNow | None, seen: RoutingReport) -> None:
    refused = sum(group.denied for group in seen.groups)
    again = sum(group.sent_again for group in seen.groups)
    waiting = None if now is None else sum(group.waiting for group in now.groups)
    running = None if now is None else sum(group.running for group in now.groups)
    label = seen.window.label
    for column, (name, value, basis) in zip(
        st.columns(4),
        (
            (f"Statements, {label}", f.count(seen.statements), "given to the gateway"),
            (f"Refused, {label}", f.count(refused), f.share(refused, seen.statements)),
            (f"Sent again, {label}", f.count(again), "their first engine failed them"),
            ("Running / waiting, now", f"{f.count(running)} / {f.count(waiting)}", "all groups"),
        ),
        strict=True,
    ):
        column.metric(name, value, delta=basis, delta_color="off", delta_arrow="off", border=True)


def overview() -> None:
    now = rules_now()
    seen = session.read(routing_report, session.bar())
    figures(now, seen)
    cards.how(HOW)
    st.subheader("Which rule decides?", anchor=False)
    if now is None and not seen.rules:
        frame.empty(
            "No rule decided anything",
            f"No statement came through the gateway in {seen.window.phrase}. The gateway takes "
            "them from Trino's and PostgreSQL's clients, and from the console.",
            "lakehelm up",
        )
        return
    rules_grid(now, seen)
    source = f" Read from {plain(now.source)}." if now else " Only rules that decided something."
    frame.caption(f"Hits of {seen.window.phrase}.{source}", "queries")
    if now is not None:
        st.subheader("How loaded are the groups?", anchor=False)
        groups_grid(now, seen)
        frame.caption(
            "Load as of this moment, from the gateway; statements of the window.", "queries"
        )


def reload_desk() -> None:
    told = st.session_state.get(TOLD)
    if told is not None:
        is_done, message = told
        if is_done:
            st.success(f"In force: {plain(message)}", icon=":material/check_circle:")
        else:
            st.warning("Not taken; the rules of before stay in force.", icon=":material/block:")
            st.code(message, language=None, wrap_lines=True)
    st.button("Reload rules", icon=":material/refresh:", key="routing_reload", on_click=_reload)
    st.caption("Reads the configuration file again; all of its rules are taken, or none.")


def _reload() -> None:
    try:
        done = session.gateway().reload()
        st.session_state[TOLD] = (done.is_done, done.message)
    except LakehouseError as error:
        st.session_state[TOLD] = (False, str(error))


def tester() -> None:
    st.subheader("Where would a statement go?", anchor=False)
    st.session_state.setdefault("routing_user", "analyst")
    with st.form("routing_tester"):
        st.text_area("SQL", key="routing_sql", height=90, placeholder="SELECT …")
        user, tags, header, value = st.columns(4)
        user.text_input("User", key="routing_user")
        tags.text_input("Tags", key="routing_tags", placeholder="etl, team:bi")
        header.text_input("Header", key="routing_header", placeholder="X-Lakehelm-Group")
        value.text_input("Its value", key="routing_value")
        st.form_submit_button(
            "Explain", icon=":material/alt_route:", key="routing_explain", on_click=_explain
        )
    seen = st.session_state.get(ASKED)
    if isinstance(seen, str):
        st.warning(plain(seen), icon=":material/block:")
    elif seen is not None:
        trace.strip(seen)
        trace.explained_detail(seen)


def _explain() -> None:
    given = st.session_state
    header = given["routing_header"].strip()
    question = Question(
        sql=given["routing_sql"],
        user=given["routing_user"],
        tags=tuple(tag.strip() for tag in given["routing_tags"].split(",") if tag.strip()),
        headers={header: given["routing_value"].strip()} if header else {},
    )
    try:
        st.session_state[ASKED] = session.gateway().explain(question)
    except LakehouseError as error:
        st.session_state[ASKED] = str(error)


def lookup() -> None:
    st.subheader("How was a statement routed?", anchor=False)
    seen = session.read(routing_report, session.bar())
    ids = [row.gateway_id for row in seen.decisions]
    if seen.decisions:
        decisions_grid(seen.decisions, GRID, lambda: _choose(ids))
    frame.caption(f"The newest {f.count(len(ids))} statements of {seen.window.phrase}.", "queries")
    chosen = st.text_input(
        "Statement id",
        key="trace",
        bind="query-params",
        placeholder="Choose a row above, or give the gateway's id of a statement, or the engine's",
    )
    if chosen:
        trace.of_statement(chosen)


def _choose(ids: list[str]) -> None:
    st.session_state["trace"] = choice.selected(GRID, ids) or ""


menu.enter()
frame.lead("Where do statements go, and why?", "queries", "engines")
frame.live(overview)
reload_desk()
tester()
lookup()

"""How a statement is, or was, routed: its steps, what is sent to the engine, what it would read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.diffs import sql_diff
from lakehouse_core.views.routing import show_trace
from pages.parts import cards, cells, frame, session
from pages.parts.text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.views.gateway import Explained
    from lakehouse_core.views.routing import RouteTrace, TraceStep


def steps_grid(steps: Sequence[TraceStep]) -> None:
    """The steps of a decision, in order."""
    cells.show(
        [
            {
                "number": number,
                "stage": step.stage,
                "subject": step.subject,
                "result": step.result,
                "detail": step.detail or None,
            }
            for number, step in enumerate(steps, start=1)
        ],
        {
            "number": cells.counted("Step"),
            "stage": "Stage",
            "subject": "About",
            "result": "Result",
            "detail": cells.wide("Why"),
        },
    )


def sent_text(before: tuple[str, str], after: tuple[str, str], outcome: str, reason: str) -> None:
    """What the engine gets, beside what was written; each text with its dialect."""
    if before[0] == after[0]:
        st.caption("The engine gets the text as it was written.")
        return
    because = f": {plain(reason)}" if reason else ""
    st.markdown(
        f"**What the engine gets** ({before[1]} to {after[1]}, "
        f"{plain(outcome.replace('_', ' '))}{because})"
    )
    st.code(sql_diff(before, after), language="diff", wrap_lines=True)
    st.caption("Both texts laid out alike; what differs is marked.")


def strip(seen: Explained) -> None:
    """Before a statement runs: where, why, how much, what it costs."""
    if seen.denial is not None:
        st.warning(f"It would not run: {plain(seen.denial)}", icon=":material/block:")
        if seen.parse_error:
            st.code(seen.parse_error, language=None, wrap_lines=True)
    cost = f.UNKNOWN if seen.cost_usd is None else f.money(seen.cost_usd, "USD")
    room = f.count(seen.running) + (f" of {f.count(seen.limit)}" if seen.limit else "")
    cards.facts(
        [
            ("Engine", seen.engine_id or "none"),
            ("Would read", _read(seen)),
            ("Cost of reading", cost),
            ("Group, running now", f"{seen.group or 'none'}, {room}"),
        ]
    )
    if seen.why:
        st.caption(f"Why: {plain(seen.why)}")
    if seen.would_queue:
        st.caption(":material/schedule: It would have to wait, as things stand at this moment.")
    basis = plain(seen.basis) or "nobody estimates"
    st.caption(f"Estimate before running: {basis}. Load as of when it was asked.")


def explained_detail(seen: Explained) -> None:
    """Everything else an explanation tells."""
    source, target = seen.source_dialect, seen.target_dialect or seen.source_dialect
    sent_text(
        (seen.sql, source),
        (seen.translated_sql, target),
        seen.translation,
        seen.translation_reason,
    )
    steps_grid(seen.steps)


def trace_detail(seen: RouteTrace) -> None:
    """A statement that came through the gateway, in full."""
    routed = seen.routed
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.badge("refused" if routed.denial else routed.status)
        if routed.engine_id:
            st.markdown(f"on **{plain(routed.engine_id)}**", width="content")
        st.caption(f"gateway id {plain(routed.gateway_id)}", width="content")
    told = seen.denial_message or seen.error_message
    if told:
        st.code(told, language=None, wrap_lines=True)
    dialects = f"{routed.source_dialect} → {routed.target_dialect or 'none'}"
    cards.facts(
        [
            ("Submitted", f.moment(routed.submitted_at)),
            ("User, role", f"{routed.user_name or f.UNKNOWN}, {routed.role or 'by default'}"),
            ("Protocol, endpoint", f"{routed.protocol}, {routed.endpoint or 'default'}"),
            ("Group, member", f"{routed.cluster_group or 'none'}, {routed.member or 'none'}"),
            ("Decision / queue", _pair(routed.decision_ms, routed.queue_ms)),
            ("Engine / fetch", _pair(routed.engine_ms, routed.fetch_ms)),
            ("Sent to the client", f.amount(routed.bytes_sent, routed.rows_sent)),
            ("Attempts, dialects", f"{f.count(routed.attempts)}, {dialects}"),
        ]
    )
    if seen.sql_text and seen.translated_sql:
        sent_text(
            (seen.sql_text, routed.source_dialect),
            (seen.translated_sql, routed.target_dialect or routed.source_dialect),
            routed.translation or f.UNKNOWN,
            routed.translation_reason or "",
        )
    elif seen.sql_text:
        st.code(seen.sql_text, "sql", wrap_lines=True)
    steps_grid(seen.steps)


def of_statement(statement_id: str) -> None:
    """The same of a statement by its id; one that is not recorded is told."""
    try:
        trace_detail(session.read_now(show_trace, statement_id))
    except NotFoundError as error:
        st.info(plain(str(error)), icon=":material/search_off:")


def _read(seen: Explained) -> str:
    if seen.files is None:
        return f.size(seen.bytes)
    return f"{f.count(seen.files)} file{'' if seen.files == 1 else 's'}, {f.size(seen.bytes)}"


def _pair(first: float | None, second: float | None) -> str:
    return f"{f.duration(first)} / {f.duration(second)}"

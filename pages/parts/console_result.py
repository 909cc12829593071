"""What came of a statement: how far it is, rows with types, a chart, a download, or the error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views import formatting as f
from lakehouse_core.views.results import numeric, result_csv, to_table
from lakehouse_core.views.statements import pointed
from pages.parts import console_state, frame, trace
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.views.gateway import Question
    from lakehouse_core.views.statements import Problem, Run, Seen

POLL_SECONDS = 1.0
_MOST_CHART_ROWS = 2_000


def explained(tab: str, asked: Question) -> None:
    """The strip: engine, why, files, bytes, cost of what is asked; of nothing else."""
    known = console_state.explanation(tab)
    if known is None:
        return
    of, found = known
    has_run = st.session_state.get(f"console_run_{tab}") is not None
    if has_run and not isinstance(found, str) and found.denial:
        return  # what the gateway said when it was run is below
    with st.container(border=True):
        if of != asked:
            st.caption("It was explained before it was changed: *Explain* or *Run* looks again.")
            return
        if isinstance(found, str):
            st.warning(f"Not explained: {plain(found)}", icon=":material/help:")
            return
        trace.strip(found)
        with st.expander("Every step, and what the engine gets"):
            trace.explained_detail(found)


def outcome(tab: str) -> None:
    """The statement of a tab; while it runs this part looks again by itself."""
    running: Run | None = st.session_state.get(f"console_run_{tab}")
    if running is None:
        return
    if running.seen().is_over:
        _over(tab, running)
        return

    @st.fragment(run_every=POLL_SECONDS)
    def going() -> None:
        seen = running.seen()
        if seen.is_over:
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center"):
            frame.badge(seen.state)
            st.caption(f"for {f.duration(seen.seconds * 1_000)}", width="content")
            st.button(
                "Cancel",
                key=f"console_cancel_{tab}",
                icon=":material/cancel:",
                on_click=console_state.stop,
                args=(tab,),
            )

    going()


def _over(tab: str, running: Run) -> None:
    seen = running.seen()
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.badge(seen.state)
        rows = f"{f.amount(None, len(seen.rows))}, " if seen.state == "finished" else ""
        st.caption(f"{rows}{f.duration(seen.seconds * 1_000)}", width="content")
        if seen.query_id:
            st.page_link(
                "pages/routing.py",
                label="How it was routed",
                icon=":material/alt_route:",
                query_params={"trace": seen.query_id},
            )
    if seen.state == "cancelled":
        st.info("Cancelled: no rows were kept.", icon=":material/cancel:")
    elif seen.problem is not None:
        _problem(running, seen.problem)
    if seen.more:
        st.info(f"There is more: {seen.more}.", icon=":material/more_horiz:")
    if seen.columns and seen.state == "finished":
        _rows(tab, seen)


def _problem(running: Run, problem: Problem) -> None:
    st.error(f"**{plain(problem.name)}**: {plain(problem.message)}", icon=":material/error:")
    place = pointed(running.sql, problem)
    if place:
        st.code(place, language=None)


def _rows(tab: str, seen: Seen) -> None:
    table = to_table(seen.columns, seen.rows)
    labels = {f"c{n}": f"{column.name} ({column.type})" for n, column in enumerate(seen.columns)}
    st.dataframe(
        table, hide_index=True, column_config=labels, width="stretch", placeholder="NULL",
        key=f"console_grid_{tab}",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download CSV",
            result_csv(seen.columns, seen.rows),
            file_name=f"result-{utc_now():%Y%m%d-%H%M%S}.csv",
            mime="text/csv",
            icon=":material/download:",
            key=f"console_csv_{tab}",
        )
        st.caption("The rows shown, with their names; NULL is empty.", width="content")
    _chart(tab, seen)


def _chart(tab: str, seen: Seen) -> None:
    numbers = numeric(seen.columns)
    if not numbers or not seen.rows:
        return
    with st.expander("Chart", icon=":material/bar_chart:"):
        names = [f"{column.name} ({n})" for n, column in enumerate(seen.columns, start=1)]
        across, up, kind = st.columns(3)
        first = across.selectbox("Across", names, key=f"console_x_{tab}")
        figures = [names[n] for n in numbers]
        last = len(figures) - 1
        second = up.selectbox("Up", figures, index=last, key=f"console_y_{tab}")
        x, y = names.index(first), names.index(second)
        shape = kind.segmented_control(
            "Shape", ["Bars", "Line"], default="Bars", key=f"console_shape_{tab}"
        )
        kept = seen.rows[:_MOST_CHART_ROWS]
        data = {
            "across": [str(row[x]) if x not in numbers else float(row[x] or 0) for row in kept],
            "up": [None if row[y] is None else float(row[y]) for row in kept],
        }
        draw = st.line_chart if shape == "Line" else st.bar_chart
        draw(data, x="across", y="up", x_label=seen.columns[x].name, y_label=seen.columns[y].name)
        st.caption(f"The first {f.count(len(kept))} rows of the result.")

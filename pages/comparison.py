"""Which engine answers what best? The same templates on several engines."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.compare import compare_engines
from lakehouse_core.views.regret import routing_regret
from pages.parts import cards, comparison_grids, frame, menu, session


def contests() -> None:
    found = session.read(compare_engines, window=session.bar().window)
    if not found.contests:
        frame.empty(
            "No reads in this window",
            "Queries that read, with a template, are compared as soon as engines report them.",
            "lakehelm demo workload",
        )
        return
    several = sum(len(one.engines) > 1 for one in found.contests)
    first, second, third = st.columns(3)
    first.metric(f"Templates by size, {found.window.label}", f.count(found.total), border=True)
    second.metric("Of those shown, on several engines", f.count(several), border=True)
    third.metric("With a winner", f.share(found.decided, several), border=True)
    comparison_grids.contest_grid(found)
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption(
            f"Reads of {found.window.phrase}; {len(found.contests)} of {found.total} shown, those "
            "on several engines first.",
            "queries",
            "costs",
        )
        cards.how(comparison_grids.HOW_COMPARED)
    with st.expander("Every engine's figures", icon=":material/table:"):
        comparison_grids.engine_grid(found)


def regret() -> None:
    st.subheader("What did routing cost against other choices?", anchor=False)
    found = session.read(routing_regret, window=session.bar().window)
    for one, label in ((found.cost, "Money"), (found.seconds, "Time")):
        st.markdown(f"**{label}**, {found.window.phrase}")
        if not one.compared_runs:
            st.info(
                f"No template ran {found.least_runs} times on two engines with a known "
                f"{one.measure} in this window: there is nothing to compare.",
                icon=":material/search_off:",
            )
            continue
        comparison_grids.regret_grid(one)
        frame.caption(
            f"Really {one.actual:,.4f} {one.unit} for {f.count(one.compared_runs)} runs; "
            f"{f.percent(one.without_evidence_share)} of {f.count(one.runs)} runs are without "
            "evidence and in no figure here.",
            "queries",
            "costs",
        )
    cards.how_of("regret", comparison_grids.HOW_REGRET)


menu.enter()
frame.lead("Which engine answers what best?", "queries", "costs")
contests()
regret()
st.caption(
    "From the command line: `lakehelm route compare --window 7d --json`, `lakehelm route regret`"
)

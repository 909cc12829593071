"""Which engine answers what best? The same templates on several engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.estimates import scan_estimates
from lakehouse_core.views.regret import compared_with_regret
from lakehouse_core.views.replay import replay_way, ways_of
from pages.parts import cards, comparison_grids, estimate_grids, frame, menu, session
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.views.compare import Comparison
    from lakehouse_core.views.regret import Regret

REPLAYED = "comparison_replayed"


def contests(found: Comparison) -> None:
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


def regret(found: Regret) -> None:
    st.subheader("What did routing cost against other choices?", anchor=False)
    for one, label, known in (
        (found.cost, "Money", "known costs"),
        (found.seconds, "Time", "known times"),
    ):
        st.markdown(f"**{label}**, {found.window.phrase}")
        if not one.compared_runs:
            st.info(
                f"No template ran {found.least_runs} times on two engines with {known} in this "
                "window: there is nothing to compare.",
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


def estimates() -> None:
    st.subheader("Did reads read what was estimated?", anchor=False)
    found = session.read(scan_estimates, window=session.bar().window)
    if not any(one.compared for one in found.engines):
        st.info(
            "No read of this window came through the gateway with an estimate, on an engine that "
            "says what it read.",
            icon=":material/search_off:",
        )
        return
    estimate_grids.estimate_grid(found)
    frame.caption(f"Finished reads through the gateway, {found.window.phrase}.", "queries")
    cards.how_of("ratio", estimate_grids.HOW_ESTIMATED)


def other_ways() -> None:
    st.subheader("What would another way to choose have brought?", anchor=False)
    try:
        ways = ways_of(session.config())
    except LakehouseError as error:
        st.warning(plain(str(error)), icon=":material/rule:")
        return
    if not ways:
        st.info(
            "No group has several members: there is nothing to choose.", icon=":material/alt_route:"
        )
        return
    left, right, button = st.columns([2, 2, 1], vertical_alignment="bottom")
    group = left.selectbox("Group", list(ways), key="replay_group")
    way = right.selectbox("Would choose", ways[group], key="replay_way")
    button.button(
        "Replay",
        icon=":material/replay:",
        key="replay_go",
        width="stretch",
        on_click=lambda: st.session_state.update({REPLAYED: f"{group}: {way}"}),
    )
    if st.session_state.get(REPLAYED) != f"{group}: {way}":
        frame.caption("The reads of the window are decided again; nothing is run.", "queries")
        return
    window = session.bar().window
    found = session.read_fresh(
        replay_way, window=window, config=session.config(), group=group, way=way
    )
    if found.compared_runs:
        comparison_grids.replay_grid(found)
    else:
        st.info(
            "No read was measured often enough where it would go.", icon=":material/search_off:"
        )
    frame.caption(
        f"{found.window.phrase}: {f.count(found.moved_runs)} of {f.count(found.runs)} reads would "
        f"go elsewhere, {f.count(found.compared_runs)} were measured often enough on both sides; "
        f"{f.count(sum(one.runs for one in found.without_evidence))} without evidence and "
        f"{f.count(sum(one.runs for one in found.denied))} that would be denied are in no figure.",
        "queries",
        "costs",
    )
    if found.moves:
        with st.expander("What would move", icon=":material/alt_route:"):
            comparison_grids.moves_grid(found)
    cards.how_of("replay", "\n".join(f"- {one}" for one in found.caveats))


menu.enter()
frame.lead("Which engine answers what best?", "queries", "costs")
compared, lost = session.read(compared_with_regret, window=session.bar().window)
contests(compared)
regret(lost)
estimates()
other_ways()
st.caption(
    "From the command line: `lakehelm route compare --window 7d --json`, `lakehelm route regret`, "
    "`lakehelm route estimates`, `lakehelm route replay --config F`, which tries any rules, "
    "strategies and prices"
)

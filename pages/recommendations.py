"""What should be done about which table, what would it bring, to whom, and at what risk?"""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.trial import ID_PREFIX
from lakehouse_core.views import formatting as f
from lakehouse_core.views.names import table_ids
from lakehouse_core.views.recommendations import (
    KINDS,
    OPEN,
    STATES,
    RecommendationDetail,
    RecommendationFilters,
    Recommendations,
    change_of,
    list_recommendations,
    show_recommendation,
)
from lakehouse_core.views.unhealed import list_unhealed
from pages.parts import cards, choice, decision_desk, frame, menu, session, trial_desk
from pages.parts.recommendation_grids import (
    action_grid,
    change_grid,
    payer_grid,
    step_grid,
    unhealed_grid,
)
from pages.parts.text import plain

HOW = """
- **Order**: what a cure saves per month over what it costs once; where nobody pays or nothing is
  priced, points of the score per GiB.
- **Saving**: modelled. The time a query needs is taken to be made of opening manifests and files
  and of reading bytes; the share of it that a cure takes away is applied to the execution time the
  engines measured, at the list prices of the configuration. The range is from a warm local disk to
  an object store.
- **Score**: the health rules, applied to the table as it would be.
- **Expires**: a proposal is renewed while the table needs it, and void when the table changes.

`lakehelm recommend show ID --json` has the same numbers.
"""


def filters() -> RecommendationFilters:
    state, kind, table = st.columns(3)
    return RecommendationFilters(
        state=state.selectbox("State", STATES, key="rec_state", index=STATES.index(OPEN)) or OPEN,
        kind=kind.selectbox("Kind", KINDS, key="rec_kind", index=None, placeholder="All kinds"),
        table=table.selectbox(
            "Table",
            session.read_now(table_ids),
            key="rec_table",
            index=None,
            placeholder="All tables",
        ),
    )


def summary(seen: Recommendations) -> None:
    savings = [change_of(one, "saving_usd_month") for one in seen.actions]
    priced = [one for one in savings if one is not None and one.after is not None]
    first, second, third = st.columns(3)
    first.metric("Waiting for a decision, now", f.count(seen.waiting), border=True)
    second.metric(
        "Saving of those below, $ per month",
        f"{sum(one.after or 0 for one in priced):,.4f}" if priced else f.UNKNOWN,
        delta=f"modelled; {sum(one.low or 0 for one in priced):,.4f} to "
        f"{sum(one.high or 0 for one in priced):,.4f}"
        if priced
        else "nothing is priced, or nobody reads",
        delta_color="off",
        delta_arrow="off",
        border=True,
    )
    third.metric(
        "To be rewritten by those below",
        f.size(sum(one.plan.input_bytes for one in seen.actions)),
        border=True,
    )


def listing(chosen: RecommendationFilters) -> str | None:
    seen = session.read_now(list_recommendations, chosen)
    summary(seen)
    if not seen.actions:
        if seen.total or chosen != RecommendationFilters():
            st.caption("Nothing is in this state. Choose another state, kind or table above.")
        else:
            frame.empty(
                "Nothing is proposed",
                "A cure is proposed when a table is past a limit of the health rules and the cure "
                "would change something. The recommend agent looks at all tables on a schedule; it "
                "can also be run by hand:",
                "lakehelm agents run recommend --wait",
            )
        return None
    ids = [one.action_id for one in seen.actions]
    # Rows move when one is decided: the mark of a chosen row must not stay where it was.
    grid = f"rec_grid_{hash(tuple(ids))}"
    action_grid(seen.actions, grid, choice.remember(grid, "action", ids))
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption("Gain over cost first. Choose a row for its detail.", "recommendations")
        cards.how(HOW)
    return choice.chosen(grid, "action", ids)


def detail(action_id: str) -> None:
    try:
        seen = session.read_now(show_recommendation, action_id)
    except NotFoundError as error:
        st.info(plain(str(error)), icon=":material/search_off:")
        return
    action = seen.action
    st.subheader(plain(action.title), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.badge(action.state.value)
        st.markdown(f"on **{plain(action.table_id)}**", width="content")
        st.caption(f"Proposed by {plain(action.proposed_by)}, {f.moment(action.proposed_at)}")
    if action.decided_by:
        said = f": {plain(action.decision_reason)}" if action.decision_reason else ""
        st.caption(f"Decided by {plain(action.decided_by)}, {f.moment(action.decided_at)}{said}")
    if action.explanation:
        st.info(plain(action.explanation), icon=":material/info:")
    decision_desk.desk(seen)
    effect(seen)
    plan(seen)


def effect(seen: RecommendationDetail) -> None:
    action = seen.action
    left, right = st.columns(2)
    with left:
        st.markdown("**What is wrong?**")
        st.markdown(plain(action.reason))
        st.markdown("**What would it be like?**")
        if action.predicted:
            change_grid(action.predicted)
        else:
            st.caption("Nothing is predicted: it was proposed by hand.")
        frame.caption("Modelled; what came of it is measured after it ran.", "recommendations")
    with right:
        st.markdown("**Who pays for it?**")
        if seen.payers:
            payer_grid(seen.payers)
        else:
            st.caption("No query of the window read this table, as far as its text was understood.")
        days = session.config().maintenance.evidence_window.days
        frame.caption(f"Queries of {days} days, the costliest first, at most 10.", "queries")


def plan(seen: RecommendationDetail) -> None:
    action = seen.action
    st.markdown("**What is done, exactly?**")
    for stage in action.plan.stages:
        st.caption(plain(stage.name))
        st.code(stage.call, language="sql", wrap_lines=True)
    checks = ", ".join(action.plan.preconditions)
    st.caption(f"Checked right before it runs: {plain(checks)}. Plan {action.plan_hash[:12]}.")
    st.markdown("**What can go wrong, and can it be undone?**")
    st.markdown(plain(action.risk))
    with st.expander("What happened so far"):
        step_grid(seen.steps)


def unhealed() -> None:
    left = session.read_now(list_unhealed, session.config().maintenance)
    if not left:
        return
    st.subheader("What hurts and is not cured?", anchor=False)
    unhealed_grid(left)
    for why in dict.fromkeys(one.why for one in left):
        st.caption(plain(why))
    frame.caption("Signals past their limit without an open proposal.", "health")


menu.enter()
frame.lead("What should be done, what would it bring, and to whom?", "recommendations", "tables")
found = listing(filters()) or st.query_params.get("action")
if found and not found.startswith(ID_PREFIX):
    detail(found)
trial_desk.trials(found)
unhealed()

"""What is being done to tables, how far is it, what came of it, and what was refused?"""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.maintenance import (
    Maintenance,
    MaintenanceItem,
    list_maintenance,
    show_maintenance,
)
from pages.parts import cards, choice, decision_desk, frame, menu, session
from pages.parts.maintenance_grids import check_grid, figure_grid, item_grid, saving_grid
from pages.parts.recommendation_grids import step_grid
from pages.parts.text import plain

HOW = """
- **Queue**: approved actions, gain over cost first. Each safety rule is asked again right before a
  job starts; what it says stands beside the action.
- **Running**: several actions share one Spark job, because starting Spark takes longer than most
  of them. The bar counts the job's steps.
- **Realised**: measured by a look at the table of our own, after the job's own checks of the rows.
- **Saving**: what queries of the same template on the same engine cost per run before and since,
  at list prices. Nothing is written before at least three runs on either side.

`lakehelm maintain show ID --json` has the same numbers.
"""
_SHOWN = "maintenance_states"  # what the lists of this visit were drawn from
GROUPS = {
    "waiting": "What waits for its turn?",
    "done": "What was done, and what did it bring?",
    "refused": "What was refused, expired or cancelled, and why?",
}


def running() -> None:
    seen = list_maintenance(session.store())
    states = [(item.action.action_id, item.action.state) for item in seen.items]
    if st.session_state.setdefault(_SHOWN, states) != states:
        st.session_state[_SHOWN] = states
        st.rerun()  # an action moved on: the lists below show it where it is now
    summary(seen)
    st.subheader("What runs now?", anchor=False)
    items = seen.of("running")
    if not items:
        st.caption("Nothing runs.")
    for item in items:
        progress(item)
    frame.caption("Refreshed every 10 s.", "maintenance")


def summary(seen: Maintenance) -> None:
    first, second, third, fourth = st.columns(4)
    first.metric("Running, now", f.count(len(seen.of("running"))), border=True)
    second.metric("Waiting, now", f.count(len(seen.of("waiting"))), border=True)
    done = [item.action for item in seen.of("done")]
    failed = sum(one.state == "failed" for one in done)
    third.metric(
        "Proven, of those shown",
        f.count(len(done) - failed),
        delta=f"{f.count(failed)} failed",
        delta_color="off",
        delta_arrow="off",
        border=True,
    )
    saved = [item.saved_usd_month for item in seen.items if item.saved_usd_month is not None]
    fourth.metric(
        "Saving, $ per month",
        f"{sum(saved):,.4f}" if saved else f.UNKNOWN,
        delta="measured" if saved else "not enough queries since",
        delta_color="off",
        delta_arrow="off",
        border=True,
    )


def progress(item: MaintenanceItem) -> None:
    action = item.action
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            frame.badge(action.state.value)
            st.markdown(f"**{plain(action.title)}** on {plain(action.table_id)}", width="content")
        step = plain(item.progress.unit) if item.progress else plain(action.explanation or "")
        if item.share is None:
            st.caption(f"Since {f.moment(action.started_at)}. {step or 'Spark starts'}")
        else:
            st.progress(item.share, text=step or None)
        detail = show_maintenance(session.store(), session.config().home, action.action_id)
        with st.expander("End of the job's log"):
            st.code(detail.log or "Nothing was written yet.", language=None, wrap_lines=True)


def listing() -> str | None:
    seen = list_maintenance(session.store())  # as fresh as what counts them above
    if not seen.items:
        frame.empty(
            "Nothing was approved yet",
            "Approved recommendations wait here for their turn, run, and are proven. See what is "
            "proposed on the page Recommendations, or with:",
            "lakehelm recommend list",
        )
        return None
    found = None
    for group, question in GROUPS.items():
        items = seen.of(group)
        st.subheader(question, anchor=False)
        if not items:
            st.caption("None.")
            continue
        key, ids = f"maintenance_{group}", [item.action.action_id for item in items]
        item_grid(items, key, choice.remember(key, "action", ids))
        found = found or choice.chosen(key, "action", ids)
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption("At most 200, newest first. Choose a row for its detail.", "maintenance")
        cards.how(HOW)
    return found


def detail(action_id: str) -> None:
    try:
        seen = show_maintenance(session.store(), session.config().home, action_id)
    except NotFoundError as error:
        st.info(plain(str(error)), icon=":material/search_off:")
        return
    action = seen.item.action
    st.subheader(plain(action.title), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.badge(action.state.value)
        st.markdown(f"on **{plain(action.table_id)}**", width="content")
    if action.explanation:
        st.info(plain(action.explanation), icon=":material/info:")
    decision_desk.cancel_desk(action)
    left, right = st.columns(2)
    with left:
        st.markdown("**What was predicted, what became true?**")
        figure_grid(seen.figures)
        st.markdown("**What do queries save?**")
        if seen.savings:
            saving_grid(seen.savings)
        else:
            st.caption("Not enough queries have run since to tell.")
    with right:
        st.markdown("**What was checked afterwards?**")
        if action.verification:
            check_grid(action)
        else:
            st.caption("Nothing yet.")
    with st.expander("What happened so far"):
        step_grid(seen.steps)
    if seen.log:
        with st.expander("End of the job's log"):
            st.code(seen.log, language=None, wrap_lines=True)


menu.enter()
frame.lead("What is being done to tables, and what came of it?", "maintenance")
frame.live(running)
chosen = listing() or st.query_params.get("action")
if chosen:
    detail(chosen)

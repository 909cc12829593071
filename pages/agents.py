"""Do the agents keep up? Every job with its last run, lag and errors; dead letters."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.agents import dead_letters, list_agents, recent_runs
from pages.parts import cards, frame, menu, session
from pages.parts.agent_grids import agent_grid, letter_grid, run_grid

# Hourly upkeep is left out: its age says nothing about the figures here.
FEEDS = ("queries", "tables", "health", "engines")


def jobs() -> None:
    seen = session.read(list_agents, session.expected_jobs(), session.bar())
    frame.lead("Do the agents keep up?", *FEEDS)
    scheduled = [view for view in seen.agents if view.job is not None]
    runs = [view.last for view in seen.agents if view.last is not None]
    first, second, third, fourth = st.columns(4)
    with first:
        cards.lag_card(frame.fresh(*FEEDS))
    second.metric(
        "Jobs that keep up, now",
        f"{len(scheduled) - len(seen.unwell)} of {len(scheduled)}",
        border=True,
        height="stretch",
    )
    third.metric(
        f"Failed runs, {seen.window.label}",
        f.count(sum(run.failed_runs for run in runs)),
        delta=f"of {f.count(sum(run.runs for run in runs))} runs",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )
    fourth.metric(
        f"Dead letters, {seen.window.label}",
        f.count(sum(run.dead_letters for run in runs)),
        delta=f"{f.count(sum(run.rows_written for run in runs))} rows written",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )
    agent_grid(seen.agents)
    frame.caption(f"Runs, rows and dead letters of {seen.window.phrase}.", *FEEDS)


def runs() -> None:
    st.subheader("What did they do lately?", anchor=False)
    only_eventful = st.toggle(
        "Leave out runs that found nothing new", value=True, key="agents_eventful"
    )
    seen = session.read(recent_runs, session.bar(), only_eventful=only_eventful, limit=100)
    if seen:
        run_grid(seen)
    else:
        frame.empty(
            "No run in this window",
            "The agents process runs the jobs on a schedule. One can also be run by hand:",
            "lakehelm collect --once",
        )
    frame.caption("Newest first, at most 100.", *FEEDS)


def letters() -> None:
    st.subheader("What could not be understood?", anchor=False)
    seen = session.read_now(dead_letters)
    if seen:
        letter_grid(seen)
    else:
        st.markdown(":material/check_circle: No dead letter: every payload was understood.")
    frame.caption("Newest first, at most 50; kept as they came, with the reason.", *FEEDS)


menu.enter()
frame.live(jobs)
runs()
letters()

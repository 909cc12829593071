"""Do the agents keep up? Every job with its last run, lag, circuit and errors; dead letters."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views import formatting as f
from lakehouse_core.views.agents import list_agents, recent_runs
from lakehouse_core.views.letters import gaps, letter_groups
from lakehouse_core.views.store_care import newest_backup, recoveries
from pages.parts import agent_activity, cards, frame, menu, session
from pages.parts.agent_grids import agent_grid, gap_grid, group_grid, run_grid
from pages.parts.text import plain

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
    for view in seen.agents:
        if view.schedule is not None and view.schedule.circuit != "closed":
            st.warning(
                f"**{plain(view.agent)}**: its source has been silent "
                f"{f.count(view.schedule.failures)} times in a row, its circuit is "
                f"{view.schedule.circuit} since {f.moment(view.schedule.since)}: "
                f"{plain(view.schedule.reason or f.UNKNOWN)}. Next try "
                f"{f.moment(view.next_at)}.",
                icon=":material/link_off:",
            )
    agent_grid(seen.agents)
    frame.caption(f"Runs, rows and dead letters of {seen.window.phrase}.", *FEEDS)


def store_care() -> None:
    """A damaged store and a missing backup are told here: the agents own the store."""
    for damage in session.read(recoveries):
        tell = st.warning if damage.restored_from else st.error
        tell(f"{plain(damage.sentence())}.", icon=":material/healing:")
    newest = newest_backup(session.config(), utc_now)
    if newest.is_late:
        st.warning(f"{plain(newest.sentence())}. `lakehelm store backup` makes one.")
    else:
        st.caption(f"{plain(newest.sentence())}.")


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
            "lakehelm agents run collect:iceberg --wait",
        )
    frame.caption("Newest first, at most 100.", *FEEDS)


def letters() -> None:
    st.subheader("What could not be understood?", anchor=False)
    groups = session.read_now(letter_groups)
    if groups:
        group_grid(groups)
        chosen = st.selectbox(
            "Newest payload of",
            groups,
            format_func=lambda group: f"{group.source}: {group.reason}",
            key="agents_letter",
        )
        if chosen:
            st.code(chosen.payload, language=None, wrap_lines=True)
    else:
        st.markdown(":material/check_circle: No dead letter: every payload was understood.")
    frame.caption("By source and reason; payloads are kept as they came, long ones cut.", *FEEDS)
    st.subheader("Which history was lost?", anchor=False)
    missing = session.read_now(gaps)
    if missing:
        gap_grid(missing)
    else:
        st.markdown(":material/check_circle: No gap: every source still had what we came for.")
    frame.caption("History that was gone before it was read; newest first, at most 50.", *FEEDS)


menu.enter()
frame.live(jobs)
store_care()
agent_activity.controls([job.agent for job in session.expected_jobs()])
agent_activity.activity()
runs()
letters()

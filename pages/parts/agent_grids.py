"""Tables of jobs, runs and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.parts.cells import counted, number, short_time_of, show, state_word, time_of, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.domain.agent import AgentRun
    from lakehouse_core.views.agents import AgentView
    from lakehouse_core.views.letters import DeadLetterRow, LetterGroup


def agent_grid(agents: Sequence[AgentView]) -> None:
    """Every job: last run, outcome, lag, what is due."""
    show(
        [
            {
                "agent": view.agent,
                "state": state_word(view.state),
                "circuit": state_word(view.circuit) if view.circuit else None,
                "lag": view.lag_seconds,
                "every": view.job.every.total_seconds() if view.job else None,
                "last": view.last.started_at if view.last else None,
                "next": view.next_at,
                "runs": view.last.runs if view.last else 0,
                "failed": view.last.failed_runs if view.last else 0,
                "rows": view.last.rows_written if view.last else 0,
                "letters": view.last.dead_letters if view.last else 0,
                "error": view.last.last_error if view.last else None,
                "errored": view.last.errored_at if view.last else None,
                "event_age": view.newest_event_age_seconds,
                "event": view.last.newest_event_at if view.last else None,
            }
            for view in agents
        ],
        {
            "agent": st.column_config.TextColumn("Job", pinned=True),
            "state": "State",
            "circuit": st.column_config.TextColumn(
                "Circuit",
                help="Open: its source was silent too often and is left alone for a while; "
                "half-open: one run finds out whether it is back. Bad rows never open it.",
            ),
            "lag": number("Lag", "%.0f s", "Since the start of the last run that succeeded."),
            "every": number("Every", "%.0f s"),
            "last": short_time_of("Last run"),
            "next": short_time_of("Next due"),
            "runs": counted("Runs"),
            "failed": counted("Failed runs"),
            "rows": counted("Rows written"),
            "letters": counted("Dead letters"),
            "event_age": number(
                "Newest event's age", "%.0f s", "Grows while nothing happens at the source, too."
            ),
            "event": short_time_of("Newest event"),
            "error": wide("Last error"),
            "errored": short_time_of("Last error at"),
        },
    )


def run_grid(runs: Sequence[AgentRun]) -> None:
    """Recent runs."""
    show(
        [
            {
                "started": run.started_at,
                "agent": run.agent,
                "outcome": state_word(run.outcome),
                "took": (run.ended_at - run.started_at).total_seconds() if run.ended_at else None,
                "rows": run.rows_written,
                "letters": run.dead_letters,
                "error": run.error,
            }
            for run in runs
        ],
        {
            "started": time_of("Started"),
            "agent": "Job",
            "outcome": "Outcome",
            "took": number("Took", "%.2f s"),
            "rows": counted("Rows written"),
            "letters": counted("Dead letters"),
            "error": wide("Error"),
        },
    )


def group_grid(groups: Sequence[LetterGroup]) -> None:
    """What could not be understood, by source and reason."""
    show(
        [
            {
                "source": group.source,
                "letters": group.letters,
                "reason": group.reason,
                "first": group.first_at,
                "last": group.last_at,
            }
            for group in groups
        ],
        {
            "source": "Source",
            "letters": counted("Letters"),
            "reason": wide("Reason (one of them)"),
            "first": time_of("First seen"),
            "last": time_of("Last seen"),
        },
    )


def gap_grid(letters: Sequence[DeadLetterRow]) -> None:
    """History that was gone before it was read."""
    show(
        [
            {"seen": letter.seen_at, "source": letter.source, "reason": letter.reason}
            for letter in letters
        ],
        {"seen": time_of("Noticed"), "source": "Source", "reason": wide("What is missing")},
    )

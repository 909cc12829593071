"""Tables of jobs, runs and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from pages.parts.cells import counted, number, short_time_of, show, state_word, time_of, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.domain.agent import AgentRun
    from lakehouse_core.views.agents import AgentView, DeadLetterRow


def agent_grid(agents: Sequence[AgentView]) -> None:
    """Every job: last run, outcome, lag, what is due."""
    show(
        [
            {
                "agent": view.agent,
                "state": state_word(view.state),
                "lag": view.freshness.age.total_seconds()
                if view.freshness and view.freshness.age
                else None,
                "every": view.job.every.total_seconds() if view.job else None,
                "last": view.last.started_at if view.last else None,
                "next": view.next_at,
                "runs": view.last.runs if view.last else 0,
                "failed": view.last.failed_runs if view.last else 0,
                "rows": view.last.rows_written if view.last else 0,
                "letters": view.last.dead_letters if view.last else 0,
                "error": view.last.last_error if view.last else None,
                "errored": view.last.errored_at if view.last else None,
                "event": view.last.newest_event_at if view.last else None,
            }
            for view in agents
        ],
        {
            "agent": st.column_config.TextColumn("Job", pinned=True),
            "state": "State",
            "lag": number("Lag", "%.0f s", "Since the start of the last run that succeeded."),
            "every": number("Every", "%.0f s"),
            "last": short_time_of("Last run"),
            "next": short_time_of("Next due"),
            "runs": counted("Runs"),
            "failed": counted("Failed runs"),
            "rows": counted("Rows written"),
            "letters": counted("Dead letters"),
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


def letter_grid(letters: Sequence[DeadLetterRow]) -> None:
    """What could not be understood."""
    show(
        [
            {
                "seen": letter.seen_at,
                "source": letter.source,
                "reason": letter.reason,
                "payload": letter.payload,
            }
            for letter in letters
        ],
        {
            "seen": time_of("Seen"),
            "source": "Source",
            "reason": st.column_config.TextColumn("Reason", width="medium"),
            "payload": wide("Payload"),
        },
    )

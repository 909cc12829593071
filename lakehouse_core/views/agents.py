"""What the agents do: each job's last run, lag, rows, errors, circuit, progress; what is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.agent import AgentProgress, AgentRequest, AgentRun, AgentState
from lakehouse_core.views.freshness import Job, JobFreshness
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.filters import Filters
    from lakehouse_core.views.window import Window

JOBS_SQL = """
WITH last_run AS (
  SELECT agent, max(started_at) AS started_at,
    max(started_at) FILTER (outcome IN ('ok', 'partial')) AS succeeded_at,
    max(started_at) FILTER (error IS NOT NULL) AS errored_at
  FROM agent_run GROUP BY agent
), in_window AS (
  SELECT agent, count(*) AS runs, count(*) FILTER (outcome = 'failed') AS failed_runs,
    sum(rows_written)::BIGINT AS rows_written, sum(dead_letters)::BIGINT AS dead_letters
  FROM agent_run
  WHERE started_at >= $start::TIMESTAMPTZ AND started_at < $end::TIMESTAMPTZ
  GROUP BY agent
)
SELECT l.agent, l.started_at, any_value(r.ended_at) AS ended_at, any_value(r.outcome) AS outcome,
  any_value(r.rows_written) AS last_rows, l.succeeded_at, l.errored_at,
  any_value(e.error) AS last_error, coalesce(any_value(w.runs), 0) AS runs,
  coalesce(any_value(w.failed_runs), 0) AS failed_runs,
  coalesce(any_value(w.rows_written), 0) AS rows_written,
  coalesce(any_value(w.dead_letters), 0) AS dead_letters,
  any_value(m.event_at) AS newest_event_at
FROM last_run l
JOIN agent_run r ON r.agent = l.agent AND r.started_at = l.started_at
LEFT JOIN agent_run e ON e.agent = l.agent AND e.started_at = l.errored_at
LEFT JOIN in_window w ON w.agent = l.agent
LEFT JOIN watermark m ON 'collect:' || m.source = l.agent
GROUP BY l.agent, l.started_at, l.succeeded_at, l.errored_at
"""

RUNS_SQL = """
SELECT run_id, agent, started_at, ended_at, outcome, rows_written, dead_letters, error
FROM agent_run
WHERE started_at >= $start::TIMESTAMPTZ AND started_at < $end::TIMESTAMPTZ
  AND ($agent::VARCHAR IS NULL OR agent = $agent::VARCHAR)
  AND (NOT $only_eventful::BOOLEAN OR outcome <> 'ok' OR rows_written > 0 OR dead_letters > 0)
ORDER BY started_at DESC LIMIT $limit::BIGINT
"""

STATES_SQL = """
SELECT agent, circuit, failures, since, reason, retry_at, abandoned, updated_at FROM agent_state
"""

PROGRESS_SQL = "SELECT agent, done, total, unit, updated_at FROM agent_progress"

REQUESTS_SQL = """
SELECT request_id, agent, asked_at, state, taken_at, ended_at, run_id, answer FROM agent_request
QUALIFY row_number() OVER (PARTITION BY agent ORDER BY asked_at DESC) = 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """What the store knows of one job."""

    agent: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str
    last_rows: int
    succeeded_at: datetime | None
    errored_at: datetime | None
    last_error: str | None
    runs: int
    failed_runs: int
    rows_written: int
    dead_letters: int
    newest_event_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """A job: what is expected of it and what it did.

    Attributes:
        job: None when it ran once but is not scheduled any more.
        last: None when it never ran.
        schedule: its circuit and when it is tried again; None before the schedule first spoke.
        progress: how far the present run is; None when it does not run, or has not said.
        request: the last run that somebody asked for.
        seen_at: when this was looked at.
    """

    agent: str
    job: Job | None
    freshness: JobFreshness | None
    last: LastRun | None
    schedule: AgentState | None = None
    progress: AgentProgress | None = None
    request: AgentRequest | None = None
    seen_at: datetime

    @property
    def lag_seconds(self) -> float | None:
        """Since the start of the last run that succeeded; None when none did.

        The same as `lakehouse_collector_lag_seconds`.
        """
        at = self.last.succeeded_at if self.last else None
        return max(0.0, (self.seen_at - at).total_seconds()) if at else None

    @property
    def newest_event_age_seconds(self) -> float | None:
        """Age of the newest event its source gave: grows while nothing happens there, too."""
        at = self.last.newest_event_at if self.last else None
        return max(0.0, (self.seen_at - at).total_seconds()) if at else None

    @property
    def next_at(self) -> datetime | None:
        """When the next run is due; None when it is not scheduled or never ran."""
        if self.job is None or self.last is None:
            return None
        if self.schedule is not None and self.schedule.retry_at is not None:
            return self.schedule.retry_at
        return self.last.started_at + self.job.every

    @property
    def is_running(self) -> bool:
        """Whether a run is going on."""
        return self.last is not None and self.last.outcome == "running"

    @property
    def is_asked_for(self) -> bool:
        """Whether somebody asked for a run that has not ended yet."""
        return self.request is not None and self.request.state in {"waiting", "running"}

    @property
    def circuit(self) -> str | None:
        """Whether its source answers: closed, open or half-open; None when nobody has said."""
        return self.schedule.circuit if self.schedule is not None else None

    @property
    def state(self) -> str:
        """In a word: ok, running, partial, failed, late, never ran, or not scheduled."""
        if self.job is None:
            return "not scheduled"
        if self.last is None:
            return "never ran"
        if self.last.outcome == "failed":
            return "failed"
        if self.freshness is not None and self.freshness.is_stale:
            return "late"
        return self.last.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentList:
    """All jobs, scheduled ones first, and the window of their sums."""

    window: Window
    agents: tuple[AgentView, ...]

    @property
    def unwell(self) -> tuple[AgentView, ...]:
        """Scheduled jobs that failed, are late or never ran."""
        return tuple(a for a in self.agents if a.state in {"failed", "late", "never ran"})


def list_agents(
    store: TelemetryStore, expected: tuple[Job, ...], filters: Filters, clock: Clock
) -> AgentList:
    """Every scheduled job, and jobs that ran before but are not scheduled any more."""
    now = clock()
    window = filters.window_at(now)
    seen = {
        run.agent: run
        for run in records(LastRun, store.read(JOBS_SQL, start=window.start, end=window.end))
    }
    states = {one.agent: one for one in records(AgentState, store.read(STATES_SQL))}
    words = {one.agent: one for one in records(AgentProgress, store.read(PROGRESS_SQL))}
    asked = {one.agent: one for one in records(AgentRequest, store.read(REQUESTS_SQL))}
    scheduled = tuple(
        AgentView(
            agent=job.agent,
            job=job,
            freshness=_fresh(job, seen.get(job.agent), now),
            last=seen.get(job.agent),
            schedule=states.get(job.agent),
            progress=_present(words.get(job.agent), seen.get(job.agent)),
            request=asked.get(job.agent),
            seen_at=now,
        )
        for job in expected
    )
    known = {job.agent for job in expected}
    past = tuple(
        AgentView(agent=name, job=None, freshness=None, last=run, seen_at=now)
        for name, run in sorted(seen.items())
        if name not in known
    )
    return AgentList(window=window, agents=scheduled + past)


def recent_runs(
    store: TelemetryStore,
    filters: Filters,
    clock: Clock,
    *,
    agent: str | None = None,
    only_eventful: bool = False,
    limit: int = 50,
) -> tuple[AgentRun, ...]:
    """Runs that started in the window, newest first; `only_eventful` leaves out idle ones."""
    window = filters.window_at(clock())
    table = store.read(
        RUNS_SQL,
        start=window.start,
        end=window.end,
        agent=agent,
        only_eventful=only_eventful,
        limit=limit,
    )
    return records(AgentRun, table)


def _fresh(job: Job, last: LastRun | None, now: datetime) -> JobFreshness:
    succeeded_at = last.succeeded_at if last else None
    age = now - succeeded_at if succeeded_at else None
    return JobFreshness(job=job, succeeded_at=succeeded_at, age=age)


def _present(said: AgentProgress | None, last: LastRun | None) -> AgentProgress | None:
    """What the run that is going on said; the word of an earlier one is no progress."""
    if said is None or last is None or last.outcome != "running":
        return None
    return said if said.updated_at >= last.started_at else None

"""How fresh the figures are: which jobs feed them, when each last succeeded, which are late.

A figure is as old as the last success of the slowest job behind it; it is stale when a job missed
two of its intervals. A job that writes down what it does as it goes is as good as its present run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.views.formatting import ago, moment, span
from lakehouse_core.views.hourly import ROLLUP_EVERY

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

LAKE_SOURCE = "iceberg"
SAVINGS_EVERY = timedelta(minutes=15)
COSTS_EVERY = timedelta(minutes=1)
BACKUP_LOOK_EVERY = timedelta(hours=1)
ROUTE_EVERY = timedelta(minutes=5)
_PATIENCE = timedelta(seconds=30)  # a job of few seconds is not late for one slow run

LAST_SUCCESS_SQL = """
SELECT agent, max(started_at) FILTER (outcome IN ('ok', 'partial')) AS succeeded_at,
  max(started_at) AS started_at, arg_max(outcome, started_at) = 'running' AS is_running
FROM agent_run GROUP BY agent
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A scheduled job that fills the store; `feeds` says which figures rest on it.

    Attributes:
        is_live: it writes down what it does as it goes, so a long run makes no figure old.
    """

    agent: str
    every: timedelta
    feeds: str  # e.g. queries, tables, health, workloads, recommendations, maintenance, upkeep
    is_live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFreshness:
    """When a job last succeeded; `age` None means never."""

    job: Job
    succeeded_at: datetime | None
    age: timedelta | None

    @property
    def is_stale(self) -> bool:
        """Whether it missed two of its intervals (and 30 s), or never succeeded."""
        return is_late(self.age, self.job.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The freshness of everything, cut to a subject with `of`."""

    at: datetime
    jobs: tuple[JobFreshness, ...]

    def of(self, *feeds: str) -> Freshness:
        """Only the jobs behind these figures."""
        return Freshness(at=self.at, jobs=tuple(j for j in self.jobs if j.job.feeds in feeds))

    @property
    def stale(self) -> tuple[JobFreshness, ...]:
        """The jobs that are late."""
        return tuple(job for job in self.jobs if job.is_stale)

    @property
    def as_of(self) -> datetime | None:
        """Up to when all of these jobs have reported; None when one never has."""
        known = [job.succeeded_at for job in self.jobs if job.succeeded_at is not None]
        return min(known) if known and len(known) == len(self.jobs) else None

    @property
    def worst(self) -> JobFreshness | None:
        """The job whose last success is the longest ago; never counts as longest."""
        if not self.jobs:
            return None
        return max(self.jobs, key=lambda job: timedelta.max if job.age is None else job.age)

    def caption(self) -> str:
        """`As of 2026-11-16 06:05:12 UTC, collected 8 s ago`."""
        if self.as_of is not None:
            return f"As of {moment(self.as_of)}, collected {ago(self.as_of, self.at)}"
        missing = ", ".join(job.job.agent for job in self.jobs if job.age is None)
        return f"Not collected yet: {missing or 'no source is configured'}"

    def warning(self) -> str | None:
        """What is late, since when, and what to do; None when nothing is."""
        if not self.stale:
            return None
        late = "; ".join(
            f"{job.job.agent} has not succeeded yet"
            if job.succeeded_at is None
            else f"{job.job.agent} last succeeded {ago(job.succeeded_at, self.at)} "
            f"(expected every {span(job.job.every)})"
            for job in self.stale
        )
        return f"These figures may be old: {late}. The agents page has the reason."


def is_late(age: timedelta | None, every: timedelta) -> bool:
    """Whether something done every so often is overdue: two intervals and 30 s, or never done."""
    return age is None or age > max(2 * every, _PATIENCE)


def jobs(config: Config) -> tuple[Job, ...]:
    """The jobs this configuration schedules."""
    collect = [
        Job(
            agent=f"collect:{source}",
            every=settings.every,
            feeds="tables" if source == LAKE_SOURCE else "queries",
        )
        for source, settings in config.collect.items()
        if settings.enabled and _is_wanted(config, source)
    ]
    return (
        *collect,
        Job(agent="probe", every=config.agents.probe_every, feeds="engines"),
        Job(agent="health", every=config.agents.health_every, feeds="health"),
        Job(agent="rollup", every=ROLLUP_EVERY, feeds="upkeep"),
        Job(agent="retention", every=config.agents.retention_every, feeds="upkeep"),
        Job(agent="backup", every=look_for_backup_every(config), feeds="upkeep"),
        Job(agent="finops", every=COSTS_EVERY, feeds="costs"),
        Job(agent="costs", every=COSTS_EVERY, feeds="upkeep"),
        Job(agent="route", every=ROUTE_EVERY, feeds="routing"),
        Job(agent="learn", every=config.agents.learn_every, feeds="upkeep"),
        Job(agent="budgets", every=config.finops.every, feeds="alerts"),
        *_pipeline(config),
        *_maintenance(config),
    )


def look_for_backup_every(config: Config) -> timedelta:
    """How often it is asked whether a backup is due: a process that was away catches up soon."""
    return min(config.agents.backup_every, BACKUP_LOOK_EVERY)


def _pipeline(config: Config) -> tuple[Job, ...]:
    if not config.pipeline.enabled:
        return ()
    return (Job(agent="pipeline", every=config.pipeline.every, feeds="workloads"),)


def _maintenance(config: Config) -> tuple[Job, ...]:
    if not config.maintenance.enabled:
        return ()
    settings = config.maintenance
    return (
        Job(agent="recommend", every=settings.recommend_every, feeds="recommendations"),
        Job(agent="maintain", every=settings.every, feeds="maintenance", is_live=True),
        Job(agent="savings", every=SAVINGS_EVERY, feeds="upkeep"),
        *(
            [Job(agent="layout", every=config.layout.every, feeds="layout")]
            if config.layout.enabled
            else ()
        ),
    )


def _is_wanted(config: Config, source: str) -> bool:
    engine = config.engines.get(source)
    return engine is None or engine.enabled


def freshness(store: TelemetryStore, expected: tuple[Job, ...], clock: Clock) -> Freshness:
    """When each expected job last succeeded."""
    now = clock()
    rows = {row["agent"]: row for row in store.read(LAST_SUCCESS_SQL).to_pylist()}
    # What a killed process left as running does not run: no other job of it begins any more.
    newest = max((row["started_at"] for row in rows.values()), default=None)
    often = min((job.every for job in expected), default=timedelta(0))
    is_alive = newest is not None and not is_late(now - newest, often)

    def of(job: Job) -> JobFreshness:
        row = rows.get(job.agent)
        if row is None:
            return JobFreshness(job=job, succeeded_at=None, age=None)
        at = now if job.is_live and row["is_running"] and is_alive else row["succeeded_at"]
        return JobFreshness(job=job, succeeded_at=at, age=None if at is None else now - at)

    return Freshness(at=now, jobs=tuple(map(of, expected)))

"""When jobs run: one at a time each, late ones once, failing ones less often, at once when asked.

A job whose source is silent has an open circuit (circuit.py): it is left alone, then tried with one
run. A run that hangs is given up by the job itself (watch.py), so that none runs for ever.

APScheduler reckons in wall-clock time. A clock that jumps ahead, or a machine that slept, leaves
many runs overdue: they are coalesced into one. A clock that is set back would leave every job
waiting for a time that is far away: `keep_in_step` notices and starts the waiting anew.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from agents.backoff import BackOff
from lakehouse_core.domain.agent import AgentState
from lakehouse_core.domain.circuit import OPEN_AFTER, Circuit
from lakehouse_core.domain.clock import Clock, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from agents.runs import Ended

SET_BACK = timedelta(seconds=5)
_MAX_JITTER_SECONDS = 2.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """A job.

    Attributes:
        run: runs it once and records the run; must end (watch.py).
        abandoned: the threads of runs that hang and were given up.
        open_after: how many silent runs in a row open its circuit.
    """

    name: str
    every: timedelta
    run: Callable[[], Ended]
    abandoned: Callable[[], tuple[str, ...]] = tuple
    open_after: int = OPEN_AFTER


def _ignore(_: object) -> None:
    pass


class Interval(BaseTrigger):  # type: ignore[misc]  # APScheduler is untyped
    """Every so often, reckoned from now when that lies in the past.

    APScheduler's own interval counts up every run that was missed: after a clock jumped from 1970
    to today that takes minutes and all memory.
    """

    def __init__(self, every: timedelta, luck: random.Random) -> None:
        self._every = every
        self._luck = luck

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """The next run after `previous`; one that is over already moves to the future."""
        if previous is None:
            return now
        jitter = min(_MAX_JITTER_SECONDS, self._every.total_seconds() / 10) * self._luck.random()
        due = previous + self._every
        return (due if due > now else now + self._every) + timedelta(seconds=jitter)


class Scheduler:
    """Runs jobs in threads of this process until it is stopped."""

    def __init__(
        self,
        jobs: Sequence[ScheduledJob],
        *,
        clock: Clock = utc_now,
        seed: int | None = None,
        circuits: Mapping[str, Circuit] | None = None,
        on_end: Callable[[Ended], None] = _ignore,
        on_change: Callable[[AgentState], None] = _ignore,
    ) -> None:
        """Nothing runs yet.

        Args:
            jobs: what to run.
            clock: what the time is.
            seed: of the jitter.
            circuits: as the last process left them; an open one is probed by its first run.
            on_end: called after each run.
            on_change: called when the state of a job is another than before.
        """
        now = clock()
        kept = circuits or {}
        self._jobs = {job.name: job for job in jobs}
        self._failures = dict.fromkeys(self._jobs, 0)
        self._circuits = {name: kept.get(name) or Circuit(since=now) for name in self._jobs}
        self._told: dict[str, tuple[object, ...]] = {}
        self._on_end = on_end
        self._on_change = on_change
        self._luck = random.Random(seed)  # noqa: S311 jitter, not a secret
        self._clock = clock
        self._running: set[str] = set()
        self._lock = threading.Lock()
        self._seen = (clock(), time.monotonic())
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            # A thread for each job: one that hangs keeps no other from running. And one more, to
            # find out that it runs already: APScheduler counts a run a little longer than it
            # takes, and would drop one that is asked for in that moment.
            executors={"default": ThreadPoolExecutor(2 * max(1, len(jobs)))},
            # However late, run: what a job missed is what it collects now. Once, not once per miss.
            job_defaults={"max_instances": 2, "coalesce": True, "misfire_grace_time": None},
        )

    def start(self) -> None:
        """Run every job now, then at its interval."""
        now = self._clock()
        for job in self._jobs.values():
            self._tell(job, None, None)
            self._scheduler.add_job(
                self._run,
                Interval(job.every, self._luck),
                args=(job,),
                id=job.name,
                next_run_time=now,
            )
        self._scheduler.start()

    def keep_in_step(self) -> bool:
        """Notice a wall clock that was set back, and let every job run soon; call it often."""
        before, mark = self._seen
        now, tick = self._clock(), time.monotonic()
        self._seen = (now, tick)
        if before + timedelta(seconds=tick - mark) - now < SET_BACK:
            return False
        _log.warning("scheduler.clock_set_back", seconds=round((before - now).total_seconds()))
        for name in self._jobs:
            self._next_at(name, now)
        self.wake()
        return True

    def run_now(self, name: str) -> None:
        """Run a job at once, whatever its interval or its circuit says; never beside itself."""
        self._next_at(name, self._clock())
        self.wake()

    def wake(self) -> None:
        """Look at once what is due, e.g. after the machine slept."""
        self._scheduler.wakeup()

    @property
    def running(self) -> frozenset[str]:
        """The jobs that run at this moment."""
        with self._lock:
            return frozenset(self._running)

    @property
    def abandoned(self) -> tuple[str, ...]:
        """The threads of all runs that hang and were given up."""
        return tuple(name for job in self._jobs.values() for name in job.abandoned())

    def next_runs(self) -> dict[str, datetime | None]:
        """When each job is due next."""
        return {job.id: job.next_run_time for job in self._scheduler.get_jobs()}

    def stop(self, patience: timedelta) -> bool:
        """Start nothing more and wait for what runs; False when something still does."""
        self._scheduler.pause()
        deadline = time.monotonic() + patience.total_seconds()
        while self.running and time.monotonic() < deadline:
            time.sleep(0.02)
        self._scheduler.shutdown(wait=not self.running)
        return not self.running

    def _run(self, job: ScheduledJob) -> None:
        with self._lock:
            if job.name in self._running:
                return
            self._running.add(job.name)
        try:
            self._turn(job, self._circuits[job.name].when_started(self._clock()))
            ended = job.run()
            self._reckon(job, ended)
        finally:
            with self._lock:
                self._running.discard(job.name)
        self._on_end(ended)

    def _reckon(self, job: ScheduledJob, ended: Ended) -> None:
        """What a run's end means for the next one."""
        now, run = self._clock(), ended.run
        circuit = self._circuits[job.name].when_ended(ended.reach, run.error, now, job.open_after)
        is_failed = run.outcome == "failed"
        self._failures[job.name] = self._failures[job.name] + 1 if is_failed else 0
        retry_at = None
        if is_failed or circuit.state == "open":
            delay = BackOff(job.every).delay(
                max(self._failures[job.name], circuit.failures), self._luck
            )
            retry_at = now + delay
            self._next_at(job.name, retry_at)
        self._turn(job, circuit, run.error if is_failed else None, retry_at)

    def _turn(
        self,
        job: ScheduledJob,
        circuit: Circuit,
        error: str | None = None,
        retry_at: datetime | None = None,
    ) -> None:
        before = self._circuits[job.name]
        self._circuits[job.name] = circuit
        if circuit.state != before.state:
            level = _log.warning if circuit.state == "open" else _log.info
            level("agent.circuit", agent=job.name, state=circuit.state, reason=circuit.reason)
        self._tell(job, error, retry_at)

    def _tell(self, job: ScheduledJob, error: str | None, retry_at: datetime | None) -> None:
        circuit = self._circuits[job.name]
        state = AgentState(
            agent=job.name,
            circuit=circuit.state,
            failures=circuit.failures,
            since=circuit.since,
            reason=circuit.reason or error,
            retry_at=retry_at,
            abandoned=len(job.abandoned()),
            updated_at=self._clock(),
        )
        news = (state.circuit, state.failures, state.reason, state.retry_at, state.abandoned)
        if self._told.get(job.name) != news:
            self._told[job.name] = news
            self._on_change(state)

    def _next_at(self, name: str, at: datetime) -> None:
        try:
            self._scheduler.modify_job(name, next_run_time=at)
        except JobLookupError:
            _log.debug("scheduler.stopped", job=name)  # it was stopped while the job ran

"""Late runs are coalesced, failing jobs back off, a clock set back stops nothing."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import time_machine

from agents.runs import Ended
from agents.scheduler import ScheduledJob, Scheduler
from lakehouse_core.domain.circuit import OPEN_AFTER, Circuit
from lakehouse_core.domain.clock import utc_now
from tests.factories import agent_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakehouse_core.domain.agent import AgentState
    from lakehouse_core.domain.circuit import Reach

START = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # a night in which many clocks change
HOUR = timedelta(hours=1)


class Counter:
    """A job that counts its runs, and can be told to fail or to wait."""

    def __init__(self, outcome: str = "ok", reach: Reach = "answered") -> None:
        self.outcome = outcome
        self.reach: Reach = reach
        self.count = 0
        self.at: list[datetime] = []
        self.gate = threading.Event()
        self.gate.set()
        self._lock = threading.Lock()

    def __call__(self) -> Ended:
        with self._lock:
            self.count += 1
            self.at.append(utc_now())
        self.gate.wait(30)
        error = None if self.outcome == "ok" else f"it {self.outcome}"
        return Ended(run=agent_run(outcome=self.outcome, error=error), reach=self.reach)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + 20
    while not condition():
        assert time.perf_counter() < deadline, "it never happened"
        threading.Event().wait(0.005)


@pytest.fixture
def traveller() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(START, tick=False) as travelling:
        yield travelling


@pytest.fixture
def schedule() -> Iterator[Callable[..., Scheduler]]:
    made: list[Scheduler] = []

    def make(
        circuits: dict[str, Circuit] | None = None,
        on_change: Callable[[AgentState], None] = lambda _: None,
        **jobs: Counter,
    ) -> Scheduler:
        scheduler = Scheduler(
            [
                ScheduledJob(name=name, every=timedelta(seconds=10), run=job)
                for name, job in jobs.items()
            ],
            seed=0,
            circuits=circuits,
            on_change=on_change,
        )
        made.append(scheduler)
        scheduler.start()
        return scheduler

    yield make
    for scheduler in made:
        scheduler.stop(timedelta(seconds=20))


def nothing_due(scheduler: Scheduler) -> bool:
    """What was overdue has been looked at."""
    return all(at is not None and at > utc_now() for at in scheduler.next_runs().values())


def settled(scheduler: Scheduler) -> bool:
    """Nothing runs, and nothing is overdue."""
    return not scheduler.running and nothing_due(scheduler)


def test_every_job_runs_at_once_and_then_at_its_interval(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    job = Counter()
    scheduler = schedule(job=job)
    until(lambda: job.count == 1 and settled(scheduler))
    for _ in range(3):
        before = job.count
        traveller.shift(timedelta(seconds=12))
        scheduler.wake()
        until(lambda: job.count > before and settled(scheduler))  # noqa: B023 called at once
        assert job.count == before + 1


@pytest.mark.parametrize("slept", [HOUR, 24 * HOUR, 50 * 365 * 24 * HOUR])
def test_what_a_sleep_or_a_jump_ahead_missed_is_run_once(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler], slept: timedelta
) -> None:
    jobs = {"first": Counter(), "second": Counter()}
    scheduler = schedule(**jobs)
    until(lambda: all(j.count == 1 for j in jobs.values()) and settled(scheduler))
    traveller.shift(slept)
    scheduler.wake()
    until(lambda: all(j.count >= 2 for j in jobs.values()) and settled(scheduler))
    scheduler.wake()
    assert [j.count for j in jobs.values()] == [2, 2]


def test_a_run_that_takes_longer_than_its_interval_is_not_started_twice(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    job = Counter()
    job.gate.clear()
    scheduler = schedule(job=job)
    until(lambda: job.count == 1)
    for _ in range(5):
        traveller.shift(timedelta(seconds=30))
        scheduler.wake()
        until(lambda: nothing_due(scheduler))
    job.gate.set()
    until(lambda: settled(scheduler))
    assert job.count == 1


def test_a_clock_that_is_set_back_does_not_stop_the_jobs(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    job = Counter()
    scheduler = schedule(job=job)
    until(lambda: job.count == 1 and settled(scheduler))
    traveller.shift(-HOUR)
    assert scheduler.keep_in_step()
    until(lambda: job.count == 2 and settled(scheduler))
    assert not scheduler.keep_in_step()
    assert all(
        at is not None and at < utc_now() + timedelta(minutes=1)
        for at in scheduler.next_runs().values()
    )


def test_a_job_that_fails_is_tried_less_and_less_often_and_harms_no_other(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    broken, sound = Counter("failed"), Counter()
    scheduler = schedule(broken=broken, sound=sound)
    for _ in range(60):
        until(lambda: settled(scheduler))
        traveller.shift(timedelta(seconds=12))
        scheduler.wake()
    until(lambda: settled(scheduler))
    assert sound.count > 40
    assert broken.count < 10
    waits = [b - a for a, b in zip(broken.at, broken.at[1:], strict=False)]
    assert waits[0] < waits[-1] <= timedelta(minutes=6)


def test_a_job_that_recovers_returns_to_its_interval(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    job = Counter("failed")
    scheduler = schedule(job=job)
    until(lambda: job.count == 1 and settled(scheduler))
    job.outcome = "ok"
    traveller.shift(timedelta(minutes=10))
    scheduler.wake()
    until(lambda: job.count == 2 and settled(scheduler))
    (due,) = scheduler.next_runs().values()
    assert due is not None
    assert due - utc_now() <= timedelta(seconds=12)


def test_stopping_waits_for_what_runs_and_says_when_it_does_not_end() -> None:
    job = Counter()
    job.gate.clear()
    scheduler = Scheduler([ScheduledJob(name="x", every=HOUR, run=job)], seed=0)
    scheduler.start()
    until(lambda: job.count == 1)
    assert not scheduler.stop(timedelta(seconds=0.05))
    assert scheduler.running == {"x"}
    job.gate.set()
    until(lambda: not scheduler.running)


def run_often(
    traveller: time_machine.Traveller, scheduler: Scheduler, job: Counter, times: int
) -> None:
    """Let the time go by until the job has run so often."""
    for number in range(1, times + 1):
        until(lambda: job.count == number and settled(scheduler))  # noqa: B023 called at once
        if number < times:
            traveller.shift(timedelta(minutes=6))
            scheduler.wake()


def test_a_silent_source_opens_its_circuit_and_one_run_closes_it(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    told: list[AgentState] = []
    job = Counter("failed", "silent")
    scheduler = schedule(on_change=told.append, job=job)
    run_often(traveller, scheduler, job, OPEN_AFTER)
    last = told[-1]
    assert (last.circuit, last.failures, last.reason) == ("open", OPEN_AFTER, "it failed")
    (due,) = scheduler.next_runs().values()
    assert due is not None
    assert last.retry_at is not None
    assert abs(due - last.retry_at) < timedelta(seconds=1)
    job.outcome, job.reach = "ok", "answered"
    traveller.shift(timedelta(minutes=6))
    scheduler.wake()
    until(lambda: job.count == OPEN_AFTER + 1 and settled(scheduler))
    assert [state.circuit for state in told[-2:]] == ["half-open", "closed"]
    assert told[-1].reason is None


def test_bad_answers_never_open_a_circuit(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    told: list[AgentState] = []
    job = Counter("failed", "answered")
    scheduler = schedule(on_change=told.append, job=job)
    run_often(traveller, scheduler, job, 3 * OPEN_AFTER)
    assert {state.circuit for state in told} == {"closed"}
    assert told[-1].reason == "it failed"


def test_a_circuit_left_open_is_probed_by_one_run_and_opens_at_its_first_failure(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    told: list[AgentState] = []
    kept = Circuit(since=START - HOUR, state="open", failures=7, reason="refused")
    scheduler = schedule(
        circuits={"job": kept}, on_change=told.append, job=Counter("failed", "silent")
    )
    until(lambda: settled(scheduler) and told[-1].circuit == "open" and told[-1].failures == 8)
    assert [state.circuit for state in told] == ["open", "half-open", "open"]
    assert {state.since for state in told} == {START - HOUR}


def test_a_job_can_be_run_at_once_although_it_backs_off(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    job = Counter("failed")
    scheduler = schedule(job=job)
    until(lambda: job.count == 1 and settled(scheduler))
    scheduler.run_now("job")
    until(lambda: job.count == 2 and settled(scheduler))


def test_a_job_that_runs_is_not_started_beside_itself(
    traveller: time_machine.Traveller, schedule: Callable[..., Scheduler]
) -> None:
    job = Counter()
    job.gate.clear()
    scheduler = schedule(job=job)
    until(lambda: job.count == 1)
    scheduler.run_now("job")
    until(lambda: nothing_due(scheduler))
    job.gate.set()
    until(lambda: settled(scheduler))
    assert job.count == 1

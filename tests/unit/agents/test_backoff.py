from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from agents.backoff import LONGEST, BackOff

intervals = st.timedeltas(timedelta(seconds=1), timedelta(hours=2))


@given(intervals, st.integers(1, 10_000), st.integers())
def test_the_wait_is_bounded_and_never_shorter_than_the_interval(
    every: timedelta, failures: int, seed: int
) -> None:
    delay = BackOff(every).delay(failures, random.Random(seed))  # noqa: S311 jitter
    assert every <= delay <= max(LONGEST, every)


def test_the_wait_grows_with_each_failure() -> None:
    luck = random.Random(0)  # noqa: S311 jitter
    waits = [BackOff(timedelta(seconds=5)).delay(n, luck) for n in range(1, 6)]
    assert waits == sorted(waits)
    assert waits[-1] > 8 * waits[0]


def test_jobs_broken_by_one_cause_do_not_return_in_step() -> None:
    luck = random.Random(0)  # noqa: S311 jitter
    waits = {BackOff(timedelta(seconds=10)).delay(3, luck) for _ in range(5)}
    assert len(waits) == 5

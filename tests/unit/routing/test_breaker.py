"""A member that is silent is left alone; errors of statements and cancels never count."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.routing import BreakerConfig
from lakehouse_core.routing.breaker import Breaker, Ending
from tests.unit.routing.conftest import Hands

SETTINGS = BreakerConfig(
    windowSecs=60,
    minRequests=4,
    failureRatePercent=50,
    timeoutRatePercent=25,
    initialBackoffSecs=10,
    maxBackoffSecs=35,
)


def after(*endings: Ending, hands: Hands | None = None) -> Breaker:
    breaker = Breaker(SETTINGS, hands or Hands())
    for ending in endings:
        breaker.when_ended(ending, "connection refused")
    return breaker


@pytest.mark.parametrize(
    ("endings", "opens"),
    [
        (("unavailable",) * 3, False),
        (("unavailable",) * 4, True),
        (("failed", "failed", "unavailable") * 2, False),
        (("unavailable", "failed") * 2 + ("unavailable",), True),
        (("finished",) * 10 + ("unavailable",) * 4, False),
        (("finished",) * 4 + ("unavailable",) * 4, True),
        (("unavailable", "finished", "finished", "timeout"), True),
        (("unavailable", "finished", "finished", "finished", "timeout"), False),
    ],
)
def test_it_opens_on_a_rate_of_silence(endings: tuple[Ending, ...], opens: bool) -> None:
    assert (after(*endings).obstacle() is not None) == opens


@given(st.lists(st.sampled_from(("finished", "failed", "cancelled")), max_size=80))
def test_errors_of_statements_and_cancels_never_open_it(endings: list[Ending]) -> None:
    assert after(*endings).obstacle() is None


def test_old_failures_are_forgotten() -> None:
    hands = Hands()
    breaker = after(*("unavailable",) * 3, hands=hands)
    hands.now += timedelta(seconds=61)
    breaker.when_ended("unavailable", "x")
    assert breaker.obstacle() is None


def test_one_statement_finds_out_whether_it_is_back() -> None:
    hands = Hands()
    breaker = after(*("unavailable",) * 4, hands=hands)
    assert breaker.obstacle() == "its circuit is open for 10 s more: connection refused"
    hands.now += timedelta(seconds=10)
    assert breaker.obstacle() is None
    breaker.when_started()
    assert "half-open" in (breaker.obstacle() or "")
    breaker.when_ended("finished")
    assert breaker.obstacle() is None
    assert breaker.circuit.state == "closed"


def test_the_time_doubles_up_to_its_limit_and_starts_anew_when_it_is_back() -> None:
    hands = Hands()
    breaker = after(*("unavailable",) * 4, hands=hands)
    for seconds in (10, 20, 35, 35):
        assert f"open for {seconds} s" in (breaker.obstacle() or "")
        hands.now += timedelta(seconds=seconds)
        breaker.when_started()
        breaker.when_ended("unavailable", "still away")
    hands.now += timedelta(seconds=35)
    breaker.when_started()
    breaker.when_ended("failed")  # it answered
    for _ in range(4):
        breaker.when_ended("unavailable", "gone again")
    assert "open for 10 s" in (breaker.obstacle() or "")


def test_a_probe_that_is_cancelled_tells_nothing_and_another_is_sent() -> None:
    hands = Hands()
    breaker = after(*("unavailable",) * 4, hands=hands)
    hands.now += timedelta(seconds=10)
    breaker.when_started()
    breaker.when_ended("cancelled")
    assert breaker.circuit.state == "open"
    hands.now += timedelta(seconds=20)
    assert breaker.obstacle() is None

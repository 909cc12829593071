"""Silence opens a circuit; nothing else does, and one answer closes it."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from agents.circuit import OPEN_AFTER, Circuit, Reach
from tests.factories import NOW

SECOND = timedelta(seconds=1)
ends = st.lists(st.sampled_from(get_args(Reach)), max_size=40)


def after(reaches: list[Reach]) -> Circuit:
    circuit = Circuit(since=NOW)
    for number, reach in enumerate(reaches):
        now = NOW + number * SECOND
        circuit = circuit.when_started(now).when_ended(reach, "no answer", now)
    return circuit


@given(ends)
def test_it_is_open_only_after_enough_silence_in_a_row(reaches: list[Reach]) -> None:
    circuit = after(reaches)
    silent = 0
    for reach in reaches:
        silent = {"answered": 0, "silent": silent + 1, "untold": silent}[reach]
    assert circuit.failures == silent
    assert (circuit.state == "open") == (silent >= OPEN_AFTER)
    assert (circuit.reason is None) == (silent == 0)


@given(ends)
def test_one_answer_closes_it(reaches: list[Reach]) -> None:
    circuit = after([*reaches, "answered"])
    assert (circuit.state, circuit.failures, circuit.reason) == ("closed", 0, None)


@given(st.integers(min_value=OPEN_AFTER, max_value=30))
def test_a_probe_that_fails_keeps_the_time_since_when_it_is_open(silent: int) -> None:
    circuit = after(["silent"] * silent)
    assert circuit.since == NOW + (OPEN_AFTER - 1) * SECOND


def test_a_run_behind_an_open_circuit_is_a_probe() -> None:
    circuit = after(["silent"] * OPEN_AFTER)
    assert circuit.when_started(NOW).state == "half-open"
    assert after([]).when_started(NOW).state == "closed"

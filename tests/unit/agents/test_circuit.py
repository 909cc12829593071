"""Silence opens a circuit; nothing else does, and one answer closes it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, get_args

from hypothesis import given
from hypothesis import strategies as st

from agents.jobs import Workshop, scheduled_jobs
from agents.probe import EnginePool
from agents.progress import ProgressBoard
from lakehouse_core.domain.circuit import OPEN_AFTER, Circuit, Reach
from lakehouse_core.engines.registry import open_engine
from tests.factories import NOW

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore
    from tests.conftest import DemoConfig

SECOND = timedelta(seconds=1)
ends = st.lists(st.sampled_from(get_args(Reach)), max_size=40)


def after(reaches: list[Reach], open_after: int = OPEN_AFTER) -> Circuit:
    circuit = Circuit(since=NOW)
    for number, reach in enumerate(reaches):
        now = NOW + number * SECOND
        circuit = circuit.when_started(now).when_ended(reach, "no answer", now, open_after)
    return circuit


@given(ends, st.integers(min_value=1, max_value=8))
def test_it_is_open_only_after_enough_silence_in_a_row(
    reaches: list[Reach], open_after: int
) -> None:
    circuit = after(reaches, open_after)
    silent = 0
    for reach in reaches:
        silent = {"answered": 0, "silent": silent + 1, "untold": silent}[reach]
    assert circuit.failures == silent
    assert (circuit.state == "open") == (silent >= open_after)
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


def test_the_configuration_says_how_much_silence_is_enough(
    load_demo_config: DemoConfig, tmp_path: Path, store: OwnerStore
) -> None:
    config = load_demo_config(tmp_path, LAKEHELM__AGENTS__CIRCUIT_OPENS_AFTER=2)
    engines = EnginePool(config, lambda name: open_engine(name, config))
    shop = Workshop(
        config, store, lambda: NOW, engines, lambda: False, ProgressBoard(store, lambda: NOW)
    )
    jobs = scheduled_jobs(shop)
    shop.close()
    assert {job.open_after for job in jobs} == {2}

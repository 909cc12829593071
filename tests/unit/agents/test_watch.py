"""A run that hangs is given up, named, and writes nothing more; the schedule goes on."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agents.collect import read_watermark, run_once
from agents.runs import Result
from agents.watch import Lease, Watch
from lakehouse_core.domain.errors import (
    SourceError,
    SourceUnavailableError,
    StoreUnavailableError,
)
from tests.factories import NOW
from tests.unit.agents.test_collect import ScriptedSource, batch
from tests.unit.agents.test_scheduler import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.base import Batch
    from lakehouse_core.domain.agent import Watermark
    from lakehouse_core.store.owner import OwnerStore

SOON = timedelta(seconds=0.05)
LONG = timedelta(seconds=30)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    opened = threading.Event()
    yield opened
    opened.set()


def hang(gate: threading.Event) -> Result:
    gate.wait(30)
    return Result(rows=9)


def test_work_that_ends_in_time_gives_its_result() -> None:
    watch = Watch("x", LONG)
    assert watch.call(lambda _: Result(rows=3)) == Result(rows=3)
    assert watch.abandoned == ()


@pytest.mark.parametrize(
    ("error", "reach"),
    [
        (SourceUnavailableError("away"), "silent"),
        (SourceError("nonsense"), "answered"),
        (StoreUnavailableError("ours"), "untold"),
        (ZeroDivisionError("bug"), "untold"),
    ],
)
def test_an_error_tells_whether_the_source_answered(error: Exception, reach: str) -> None:
    def work(_: Lease) -> Result:
        raise error

    result = Watch("x", LONG).call(work)
    assert result.reach == reach
    assert str(error) in (result.error or "")


def test_work_that_hangs_is_given_up_and_its_thread_is_named(gate: threading.Event) -> None:
    given_up: list[str] = []
    watch = Watch("collect:trino", SOON, on_abandon=lambda: given_up.append("yes"))
    result = watch.call(lambda _: hang(gate))
    assert (result.outcome, result.reach) == ("failed", "silent")
    assert "collect:trino#1" in (result.error or "")
    assert watch.abandoned == ("collect:trino#1",)
    assert given_up == ["yes"]
    gate.set()
    until(lambda: watch.abandoned == ())


def test_no_more_than_a_few_runs_may_hang_at_once(gate: threading.Event) -> None:
    watch = Watch("x", SOON, most_abandoned=2)
    for _ in range(2):
        watch.call(lambda _: hang(gate))
    began = threading.Event()

    def begin(_: Lease) -> Result:
        began.set()
        return Result()

    refused = watch.call(begin)
    assert not began.is_set()
    assert "x#1, x#2" in (refused.error or "")
    gate.set()
    until(lambda: watch.abandoned == ())
    assert watch.call(begin).error is None


@pytest.mark.slow  # the first batch has to be written within the patience, on a busy machine too
def test_a_pull_that_returns_late_writes_nothing_and_moves_no_watermark(
    store: OwnerStore, gate: threading.Event
) -> None:
    def script(_: Watermark | None) -> Iterator[Batch]:
        yield batch(1)
        gate.wait(30)
        yield batch(2)

    late = threading.Event()

    def work(lease: Lease) -> Result:
        source = ScriptedSource(script)
        found = run_once(source, store, lambda: NOW, timeout=LONG, lease=lease)
        late.set()
        return found.result

    result = Watch("collect:scripted", timedelta(seconds=6)).call(work)
    assert (result.outcome, result.rows) == ("failed", 1)
    gate.set()
    assert late.wait(20)
    mark = read_watermark(store, "scripted")
    assert mark is not None
    assert mark.position == "1"
    assert store.read("SELECT query_id FROM query_event").to_pylist() == [{"query_id": "q-1"}]

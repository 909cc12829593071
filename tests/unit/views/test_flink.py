"""Commits of Flink jobs, joined with what Flink says about them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.flink import END_OF_INPUT, FlinkCheckpoint, FlinkJob, SlotTime
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.views.flink import commit_cadence, slot_usage
from lakehouse_core.views.window import Window
from tests.factories import NOW, query_event, snapshot_commit

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf

FLINK = EngineId("flink")
DAY = Window(NOW - timedelta(days=1), NOW, "last 24 hours")
ORDERS = "lake.demo.orders"


def commit(job: str, at: datetime, checkpoint: int, table: str = ORDERS) -> Any:
    return snapshot_commit(
        table_id=table, committed_at=at, flink_job_id=job, flink_checkpoint_id=checkpoint
    )


def job(job_id: str, **given: Any) -> FlinkJob:
    values: dict[str, Any] = dict.fromkeys(FlinkJob.__slots__)
    values |= {"engine_id": FLINK, "job_id": job_id, "seen_at": NOW, "state": "RUNNING"}
    return FlinkJob(**{**values, "job_name": "orders", **given})


def checkpoint(job_id: str, number: int, **given: Any) -> FlinkCheckpoint:
    values: dict[str, Any] = dict.fromkeys(FlinkCheckpoint.__slots__)
    values |= {"engine_id": FLINK, "job_id": job_id, "checkpoint_id": number, "revision": 1}
    values |= {"status": "completed", "triggered_at": NOW, "is_savepoint": False}
    return FlinkCheckpoint(**{**values, **given})


def test_gaps_between_commits_per_table_and_job(store: Shelf) -> None:
    moments = [NOW - timedelta(seconds=s) for s in (100, 90, 80, 30)]
    commits = [commit("a", at, n) for n, at in enumerate(moments)]
    store.add("snapshot_commit", *commits, commit("b", moments[0], 1), snapshot_commit())
    store.add("flink_job", job("a", checkpoint_interval_ms=10_000, checkpoints_failed=2))
    store.add(
        "query_event",
        query_event(engine_id=FLINK, query_id="a", status=QueryStatus.RUNNING, sql_text=None),
    )
    first, second = commit_cadence(store, DAY)
    assert (first.table_id, first.job_id, first.job_name, first.status) == (
        ORDERS,
        "a",
        "orders",
        "running",
    )
    assert (first.commits, first.added_rows, first.last_commit_at) == (4, 4_000, moments[-1])
    assert (first.median_gap_ms, first.max_gap_ms) == (10_000, 50_000)
    assert (first.checkpoint_interval_ms, first.checkpoints_failed) == (10_000, 2)
    assert (second.job_id, second.engine_id, second.median_gap_ms) == ("b", None, None)


def test_the_last_checkpoint_is_the_newest_that_was_completed(store: Shelf) -> None:
    store.add("snapshot_commit", commit("a", NOW - timedelta(minutes=1), 5))
    store.add("flink_job", job("a"))
    store.add(
        "flink_checkpoint",
        checkpoint("a", 6, duration_ms=45.0, state_bytes=3_416, ended_at=NOW),
        checkpoint("a", 4, duration_ms=99.0),
        checkpoint("a", 7, status="failed"),
        checkpoint("a", 8, is_savepoint=True),
    )
    (found,) = commit_cadence(store, DAY, table_id=ORDERS)
    assert (found.committed_checkpoint, found.last_checkpoint) == (5, 6)
    assert (found.last_checkpoint_ms, found.last_checkpoint_bytes) == (45.0, 3_416)
    assert commit_cadence(store, DAY, table_id="lake.demo.other") == ()


def test_the_commit_at_the_end_of_a_bounded_input_is_no_checkpoint(store: Shelf) -> None:
    store.add("snapshot_commit", commit("a", NOW - timedelta(minutes=1), END_OF_INPUT))
    assert commit_cadence(store, DAY)[0].committed_checkpoint is None


def test_the_gap_that_reaches_into_the_window_counts_and_the_commit_before_it_does_not(
    store: Shelf,
) -> None:
    store.add(
        "snapshot_commit",
        commit("a", DAY.start - timedelta(minutes=5), 1),
        commit("a", DAY.start + timedelta(minutes=5), 2),
    )
    (found,) = commit_cadence(store, DAY)
    assert (found.commits, found.max_gap_ms) == (1, 600_000)


def test_slot_seconds_are_cut_at_the_window(store: Shelf) -> None:
    def held(start: timedelta, end: timedelta, slots: int) -> SlotTime:
        return SlotTime(
            engine_id=FLINK,
            job_id="a",
            started_at=DAY.start + start,
            ended_at=DAY.start + end,
            slots=slots,
        )

    hour = timedelta(hours=1)
    store.add("flink_slot_time", held(-hour, hour, 4), held(2 * hour, 3 * hour, 8))
    store.add("flink_slot_time", held(-3 * hour, -2 * hour, 99))
    (found,) = slot_usage(store, DAY)
    assert found.slot_seconds == pytest.approx(12 * 3_600)
    assert found.most_slots == 8

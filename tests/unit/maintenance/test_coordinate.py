"""Work beside writers and readers, as pure functions of a table's history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakehouse_core.catalog.contents import WrittenPartition
from lakehouse_core.catalog.metadata import Snapshot, TableMetadata
from lakehouse_core.domain.flink import END_OF_INPUT
from lakehouse_core.maintenance.activity import (
    Activity,
    Earlier,
    RunningQuery,
    Stream,
    flink_checkpoints,
    streams_of,
)
from lakehouse_core.maintenance.coordinate import (
    late_commits,
    next_gap,
    pause_after,
    protected_partitions,
    rest_until,
    snapshots_in_use,
)

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def snapshot(number: int, ago: timedelta, **summary: str) -> Snapshot:
    return Snapshot(
        snapshot_id=number,
        parent_id=number - 1 or None,
        timestamp_ms=int((NOW - ago).timestamp() * 1000),
        manifest_list=None,
        summary={"operation": "append"} | {k.replace("_", "-"): v for k, v in summary.items()},
    )


def table(*snapshots: Snapshot, **refs: int) -> TableMetadata:
    """Of these snapshots, oldest first."""
    nothing: dict[str, Any] = {"fields": (), "partition_names": {}, "properties": {}}
    return TableMetadata(
        location="x",
        size_bytes=1,
        table_uuid="u",
        format_version=2,
        snapshots=snapshots,
        current=snapshots[-1],
        sort_order=None,
        refs={"main": snapshots[-1].snapshot_id, **refs},
        **nothing,
    )


def reader(started_ago: timedelta, *snapshot_ids: int, kind: str = "select") -> RunningQuery:
    return RunningQuery(
        engine_id="trino",
        query_id="q",
        statement_kind=kind,
        started_at=NOW - started_ago,
        snapshot_ids=snapshot_ids,
    )


def written(snapshot_id: int, **values: Any) -> WrittenPartition:
    return WrittenPartition(snapshot_id, 0, values)


def flink(number: int, ago: timedelta, job: str = "j", checkpoint: int = 1) -> Snapshot:
    given = {"flink.job-id": job, "flink.max-committed-checkpoint-id": str(checkpoint)}
    return snapshot(number, ago, **given)


def test_a_snapshot_is_in_use_while_it_was_current_since_the_query_began() -> None:
    history = table(*(snapshot(n, timedelta(days=10 - n)) for n in range(1, 8)))
    # Began five days ago: what was current then is of the sixth day back.
    busy = Activity(running=(reader(timedelta(days=4, hours=12)),))
    assert snapshots_in_use(history, busy, NOW) == {5, 6, 7}
    assert snapshots_in_use(history, Activity(), NOW) == {7}
    told = Activity(running=(reader(timedelta(days=4, hours=12), 2),))
    assert snapshots_in_use(history, told, NOW) == {2, 7}


def test_what_was_current_within_the_longest_query_is_kept_when_nobody_tells() -> None:
    history = table(*(snapshot(n, timedelta(hours=10 - n)) for n in range(1, 8)))
    silent = Activity(longest_query=timedelta(hours=4, minutes=30))
    assert snapshots_in_use(history, silent, NOW) == {5, 6, 7}


def test_refs_streams_and_running_rewrites_keep_their_snapshots() -> None:
    snapshots = [
        snapshot(1, timedelta(days=9)),
        flink(2, timedelta(days=8)),
        flink(3, timedelta(days=7), checkpoint=2),
        snapshot(4, timedelta(days=6)),
        flink(5, timedelta(days=40), job="dead"),
        snapshot(6, MINUTE),
    ]
    running = Earlier(
        state="running",
        dedupe_key="k",
        started_at=NOW,
        ended_at=None,
        base_snapshot_id=4,
        result_snapshot_id=None,
    )
    used = snapshots_in_use(table(*snapshots, month=1), Activity(earlier=(running,)), NOW)
    assert used == {1, 3, 4, 6}


def test_a_flink_job_whose_input_has_ended_asks_for_nothing() -> None:
    ended = [flink(1, 2 * MINUTE), flink(2, MINUTE, checkpoint=END_OF_INPUT)]
    assert flink_checkpoints(ended, NOW - timedelta(days=1)) == set()
    assert flink_checkpoints(ended[:1], NOW - timedelta(days=1)) == {1}


def test_a_rhythm_makes_a_stream_and_silence_ends_it() -> None:
    commits = tuple(flink(n, (5 - n) * 10 * MINUTE) for n in range(1, 6))[::-1]
    (stream,) = streams_of(commits, NOW)
    assert stream.every == 10 * MINUTE
    assert streams_of(commits, NOW + timedelta(hours=2)) == ()
    assert streams_of(commits[:2], NOW) == ()


@pytest.mark.parametrize(
    ("ago", "waits"),
    [(timedelta(minutes=1), None), (timedelta(minutes=8), timedelta(minutes=2))],
)
def test_work_begins_right_after_a_commit(ago: timedelta, waits: timedelta | None) -> None:
    stream = Stream(writer="flink job j", last_at=NOW - ago, every=10 * MINUTE)
    found = next_gap([stream], NOW)
    assert found == (None if waits is None else NOW + waits)


def test_a_gap_nobody_can_hit_is_not_waited_for() -> None:
    busy = Stream(writer="w", last_at=NOW - timedelta(seconds=9), every=timedelta(seconds=10))
    assert next_gap([busy], NOW) is None


def test_writers_get_as_much_time_as_maintenance_took() -> None:
    stream = Stream(writer="w", last_at=NOW, every=MINUTE)
    last = Earlier(
        state="verified",
        dedupe_key="k",
        started_at=NOW - 10 * MINUTE,
        ended_at=NOW - 4 * MINUTE,
        base_snapshot_id=1,
        result_snapshot_id=2,
    )
    assert rest_until(Activity(streams=(stream,), earlier=(last,))) == NOW + 2 * MINUTE
    assert rest_until(Activity(earlier=(last,))) is None  # nobody writes


def test_cold_partitions_come_before_hot_ones() -> None:
    late = [snapshot(1, MINUTE)]
    hot = [written(1, day=3)]
    assert protected_partitions(hot, late, partitions=3) == (({"day": 3},), 0)


def test_where_all_is_hot_by_appends_alone_work_goes_on() -> None:
    late = [snapshot(1, MINUTE), snapshot(2, MINUTE)]
    hot = [written(1, day=3), written(2, day=4), written(2, day=3)]
    assert protected_partitions(hot, late, partitions=2) == ((), 2)


def test_what_was_deleted_from_is_left_alone_even_then() -> None:
    late = [snapshot(1, MINUTE), snapshot(2, MINUTE, operation="delete")]
    hot = [written(1, day=3), written(2, day=4)]
    assert protected_partitions(hot, late, partitions=2) == (({"day": 4},), 1)


def test_a_batch_job_that_has_ended_is_done_with_its_partitions() -> None:
    history = table(
        snapshot(1, timedelta(days=1)),
        snapshot(2, MINUTE, engine_name="spark", operation="overwrite"),
        snapshot(3, MINUTE, operation="replace"),
    )
    since = NOW - 10 * MINUTE
    assert late_commits(history, since, Activity()) == ()
    writing = Activity(running=(reader(MINUTE, kind="merge"),))
    assert [one.snapshot_id for one in late_commits(history, since, writing)] == [2]


def test_pauses_double_and_end() -> None:
    pauses = [pause_after(n) for n in (1, 2, 3, 50)]
    assert pauses == [MINUTE, 2 * MINUTE, 4 * MINUTE, timedelta(hours=1)]

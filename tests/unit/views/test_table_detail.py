from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import PartitionMetrics
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.scans import table_scans
from lakehouse_core.views.table_detail import care_of, largest_partitions, latest_commits
from tests.factories import NOW, lake_table, snapshot_commit, table_metrics

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf

TABLE = "lake.demo.t"


def partition(name: str) -> PartitionMetrics:
    return PartitionMetrics(
        partition=name, data_files=3, total_bytes=9, total_rows=5, small_files=2, delete_files=1
    )


def test_partitions_are_those_of_the_current_snapshot(store: Shelf) -> None:
    rows = [
        table_metrics(table_id=TABLE, snapshot_id=1, largest_partitions=(partition("day=1"),)),
        table_metrics(table_id=TABLE, snapshot_id=2, largest_partitions=(partition("day=2"),)),
    ]
    store.add("table_metrics", *rows)
    store.add("lake_table", lake_table(table_id=TABLE, current_snapshot_id=1))
    assert largest_partitions(store, TABLE) == (partition("day=1"),)


def test_a_table_measured_before_partitions_were_kept_has_none(store: Shelf) -> None:
    measured = to_arrow("table_metrics", [table_metrics(table_id=TABLE)])
    store.upsert("table_metrics", measured.drop_columns(["largest_partitions"]))
    store.add("lake_table", lake_table(table_id=TABLE))
    assert largest_partitions(store, TABLE) == ()


def test_the_newest_commits_come_first_and_other_tables_not_at_all(store: Shelf) -> None:
    rows = [snapshot_commit(table_id=TABLE) for _ in range(4)]
    store.add("snapshot_commit", *rows, snapshot_commit(table_id="lake.demo.other"))
    found = latest_commits(store, TABLE, limit=3)
    expected = sorted(rows, key=lambda one: one.committed_at, reverse=True)[:3]
    assert [one.committed_at for one in found] == [one.committed_at for one in expected]
    assert not any(one.is_care for one in found)


def test_a_table_nobody_cared_for(store: Shelf) -> None:
    assert care_of(store, TABLE) == ()


def test_a_commit_tells_how_long_it_took_where_its_client_reported_it(store: Shelf) -> None:
    commit = snapshot_commit(table_id=TABLE)
    store.add("snapshot_commit", commit, snapshot_commit(table_id=TABLE))
    report = {"report_id": "r", "received_at": NOW, "table_id": TABLE, "sequence_number": 1}
    more = {"snapshot_id": commit.snapshot_id, "operation": "append", "duration_ms": 9.0}
    store.add_rows("commit_report", report | more | {"attempts": 2})
    found = {
        one.snapshot_id: (one.duration_ms, one.attempts) for one in latest_commits(store, TABLE)
    }
    assert sorted(found.values(), key=str) == [(9.0, 2), (None, None)]
    assert found[commit.snapshot_id] == (9.0, 2)


def test_scans_say_how_much_readers_skipped(store: Shelf) -> None:
    scan = {"table_id": TABLE, "received_at": NOW - timedelta(minutes=1), "engine_name": "spark"}
    figures = {"scanned_data_files": 7, "skipped_data_files": 93, "scanned_bytes": 10}
    for number in range(2):
        filtered = {"report_id": f"f{number}", "filter_json": '{"type":"eq"}'}
        store.add_rows("scan_report", scan | figures | filtered)
    whole = {"report_id": "w", "filter_json": "true", "scanned_data_files": 100}
    store.add_rows("scan_report", scan | whole | {"skipped_data_files": 0})
    old = {"report_id": "o", "received_at": NOW - timedelta(days=9)}
    store.add_rows("scan_report", scan | figures | old)
    rows = table_scans(store, TABLE, Filters(window="1h"), lambda: NOW).rows
    assert [(one.is_filtered, one.scans, one.skipped_share) for one in rows] == [
        (True, 2, 0.93),
        (False, 1, 0.0),
    ]
    assert rows[0].bytes_read == 20

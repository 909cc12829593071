"""Snapshots as engines write them → commits."""

from __future__ import annotations

import pytest

from collectors.iceberg.mapping import to_commit, unreadable_letter
from lakehouse_core.catalog.metadata import Snapshot
from tests.factories import NOW

SPARK = {
    "operation": "append",
    "spark.app.id": "local-1",
    "added-data-files": "3",
    "added-records": "300",
    "added-files-size": "5122",
    "total-data-files": "3",
    "engine-version": "4.1.4",
    "app-id": "local-1",
    "engine-name": "spark",
}
FLINK = {
    "operation": "append",
    "flink.operator-id": "o",
    "flink.job-id": "j1",
    "flink.max-committed-checkpoint-id": "9223372036854775807",
    "added-data-files": "1",
}
TRINO = {"operation": "delete", "trino_query_id": "20261116_1", "total-data-files": "1"}


def commit(summary: dict[str, str]) -> object:
    return to_commit(
        "lake.demo.t",
        Snapshot(
            snapshot_id=7,
            parent_id=6,
            timestamp_ms=int(NOW.timestamp() * 1000),
            manifest_list="x",
            summary=summary,
        ),
    )


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (
            SPARK,
            {
                "operation": "append",
                "engine_name": "spark",
                "app_id": "local-1",
                "added_files": 3,
                "added_rows": 300,
                "added_bytes": 5122,
                "deleted_files": 0,
                "query_id": None,
            },
        ),
        (
            FLINK,
            {
                "engine_name": "flink",
                "flink_job_id": "j1",
                "flink_checkpoint_id": 2**63 - 1,
                "added_files": 1,
                "deleted_files": None,
            },
        ),
        (TRINO, {"engine_name": "trino", "query_id": "20261116_1", "deleted_rows": 0}),
        ({}, {"operation": None, "engine_name": None, "added_files": None}),
        ({"added-data-files": "many"}, {"added_files": None}),
        ({"added-records": "99999999999999999999"}, {"added_rows": None}),
    ],
    ids=["spark", "flink", "trino", "nothing", "no number", "too large"],
)
def test_a_summary_becomes_a_commit(summary: dict[str, str], expected: dict[str, object]) -> None:
    found = commit(summary)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_time_of_a_commit_is_utc() -> None:
    assert getattr(commit({}), "committed_at") == NOW  # noqa: B009


def test_a_letter_is_the_same_for_the_same_cause_only() -> None:
    one = unreadable_letter("t", "x.json", "missing", NOW)
    assert one.letter_id == unreadable_letter("t", "x.json", "missing", NOW).letter_id
    assert one.letter_id != unreadable_letter("t", "y.json", "missing", NOW).letter_id
    assert one.reason == "missing"

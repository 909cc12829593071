"""Old history leaves; what has no age stays."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.store.retention import apply_retention
from lakehouse_core.store.rows import to_arrow
from tests.factories import (
    NOW,
    lake_table,
    query_event,
    snapshot_commit,
    table_health,
    table_metrics,
)

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.owner import OwnerStore

KEEP = timedelta(days=90)


def test_rows_older_than_the_retention_leave_and_the_others_stay(store: OwnerStore) -> None:
    ages = {"new": 0, "edge": 90, "old": 91, "older": 400}
    events = [
        query_event(query_id=name, submitted_at=NOW - timedelta(days=days))
        for name, days in ages.items()
    ]
    store.upsert("query_event", to_arrow("query_event", events))
    verdicts = [table_health(assessed_at=NOW - timedelta(days=days)) for days in (1, 100)]
    store.upsert("health", to_arrow("health", verdicts))
    store.upsert("lake_table", to_arrow("lake_table", [lake_table(seen_at=NOW - 9 * KEEP)]))

    assert apply_retention(store, KEEP, clock=lambda: NOW) == {"query_event": 2, "health": 1}

    left = store.read("SELECT query_id FROM query_event ORDER BY 1").column("query_id")
    assert left.to_pylist() == ["edge", "new"]
    assert store.read("SELECT 1 FROM lake_table").num_rows == 1
    assert apply_retention(store, KEEP, clock=lambda: NOW) == {}


def days_ago(days: int) -> datetime:
    return NOW - timedelta(days=days)


def test_of_a_tables_metrics_the_current_ones_stay_and_those_at_the_horizon(
    store: OwnerStore,
) -> None:
    ages = {1: 400, 2: 300, 3: 200, 4: 100, 5: 10}
    measured = [
        table_metrics(table_id="lake.demo.events", snapshot_id=number, collected_at=days_ago(days))
        for number, days in ages.items()
    ]
    quiet = table_metrics(table_id="lake.demo.quiet", snapshot_id=9, collected_at=days_ago(500))
    store.upsert("table_metrics", to_arrow("table_metrics", [*measured, quiet]))
    # Rolled back to its second snapshot: the newest metrics are not the current ones.
    tables = [lake_table(table_id="lake.demo.events", current_snapshot_id=2)]
    store.upsert("lake_table", to_arrow("lake_table", tables))

    assert apply_retention(store, KEEP, clock=lambda: NOW) == {"table_metrics": 2}

    left = store.read("SELECT snapshot_id FROM table_metrics ORDER BY 1").column("snapshot_id")
    assert left.to_pylist() == [2, 4, 5, 9]


def test_of_a_tables_commits_those_stay_whose_snapshots_are_still_listed(
    store: OwnerStore,
) -> None:
    commits = [
        snapshot_commit(table_id=table, snapshot_id=number, committed_at=days_ago(days))
        for table in ("lake.demo.events", "lake.demo.gone")
        for number, days in {1: 400, 2: 200, 3: 100, 4: 95}.items()
    ]
    store.upsert("snapshot_commit", to_arrow("snapshot_commit", commits))
    metrics = table_metrics(
        table_id="lake.demo.events", snapshot_id=4, oldest_snapshot_at=days_ago(100)
    )
    store.upsert("table_metrics", to_arrow("table_metrics", [metrics]))
    tables = [lake_table(table_id="lake.demo.events", current_snapshot_id=4)]
    store.upsert("lake_table", to_arrow("lake_table", tables))

    assert apply_retention(store, KEEP, clock=lambda: NOW) == {"snapshot_commit": 5}

    left = store.read("SELECT table_id, snapshot_id FROM snapshot_commit ORDER BY ALL").to_pylist()
    assert [tuple(row.values()) for row in left] == [
        ("lake.demo.events", 3),
        ("lake.demo.events", 4),
        ("lake.demo.gone", 4),
    ]

"""Old history leaves; what has no age stays."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.store.retention import apply_retention
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, lake_table, query_event, table_health

if TYPE_CHECKING:
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

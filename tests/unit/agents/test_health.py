from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agents.health import run_once
from lakehouse_core.config.models import HealthConfig
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, lake_table, table_metrics

if TYPE_CHECKING:
    from lakehouse_core.domain.table import LakeTable, TableMetrics
    from lakehouse_core.store.owner import OwnerStore

EVENTS = "lake.demo.events"


def put(store: OwnerStore, table: LakeTable, *metrics: TableMetrics) -> None:
    store.upsert("lake_table", to_arrow("lake_table", [table]))
    if metrics:
        store.upsert("table_metrics", to_arrow("table_metrics", metrics))


def verdicts(store: OwnerStore) -> list[dict[str, Any]]:
    return store.read("FROM health ORDER BY table_id, assessed_at").to_pylist()


def assess(store: OwnerStore, after: timedelta = timedelta(0)) -> int:
    return run_once(store, HealthConfig(), lambda: NOW + after).rows


def test_every_table_gets_a_verdict(store: OwnerStore) -> None:
    sick = table_metrics(table_id=EVENTS, data_files=900, small_files=900, total_bytes=900_000)
    put(store, lake_table(table_id=EVENTS), sick)
    put(store, lake_table(table_id="lake.demo.healthy"), table_metrics())
    assert assess(store) == 2
    found = {v["table_id"]: v for v in verdicts(store)}
    assert found[EVENTS]["state"] == "critical"
    assert found["lake.demo.healthy"]["state"] == "healthy"
    assert found[EVENTS]["score"] < found["lake.demo.healthy"]["score"]


def test_a_verdict_that_is_no_news_is_written_once_an_hour(store: OwnerStore) -> None:
    put(store, lake_table(table_id=EVENTS), table_metrics(table_id=EVENTS))
    assert assess(store) == 1
    assert assess(store, timedelta(minutes=5)) == 0
    assert assess(store, timedelta(minutes=59)) == 0
    assert assess(store, timedelta(minutes=60)) == 1


def test_a_new_snapshot_is_news(store: OwnerStore) -> None:
    put(store, lake_table(table_id=EVENTS), table_metrics(table_id=EVENTS))
    assess(store)
    put(
        store,
        lake_table(table_id=EVENTS, current_snapshot_id=2),
        table_metrics(table_id=EVENTS, snapshot_id=2),
    )
    assert assess(store, timedelta(minutes=1)) == 1
    assert verdicts(store)[-1]["snapshot_id"] == 2


def test_a_table_that_was_rolled_back_is_judged_by_the_snapshot_it_is_at(
    store: OwnerStore,
) -> None:
    old = table_metrics(table_id=EVENTS, snapshot_id=1, collected_at=NOW - timedelta(hours=2))
    new = table_metrics(
        table_id=EVENTS, snapshot_id=2, data_files=900, small_files=900, total_bytes=900_000
    )
    put(store, lake_table(table_id=EVENTS, current_snapshot_id=1), old, new)
    assess(store)
    assert [(v["snapshot_id"], v["state"]) for v in verdicts(store)] == [(1, "healthy")]


def test_a_table_that_cannot_be_read_is_critical_with_its_cause(store: OwnerStore) -> None:
    put(store, lake_table(table_id=EVENTS, error="manifest list is missing"))
    assess(store)
    (verdict,) = verdicts(store)
    assert (verdict["state"], verdict["reason"]) == ("critical", "manifest list is missing")
    assert verdict["score"] is None


def test_a_table_without_metrics_is_unknown_not_zero(store: OwnerStore) -> None:
    put(store, lake_table(table_id=EVENTS))
    assess(store)
    (verdict,) = verdicts(store)
    assert (verdict["state"], verdict["score"]) == ("unknown", None)


def test_a_dropped_table_is_judged_no_more(store: OwnerStore) -> None:
    put(store, lake_table(table_id=EVENTS, dropped_at=NOW), table_metrics(table_id=EVENTS))
    assert assess(store) == 0

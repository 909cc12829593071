"""Hourly sums say what the queries say, whatever comes late, changes or leaves."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.rollup import Rollup
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.red import RED_SQL, TREND_SQL, red, trend
from tests.factories import NOW, query_event

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.owner import OwnerStore

HOUR = timedelta(hours=1)
WEEK = Filters(window="7d")


def clock() -> datetime:
    return NOW + timedelta(minutes=20)


def add(store: OwnerStore, **given: Any) -> None:
    store.upsert("query_event", to_arrow("query_event", [query_event(**given)]))


def fill(store: OwnerStore) -> None:
    events = [
        query_event(
            query_id=f"q{n}",
            engine_id=EngineId(("duckdb", "trino", "spark")[n % 3]),
            submitted_at=clock() - timedelta(minutes=37 * n + 1),
            status=(QueryStatus.FINISHED, QueryStatus.FAILED, QueryStatus.CANCELLED)[n % 7 % 3],
            elapsed_ms=float(10 + n * 37 % 4_000),
            bytes_scanned=None if n % 5 == 0 else n * 1_000,
            origin="simulated" if n % 4 == 0 else "real",
        )
        for n in range(300)
    ]
    store.upsert("query_event", to_arrow("query_event", events))


def counts(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.endswith("_ms")}


@pytest.mark.parametrize("filters", [WEEK, Filters(window="7d", engine="trino", status="finished")])
def test_long_windows_say_the_same_from_sums_and_from_queries(
    store: OwnerStore, filters: Filters
) -> None:
    fill(store)
    Rollup(store, clock).run_once()
    assert store.read("SELECT 1 FROM query_hour").num_rows > 100
    window = filters.window_at(clock())
    exact = store.read(RED_SQL, **filters.params(window)).to_pylist()
    seen = red(store, filters, clock)
    for row, found in zip(exact, (seen.total, *seen.engines), strict=True):
        assert {name: getattr(found, name) for name in counts(row)} == counts(row)
        for name in ("p50_ms", "p95_ms"):
            wanted, got = row[name], getattr(found, name)
            assert math.isclose(wanted, got, rel_tol=0.06), (row["engine_id"], name)
    step_us = int(window.step.total_seconds() * 1e6)
    buckets = store.read(TREND_SQL, step_us=step_us, **filters.params(window)).to_pylist()
    found_buckets = trend(store, filters, clock).rows.to_pylist()
    assert [counts(row) for row in found_buckets] == [counts(row) for row in buckets]


def test_without_a_rollup_the_queries_themselves_are_counted(store: OwnerStore) -> None:
    fill(store)
    assert red(store, WEEK, clock).total.queries == len(
        store.read("FROM query_event WHERE submitted_at >= $s", s=clock() - 7 * 24 * HOUR)
    )


@pytest.mark.slow
def test_a_query_that_comes_late_or_changes_is_counted_in_its_hour(store: OwnerStore) -> None:
    add(store, query_id="a", submitted_at=NOW - 60 * HOUR, status=QueryStatus.RUNNING)
    rollup = Rollup(store, clock)
    assert rollup.run_once().rows == 1
    assert rollup.run_once().rows in (0, 1)
    add(store, query_id="a", submitted_at=NOW - 60 * HOUR, collected_at=clock())
    add(store, query_id="b", submitted_at=NOW - 50 * HOUR, collected_at=clock())
    assert rollup.run_once().rows == 2
    seen = red(store, WEEK, clock).total
    assert (seen.queries, seen.finished, seen.unfinished) == (2, 2, 0)


def test_what_came_through_the_spool_with_an_old_time_is_found_by_the_next_process(
    store: OwnerStore,
) -> None:
    rollup = Rollup(store, clock)
    rollup.run_once()
    old = NOW - 60 * HOUR
    add(store, query_id="spooled", submitted_at=old, collected_at=old)
    rollup.run_once()
    assert red(store, WEEK, clock).total.queries == 0
    Rollup(store, clock).run_once()
    assert red(store, WEEK, clock).total.queries == 1


def test_hours_whose_queries_are_gone_are_emptied(store: OwnerStore) -> None:
    add(store, query_id="a", submitted_at=NOW - 60 * HOUR)
    Rollup(store, clock).run_once()
    store.transact("query_event", ["DELETE FROM query_event"])
    Rollup(store, clock).run_once()
    assert store.read("FROM query_hour").num_rows == 0

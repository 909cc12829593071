from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.query import EngineId, TemplateId
from lakehouse_core.domain.table import HISTOGRAM_BOUNDS
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.health import count_states, list_health, show_health, state_changes
from lakehouse_core.views.names import resolve_table
from lakehouse_core.views.tables import (
    column_usage,
    commits,
    history,
    list_tables,
    readers,
    show_table,
    size_histogram,
)
from lakehouse_core.views.window import parse_window
from tests.factories import (
    NOW,
    contributor,
    lake_table,
    query_event,
    snapshot_commit,
    table_health,
    table_metrics,
)
from tests.unit.views.conftest import clock

if TYPE_CHECKING:
    from tests.unit.views.conftest import Shelf

EVENTS = "lake.demo.events"
DAY = Filters(window="24h")


def test_newest_verdict_counts_and_contributors_keep_their_order(store: Shelf) -> None:
    worse, worst = contributor(rule="snapshots", points_lost=10.0), contributor(points_lost=40.0)
    store.add("lake_table", lake_table())
    store.add(
        "health",
        table_health(assessed_at=NOW - timedelta(hours=1), state=HealthState.HEALTHY, score=100.0,
                     contributors=()),
        table_health(contributors=(worst, worse)),
    )  # fmt: skip
    seen = show_health(store, EVENTS)
    assert (seen.state, seen.score, seen.amoro_score) == ("critical", 42.0, 55.0)
    assert seen.contributors == (worst, worse)
    assert seen.worst == worst.message


def test_a_table_without_a_verdict_is_unknown_and_says_why(store: Shelf) -> None:
    store.add(
        "lake_table",
        lake_table(),
        lake_table(table_id="lake.demo.broken", error="manifest is missing"),
    )
    by_name = {view.table_id: view for view in list_health(store)}
    assert by_name[EVENTS].state == "unknown"
    assert by_name[EVENTS].score is None
    assert "Not assessed yet" in str(by_name[EVENTS].reason)
    assert by_name["lake.demo.broken"].worst == "manifest is missing"
    assert count_states(tuple(by_name.values())).unknown == 2


def test_states_add_up_and_worst_score_comes_first(store: Shelf) -> None:
    states = (HealthState.HEALTHY, HealthState.CRITICAL, HealthState.WARNING)
    for score, state in zip((99.0, 12.0, 60.0), states, strict=True):
        store.add("lake_table", lake_table(table_id=f"lake.demo.{state}"))
        store.add("health", table_health(table_id=f"lake.demo.{state}", state=state, score=score))
    store.add("lake_table", lake_table(table_id="lake.demo.gone", dropped_at=NOW))
    verdicts = list_health(store)
    assert [verdict.state for verdict in verdicts] == ["critical", "warning", "healthy"]
    assert count_states(verdicts).total == 3


@pytest.mark.parametrize("name", [EVENTS, "demo.events", "events"])
def test_the_end_of_a_name_is_enough_when_it_is_clear(store: Shelf, name: str) -> None:
    store.add("lake_table", lake_table(), lake_table(table_id="lake.demo.orders"))
    assert show_health(store, name).table_id == EVENTS


def test_unknown_table_names_the_nearest(store: Shelf) -> None:
    store.add("lake_table", lake_table())
    with pytest.raises(NotFoundError, match=r"Did you mean lake\.demo\.events"):
        show_table(store, "lake.demo.evnts")


def test_ambiguous_end_is_not_guessed(store: Shelf) -> None:
    store.add("lake_table", lake_table(), lake_table(table_id="lake.tpch.events"))
    with pytest.raises(NotFoundError, match=r"lake\.demo\.events or lake\.tpch\.events"):
        show_table(store, "events")


def test_without_any_table_the_command_to_run_is_named(store: Shelf) -> None:
    with pytest.raises(NotFoundError, match="lakehelm collect"):
        show_table(store, EVENTS)


def test_only_the_last_change_of_state_in_the_window_is_told(store: Shelf) -> None:
    store.add("lake_table", lake_table())
    for minutes, state in ((90, "healthy"), (50, "warning"), (30, "warning"), (10, "critical")):
        store.add(
            "health",
            table_health(assessed_at=NOW - timedelta(minutes=minutes), state=HealthState(state)),
        )
    (change,) = state_changes(store, parse_window("1h", NOW))
    assert (change.before, change.after) == ("warning", "critical")
    assert state_changes(store, parse_window("5m", NOW)) == ()


def test_structure_is_of_the_current_snapshot_also_after_a_rollback(store: Shelf) -> None:
    store.add("lake_table", lake_table(current_snapshot_id=1))
    store.add(
        "table_metrics",
        table_metrics(table_id=EVENTS, snapshot_id=1, data_files=10),
        table_metrics(table_id=EVENTS, snapshot_id=2, data_files=99,
                      collected_at=NOW + timedelta(hours=1)),
    )  # fmt: skip
    assert show_table(store, EVENTS).structure.data_files == 10


def test_table_that_could_not_be_read_has_unknown_structure_not_zeros(store: Shelf) -> None:
    store.add("lake_table", lake_table(error="metadata file is missing"))
    (view,) = list_tables(store)
    assert view.structure.data_files is None
    assert view.structure.small_file_share is None
    assert view.structure.error == "metadata file is missing"
    assert size_histogram(view.structure) == ()


def test_empty_table_has_zero_files_and_no_share(store: Shelf) -> None:
    store.add("lake_table", lake_table(current_snapshot_id=None))
    store.add("table_metrics", table_metrics(table_id=EVENTS, snapshot_id=0, data_files=0))
    structure = show_table(store, EVENTS).structure
    assert (structure.data_files, structure.small_file_share) == (0, None)


def test_histogram_labels_follow_the_bounds(store: Shelf) -> None:
    store.add("lake_table", lake_table())
    counts = tuple(range(len(HISTOGRAM_BOUNDS) + 1))
    store.add("table_metrics", table_metrics(table_id=EVENTS, file_size_histogram=counts))
    buckets = size_histogram(show_table(store, EVENTS).structure)
    assert [bucket.files for bucket in buckets] == list(counts)
    assert [bucket.label for bucket in buckets][:3] == ["< 1 MiB", "1-8 MiB", "8-32 MiB"]
    assert buckets[-1].label == "≥ 512 MiB"


def test_commits_are_counted_per_bucket_and_operation(store: Shelf) -> None:
    store.add(
        "snapshot_commit",
        snapshot_commit(),
        snapshot_commit(),
        snapshot_commit(operation=None),
        snapshot_commit(committed_at=NOW - timedelta(days=3)),
        snapshot_commit(table_id="lake.demo.other"),
    )
    rows = commits(store, EVENTS, DAY, clock).rows.to_pylist()
    assert sorted((row["operation"], row["commits"]) for row in rows) == [
        ("append", 2),
        ("unknown", 1),
    ]


def test_history_is_newest_first_and_bounded(store: Shelf) -> None:
    store.add(
        "table_metrics",
        *(
            table_metrics(table_id=EVENTS, snapshot_id=n, data_files=n,
                          latest_snapshot_at=NOW + timedelta(hours=n))
            for n in range(1, 6)
        ),
    )  # fmt: skip
    assert history(store, EVENTS, limit=3).column("data_files").to_pylist() == [5, 4, 3]


def test_column_usage_is_weighted_by_queries_of_the_window(store: Shelf) -> None:
    store.add_rows(
        "column_usage",
        {"template_id": "t1", "table_name": EVENTS, "column_name": "day", "role": "filter_eq"},
        {"template_id": "t1", "table_name": "lake.demo.other", "column_name": "x", "role": "join"},
        {"template_id": "t2", "table_name": EVENTS, "column_name": "day", "role": "filter_eq"},
    )
    trino = EngineId("trino")
    store.add(
        "query_event",
        query_event(template_id=TemplateId("t1")),
        query_event(template_id=TemplateId("t2"), user_name="bo"),
        query_event(template_id=TemplateId("t2"), engine_id=trino),
        query_event(template_id=TemplateId("t2"), submitted_at=NOW - timedelta(days=9)),
    )
    rows = column_usage(store, EVENTS, DAY, clock).to_pylist()
    assert [(r["column_name"], r["role"], r["engine_id"], r["queries"]) for r in rows] == [
        ("day", "filter_eq", "duckdb", 2),
        ("day", "filter_eq", "trino", 1),
    ]
    assert column_usage(store, EVENTS, DAY, clock, limit=0).num_rows == 0
    seen = readers(store, EVENTS, DAY, clock)
    assert [(r.engine_id, r.queries, r.users) for r in seen] == [("duckdb", 2, 2), ("trino", 1, 1)]


def test_a_table_of_another_namespace_is_suggested_by_its_name(store: Shelf) -> None:
    store.add("lake_table", lake_table(table_id="lake.tpch.lineitem"))
    with pytest.raises(NotFoundError, match=r"not known\. Did you mean lake\.tpch\.lineitem\?"):
        resolve_table(store, "lake.demo.lineitem")

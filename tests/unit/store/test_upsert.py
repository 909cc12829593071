"""Upserts by key: whatever the order, however often, the table is the same."""

from __future__ import annotations

import shutil
import tempfile
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from lakehouse_core.store import batch as batches
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.tables import TABLES
from tests.factories import NOW, dead_letter, query_event, table_metrics, watermark
from tests.stores import new_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse_core.store.owner import OwnerStore

ALL = "SELECT * FROM query_event ORDER BY engine_id, query_id"


def upsert(store: OwnerStore, *events: QueryEvent) -> int:
    return store.upsert("query_event", to_arrow("query_event", events))


def stored(store: OwnerStore) -> dict[str, str]:
    rows = store.read("SELECT query_id, status FROM query_event").to_pylist()
    assert len(rows) == len({row["query_id"] for row in rows})
    return {row["query_id"]: row["status"] for row in rows}


def test_a_batch_seen_before_changes_nothing(store: OwnerStore) -> None:
    events = [query_event() for _ in range(10)]
    assert upsert(store, *events) == 10
    assert upsert(store, *events) == 0
    assert len(stored(store)) == 10


def test_a_later_state_replaces_an_earlier_one_and_never_the_reverse(store: OwnerStore) -> None:
    running = query_event(query_id="q", status=QueryStatus.RUNNING)
    done = query_event(query_id="q", status=QueryStatus.FINISHED)
    assert upsert(store, done) == 1
    assert upsert(store, running) == 0
    assert stored(store) == {"q": "finished"}


def test_of_equal_revisions_the_newcomer_wins(store: OwnerStore) -> None:
    upsert(store, query_event(query_id="q", bytes_scanned=1))
    assert upsert(store, query_event(query_id="q", bytes_scanned=2)) == 1
    assert store.read("SELECT bytes_scanned AS b FROM query_event").to_pylist() == [{"b": 2}]


def test_a_difference_in_noise_alone_is_no_difference(store: OwnerStore) -> None:
    event = query_event()
    upsert(store, event)
    assert upsert(store, replace(event, collected_at=NOW + timedelta(hours=1))) == 0
    letter = dead_letter()
    store.upsert("dead_letter", to_arrow("dead_letter", [letter]))
    again = replace(letter, seen_at=NOW + timedelta(days=1))
    assert store.upsert("dead_letter", to_arrow("dead_letter", [again])) == 0


def test_a_template_of_two_dialects_does_not_change_with_each_collection(
    store: OwnerStore,
) -> None:
    def template(dialect: str) -> pa.Table:
        row = {
            "template_id": "t",
            "dialect": dialect,
            "template": "SELECT ?",
            "statement_kind": "select",
            "seen_at": NOW,
        }
        return pa.Table.from_pylist([row])

    assert store.upsert("query_template", template("trino")) == 1
    assert store.upsert("query_template", template("spark")) == 0


@pytest.mark.slow
def test_null_and_value_are_different_and_null_and_null_are_not(store: OwnerStore) -> None:
    upsert(store, query_event(query_id="q", bytes_scanned=None, tags=()))
    assert upsert(store, query_event(query_id="q", bytes_scanned=None, tags=())) == 0
    assert upsert(store, query_event(query_id="q", bytes_scanned=0, tags=())) == 1
    assert upsert(store, query_event(query_id="q", bytes_scanned=0, tags=("a",))) == 1


def test_inside_one_batch_the_highest_revision_then_the_last_wins(store: OwnerStore) -> None:
    written = upsert(
        store,
        query_event(query_id="a", status=QueryStatus.FAILED, error_class="first"),
        query_event(query_id="a", status=QueryStatus.FAILED, error_class="last"),
        query_event(query_id="a", status=QueryStatus.RUNNING),
        query_event(query_id="b", status=QueryStatus.QUEUED),
    )
    assert written == 2
    rows = store.read("SELECT query_id, error_class FROM query_event ORDER BY 1").to_pylist()
    assert [row["error_class"] for row in rows] == ["last", None]


def test_a_table_whose_columns_are_all_key_takes_each_row_once(store: OwnerStore) -> None:
    usage = pa.table(
        {
            "template_id": ["t", "t", "t"],
            "table_name": ["x", "x", "x"],
            "column_name": ["a", "a", "b"],
            "role": ["join", "join", "join"],
        }
    )
    assert store.upsert("column_usage", usage) == 2
    assert store.upsert("column_usage", usage) == 0


def test_an_empty_batch_changes_nothing(store: OwnerStore) -> None:
    assert upsert(store) == 0


@pytest.mark.slow
def test_a_batch_larger_than_one_slice_is_written_once(
    store: OwnerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SLICE_ROWS", 7)
    events = [query_event() for _ in range(50)]
    assert upsert(store, *events) == 50
    assert upsert(store, *events, query_event()) == 1


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        ("nope", {"a": [1]}, "no table 'nope'"),
        ("watermark", {"source": ["s"], "colour": ["red"]}, "no column colour"),
        ("watermark", {"position": ["p"]}, "lacks column source, updated_at"),
        ("watermark", {"source": [None], "position": ["p"], "updated_at": [NOW]}, "source must"),
        ("watermark", {"source": ["s"], "position": [None], "updated_at": [NOW]}, "position must"),
        (
            "watermark",
            {"source": ["s"], "position": ["p"], "updated_at": [NOW.replace(tzinfo=None)]},
            "updated_at has times without a zone",
        ),
        ("watermark", {"source": ["s"], "position": ["p"], "updated_at": ["soon"]}, "updated_at"),
    ],
)
def test_a_wrong_batch_is_refused_with_its_column_named_and_nothing_is_written(
    store: OwnerStore, table: str, columns: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        store.upsert(table, pa.table(columns))
    assert store.read("SELECT count(*) AS n FROM watermark").to_pylist() == [{"n": 0}]


def test_columns_may_be_missing_reordered_or_of_a_kindred_type(store: OwnerStore) -> None:
    rows = pa.table(
        {
            "updated_at": pa.array([NOW], pa.timestamp("ns", tz="Europe/Oslo")),
            "position": pa.array(["p"]).dictionary_encode(),
            "source": pa.array(["s"], pa.large_string()),
        }
    )
    assert store.upsert("watermark", rows) == 1
    found = store.read("SELECT * FROM watermark").to_pylist()
    assert found == [{"source": "s", "position": "p", "event_at": None, "updated_at": NOW}]


def test_a_column_twice_is_refused(store: OwnerStore) -> None:
    rows = to_arrow("watermark", [watermark()])
    with pytest.raises(StoreError, match="column source more than once"):
        store.upsert("watermark", rows.append_column("source", rows.column("source")))


def test_wide_types_survive(store: OwnerStore) -> None:
    metrics = table_metrics(file_size_histogram=(2**62, 0, 1), skew=float("inf"))
    rows = to_arrow("table_metrics", [metrics])
    store.upsert("table_metrics", rows)
    assert store.upsert("table_metrics", rows) == 0
    assert store.read("SELECT skew, file_size_histogram AS h FROM table_metrics").to_pylist() == [
        {"skew": float("inf"), "h": [2**62, 0, 1]}
    ]


@pytest.mark.slow
def test_threads_may_write_and_read_at_once(store: OwnerStore) -> None:
    failures: list[BaseException] = []

    def work(engine: str) -> None:
        try:
            for number in range(20):
                upsert(
                    store,
                    query_event(engine_id=EngineId(engine), query_id=str(number)),
                    query_event(engine_id=EngineId("shared"), query_id=str(number)),
                )
                store.read("SELECT count(*) FROM query_event")
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"e{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    count = store.read(
        "SELECT count(*) AS n, count(DISTINCT (engine_id, query_id)) AS d FROM query_event"
    )
    assert count.to_pylist() == [{"n": 100, "d": 100}]


def test_the_owner_reads_one_select_and_nothing_else(store: OwnerStore) -> None:
    for sql in ("DELETE FROM engine", "SELECT 1; SELECT 2", "SET threads = 1", ""):
        with pytest.raises(StoreError):
            store.read(sql)
    with pytest.raises(StoreError, match=r"nope.*SELECT nope FROM engine"):
        store.read("SELECT nope FROM engine")


# --- properties --------------------------------------------------------------------------------

EVENTS = st.builds(
    query_event,
    engine_id=st.sampled_from([EngineId("duckdb"), EngineId("trino")]),
    query_id=st.sampled_from(["1", "2", "3", "4"]),
    status=st.sampled_from(list(QueryStatus)),
    # Equal key and revision carry equal facts, as in any history: else the last writer wins.
    bytes_scanned=st.just(7),
    sql_text=st.just("SELECT 1"),
)
BATCHES = st.lists(st.lists(EVENTS, max_size=6), max_size=5)


def facts(event: QueryEvent) -> QueryEvent:
    """What an event says given its key and revision: one final state per key."""
    status = event.status
    if status.revision == 2:
        status = QueryStatus.FINISHED if event.query_id < "3" else QueryStatus.FAILED
    return replace(event, status=status, started_at=None, ended_at=None, elapsed_ms=None,
                   execution_ms=None, rows_returned=None)  # fmt: skip


@pytest.fixture(scope="module")
def scratch() -> Iterator[OwnerStore]:
    folder = Path(tempfile.mkdtemp(prefix="store-"))
    with new_store(folder) as opened:
        yield opened
    shutil.rmtree(folder)


def table_after(store: OwnerStore, deliveries: Sequence[Sequence[QueryEvent]]) -> pa.Table:
    store.transact("query_event", ["DELETE FROM query_event"])
    for events in deliveries:
        upsert(store, *events)
    return store.read(ALL)


@pytest.mark.slow
@settings(max_examples=10)
@given(data=st.data(), deliveries=BATCHES)
def test_any_order_and_repetition_of_batches_gives_the_same_table(
    scratch: OwnerStore, data: st.DataObject, deliveries: list[list[QueryEvent]]
) -> None:
    first = [[facts(event) for event in events] for events in deliveries]
    repeated = data.draw(st.lists(st.sampled_from(first), max_size=4)) if first else []
    second = data.draw(st.permutations(first + repeated))
    expected: dict[tuple[str, str], int] = {}
    for event in (event for events in first for event in events):
        key = (event.engine_id, event.query_id)
        expected[key] = max(expected.get(key, 0), event.revision)
    straight = table_after(scratch, first)
    assert table_after(scratch, second).equals(straight)
    rows = straight.to_pylist()
    assert {(row["engine_id"], row["query_id"]): row["revision"] for row in rows} == expected
    assert len(rows) == len(expected)


def test_every_table_takes_what_its_own_read_returns(store: OwnerStore) -> None:
    upsert(store, query_event(tags=("a",), snapshot_ids=(1,)))
    for name in TABLES:
        assert store.upsert(name, store.read(f"SELECT * FROM {name}")) == 0  # noqa: S608 known names

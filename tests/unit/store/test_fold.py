"""One row per query: what the gateway and the engine say becomes one row, in any order."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.tables import QUERY_FOLD as FOLD
from tests.factories import NOW
from tests.stores import new_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.duckdb

ALL = "SELECT * EXCLUDE (collected_at) FROM query_event ORDER BY engine_id, query_id"
TRINO = EngineId("trino")


def report(query_id: str, status: QueryStatus, **more: Any) -> QueryEvent:
    """A report that knows nothing but what is given."""
    values: dict[str, Any] = {"engine_id": TRINO, "submitted_at": NOW, "collected_at": NOW, **more}
    return QueryEvent(query_id=query_id, status=status, **values)


PROVISIONAL = report(
    "gw-1",
    QueryStatus.RUNNING,
    reporter="gateway",
    gateway_id="gw-1",
    user_name="ana",
    source="console",
    tags=("team=bi",),
    sql_text="SELECT a::int FROM t",
    translated_sql="SELECT CAST(a AS integer) FROM t",
    dialect="postgres",
)
OF_THE_ENGINE = report(
    "20261116_1",
    QueryStatus.FINISHED,
    gateway_id="gw-1",
    user_name="service",
    sql_text="SELECT CAST(a AS integer) FROM t",
    dialect="trino",
    bytes_scanned=1_000,
    cpu_ms=12.0,
)


def upsert(store: OwnerStore, *events: QueryEvent) -> int:
    return store.upsert("query_event", to_arrow("query_event", events))


def only_row(store: OwnerStore) -> dict[str, Any]:
    (row,) = store.read("FROM query_event").to_pylist()
    return dict(row)


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 1, 0)])
def test_the_gateways_row_and_the_engines_become_one(
    store: OwnerStore, order: tuple[int, ...]
) -> None:
    for number in order:
        upsert(store, (PROVISIONAL, OF_THE_ENGINE)[number])
    row = only_row(store)
    assert (row["query_id"], row["gateway_id"], row["status"]) == ("20261116_1", "gw-1", "finished")
    assert (row["user_name"], row["source"], row["tags"]) == ("ana", "console", ["team=bi"])
    assert (row["sql_text"], row["dialect"]) == ("SELECT a::int FROM t", "postgres")
    assert row["translated_sql"] == "SELECT CAST(a AS integer) FROM t"
    assert (row["bytes_scanned"], row["cpu_ms"]) == (1_000, 12.0)


def test_both_in_one_batch_are_one_row(store: OwnerStore) -> None:
    assert upsert(store, PROVISIONAL, OF_THE_ENGINE) == 1
    assert upsert(store, OF_THE_ENGINE, PROVISIONAL) == 0
    assert only_row(store)["user_name"] == "ana"


def test_the_gateway_learns_the_engines_id_itself(store: OwnerStore) -> None:
    upsert(store, PROVISIONAL)
    upsert(store, replace(PROVISIONAL, query_id="20261116_1"))
    assert only_row(store)["query_id"] == "20261116_1"
    upsert(store, replace(PROVISIONAL, status=QueryStatus.CANCELLED))
    assert only_row(store)["status"] == "cancelled"


def test_another_engine_with_the_same_gateway_id_keeps_its_own_row(store: OwnerStore) -> None:
    upsert(store, PROVISIONAL, replace(PROVISIONAL, engine_id=EngineId("spark")))
    upsert(store, OF_THE_ENGINE)
    rows = store.read("SELECT engine_id, query_id FROM query_event ORDER BY 1").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("spark", "gw-1"), ("trino", "20261116_1")]


def test_queries_that_share_a_trace_token_stay_apart(store: OwnerStore) -> None:
    for number in range(3):
        upsert(store, replace(OF_THE_ENGINE, query_id=f"q{number}", bytes_scanned=number))
    rows = store.read("SELECT query_id, bytes_scanned AS b FROM query_event ORDER BY 1").to_pylist()
    assert [row["b"] for row in rows] == [0, 1, 2]


def test_a_guess_gives_way_to_a_report_of_the_same_stage(store: OwnerStore) -> None:
    lost = report(
        "q", QueryStatus.FAILED, reporter="inferred", error_class="history_lost", cpu_ms=1.0
    )
    pushed = report("q", QueryStatus.FINISHED, reporter="listener", bytes_scanned=7)
    for events in ((lost, pushed), (pushed, lost)):
        store.transact("query_event", ["DELETE FROM query_event"])
        for event in events:
            upsert(store, event)
        row = only_row(store)
        assert (row["status"], row["error_class"]) == ("finished", None)
        assert (row["bytes_scanned"], row["cpu_ms"]) == (7, 1.0)


def test_the_listeners_exact_figure_wins_over_the_rounded_one(store: OwnerStore) -> None:
    pulled = report("q", QueryStatus.FINISHED, cpu_ms=72_600.0, rows_written=3)
    pushed = report("q", QueryStatus.FINISHED, reporter="listener", cpu_ms=72_513.0)
    upsert(store, pushed)
    upsert(store, pulled)
    row = only_row(store)
    assert (row["cpu_ms"], row["rows_written"], row["reporter"]) == (72_513.0, 3, "listener")


def test_a_row_from_before_the_column_existed_counts_as_history(store: OwnerStore) -> None:
    rows = to_arrow("query_event", [report("q", QueryStatus.FINISHED, cpu_ms=5.0)])
    store.upsert("query_event", rows.drop_columns(["reporter", "known_by"]))
    upsert(store, report("q", QueryStatus.FINISHED, reporter="inferred", cpu_ms=9.0))
    assert only_row(store)["cpu_ms"] == 5.0


# --- properties ------------------------------------------------------------------------------

ENGINES = ("trino", "spark")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "user_name": st.sampled_from([None, "ana", "bob"]),
    "sql_text": st.sampled_from([None, "SELECT 1", "SELECT 2"]),
    "tags": st.sampled_from([(), ("a",), ("b", "c")]),
    "bytes_scanned": st.sampled_from([None, 0, 5, 7]),
    "cpu_ms": st.sampled_from([None, 0.5, 2.0]),
    "error_class": st.sampled_from([None, "user_error"]),
    "ended_at": st.sampled_from([None, NOW]),
    "snapshot_ids": st.sampled_from([(), (1,), (2, 3)]),
}


@st.composite
def reports(draw: st.DrawFn) -> QueryEvent:
    """A report about one of four queries; the gateway may know the query by its own id only."""
    number = draw(st.integers(0, 1))
    reporter = draw(st.sampled_from(FOLD.reporters))
    is_provisional = reporter == "gateway" and draw(st.booleans())
    gateway_id = f"gw-{number}"
    event = report(
        gateway_id if is_provisional else f"q-{number}",
        draw(st.sampled_from(list(QueryStatus))),
        reporter=reporter,
        gateway_id=gateway_id,
        **{name: draw(values) for name, values in VALUES.items()},
    )
    return replace(event, engine_id=EngineId(draw(st.sampled_from(ENGINES))))


@pytest.fixture(scope="module")
def scratch() -> Iterator[OwnerStore]:
    folder = Path(tempfile.mkdtemp(prefix="store-"))
    with new_store(folder) as opened:
        yield opened
    shutil.rmtree(folder)


def table_after(store: OwnerStore, deliveries: Sequence[Sequence[QueryEvent]]) -> Any:
    store.transact("query_event", ["DELETE FROM query_event"])
    for events in deliveries:
        upsert(store, *events)
    return store.read(ALL)


def expected_value(events: Sequence[QueryEvent], name: str) -> Any:
    """The rule, spelt out for one column of one query."""
    best: tuple[int, int] = (-1, -1)
    candidates: list[Any] = []
    for event in events:
        value = getattr(event, name)
        is_none = value is None or value == ()
        known_none = name in FOLD.outcome and event.status is QueryStatus.FINISHED
        if is_none and not known_none:
            continue
        stage = event.revision
        if name in FOLD.gateway and event.reporter == "gateway":
            stage += 10
        rank = (stage, FOLD.reporters.index(event.reporter))
        if rank > best:
            best, candidates = rank, []
        if rank == best:
            candidates.append(value)
    if not candidates:
        return None
    if any(value is None for value in candidates):
        return None
    return max(candidates)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(data=st.data(), sent=st.lists(reports(), min_size=1, max_size=7))
def test_order_repetition_and_batching_of_reports_do_not_matter(
    scratch: OwnerStore, data: st.DataObject, sent: list[QueryEvent]
) -> None:
    one_by_one = table_after(scratch, [[event] for event in sent])
    again = data.draw(st.permutations(sent + data.draw(st.lists(st.sampled_from(sent)))))
    cut = data.draw(st.integers(0, len(again)))
    assert table_after(scratch, [again[:cut], again[cut:]]).equals(one_by_one)
    assert upsert(scratch, *sent) == 0

    things: dict[tuple[str, str], list[QueryEvent]] = {}
    for event in sent:
        things.setdefault((event.engine_id, str(event.gateway_id)), []).append(event)
    rows = {(row["engine_id"], row["gateway_id"]): row for row in one_by_one.to_pylist()}
    assert len(rows) == one_by_one.num_rows
    assert rows.keys() == things.keys()
    for key, events in things.items():
        row = rows[key]
        ids = {event.query_id for event in events if event.query_id != event.gateway_id}
        assert row["query_id"] == next(iter(ids), key[1])
        assert row["revision"] == max(event.revision for event in events)
        for name in (*VALUES, "status"):
            found = tuple(row[name] or ()) or None if name in FOLD.lists else row[name]
            assert found == expected_value(events, name), name


def test_every_column_is_weighed_or_named_as_an_exception() -> None:
    names = {field.name for field in fields(QueryEvent)}
    assert {*FOLD.gateway, *FOLD.outcome, *FOLD.lists} <= names

"""The store port: one behaviour, whether the store is in this process or behind Quack."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, query_event, table_health, unique

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.domain.query import QueryEvent
    from lakehouse_core.store.port import TelemetryStore
    from tests.integration.store.conftest import OwnerProcess

pytestmark = pytest.mark.duckdb


@pytest.fixture(params=["owner", "client"])
def store(
    request: pytest.FixtureRequest, served: OwnerProcess, tmp_path: Path
) -> Iterator[TelemetryStore]:
    """The same port twice; tests use engine ids of their own, because one store is shared."""
    opened = OwnerStore.at(tmp_path) if request.param == "owner" else served.client("writer")
    with opened:
        yield opened


@pytest.fixture
def engine() -> EngineId:
    return EngineId(unique("engine"))


def upsert(store: TelemetryStore, *events: QueryEvent) -> int:
    return store.upsert("query_event", to_arrow("query_event", events))


def rows_of(store: TelemetryStore, engine: EngineId) -> list[dict[str, Any]]:
    found = store.read("SELECT * FROM query_event WHERE engine_id = $engine", engine=engine)
    return list(found.to_pylist())


def test_rows_come_back_as_they_were_sent(store: TelemetryStore, engine: EngineId) -> None:
    event = query_event(
        engine_id=engine,
        sql_text="SELECT 'it''s \"quoted\"' -- é😀\n;",
        tags=("a", ""),
        snapshot_ids=(2**62,),
        submitted_at=datetime(2026, 11, 16, 1, 2, 3, 456_789, tzinfo=UTC),
        cpu_ms=math.inf,
    )
    assert upsert(store, event) == 1
    assert rows_of(store, engine) == to_arrow("query_event", [event]).to_pylist()


def test_counts_tell_what_was_new_or_different(store: TelemetryStore, engine: EngineId) -> None:
    events = [query_event(engine_id=engine) for _ in range(5)]
    assert upsert(store, *events) == 5
    assert upsert(store, *events) == 0
    changed = replace(events[0], bytes_scanned=8 * 2**20)
    assert upsert(store, changed, *events[1:], query_event(engine_id=engine)) == 2
    assert len(rows_of(store, engine)) == 6


def test_revision_noise_and_doubles_follow_the_table(
    store: TelemetryStore, engine: EngineId
) -> None:
    done = query_event(engine_id=engine, query_id="q")
    running = query_event(engine_id=engine, query_id="q", status=QueryStatus.RUNNING)
    assert upsert(store, running, done, running) == 1
    assert upsert(store, running) == 0
    assert upsert(store, replace(done, collected_at=NOW + timedelta(days=1))) == 0
    assert [row["status"] for row in rows_of(store, engine)] == ["finished"]


def test_structures_arrive_as_json(store: TelemetryStore) -> None:
    verdict = table_health(table_id=unique("lake.demo.t"))
    store.upsert("health", to_arrow("health", [verdict]))
    found = store.read(
        "SELECT contributors ->> '$[0].rule' AS rule FROM health WHERE table_id = $id",
        id=verdict.table_id,
    )
    assert found.to_pylist() == [{"rule": "small_file_share"}]


def test_parameters_of_every_kind_are_understood(store: TelemetryStore) -> None:
    values: dict[str, Any] = {
        "text": "it's; DROP TABLE engine --\0é",
        "number": -(2**62),
        "amount": Decimal("12.340000001"),
        "share": 0.1,
        "flag": True,
        "nothing": None,
        "moment": NOW,
        "texts": ["a", "b'"],
    }
    names = ", ".join(f"${name} AS {name}" for name in values)
    assert store.read(f"SELECT {names}", **values).to_pylist() == [values]


def test_an_empty_answer_keeps_its_columns(store: TelemetryStore) -> None:
    found = store.read("SELECT query_id, submitted_at FROM query_event WHERE false")
    assert found.schema.names == ["query_id", "submitted_at"]
    assert found.schema.field("submitted_at").type == pa.timestamp("us", tz="UTC")
    assert found.num_rows == 0


def test_a_large_answer_arrives_whole(store: TelemetryStore) -> None:
    found = store.read("SELECT range AS i, md5(range::VARCHAR) AS t FROM range(100000) ORDER BY i")
    assert found.column("i").to_pylist() == list(range(100_000))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nope FROM query_event", "nope"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEC 1", "SELEC 1"),
        ("DELETE FROM query_event", "DELETE FROM query_event"),
        ("SELECT 1; SELECT 2", "SELECT 1; SELECT 2"),
        ("SELECT $missing", "missing"),
        ("SELECT 'x'::INTEGER", "x"),
    ],
)
def test_a_wrong_statement_is_named(store: TelemetryStore, sql: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        store.read(sql)


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        ("nope", pa.table({"a": [1]}), "no table 'nope'"),
        ("query_event", pa.table({"colour": ["red"]}), "no column colour"),
        ("query_event", pa.table({"engine_id": ["e"]}), "lacks column query_id"),
    ],
)
def test_a_wrong_batch_is_named(
    store: TelemetryStore, table: str, rows: pa.Table, message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        store.upsert(table, rows)

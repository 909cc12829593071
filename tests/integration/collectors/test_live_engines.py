"""What real engines ran is in the store, once, with what they said about it."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from agents.collect import CollectReport, run_once
from collectors.registry import build_source
from lakehouse_core.bootstrap import open_engine
from lakehouse_core.catalog.loader import open_catalog
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import EngineError, QueryCancelledError, QueryFailedError
from lakehouse_core.engines.base import Statement
from lakehouse_core.store.owner import OwnerStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.engines.base import Engine

PATIENCE_SECONDS = 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerStore]:
    with OwnerStore.at(tmp_path / "store") as opened:
        yield opened


class Bench:
    """An engine, its source, and a store: run something, then look what is known about it."""

    def __init__(self, config: Config, name: str, store: OwnerStore) -> None:
        self.config = config
        self.name = name
        self.store = store
        self.engine: Engine = open_engine(config, name)
        self.source = build_source(name, config, store)
        self.namespace = f"collected_{uuid4().hex[:8]}"

    def run(self, sql: str, **more: Any) -> str:
        return self.engine.execute(Statement(sql=sql, user="ana", **more)).query_id

    def fail(self, sql: str) -> EngineError:
        with pytest.raises(QueryFailedError) as caught:
            self.run(sql)
        return caught.value

    def collect(self) -> CollectReport:
        report = run_once(self.source, self.store, utc_now, timeout=timedelta(minutes=1))
        assert report.error is None
        assert report.dead_letters == 0
        return report

    def events(self) -> dict[str, dict[str, Any]]:
        rows = self.store.read("FROM query_event").to_pylist()
        found = {row["query_id"]: row for row in rows}
        assert len(found) == len(rows)
        return found

    def final(self, query_id: str) -> dict[str, Any]:
        """Collect until the query is over: engines write their history a bit later."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.collect()
            event = self.events().get(query_id)
            if event is not None and event["revision"] == 2:
                return event
            assert time.monotonic() < deadline, f"{query_id} is {event}"
            threading.Event().wait(0.2)


@pytest.fixture(
    params=[
        pytest.param("spark", marks=pytest.mark.spark),
        pytest.param("trino", marks=pytest.mark.trino),
    ]
)
def bench(request: pytest.FixtureRequest, store: OwnerStore) -> Iterator[Bench]:
    name = request.param
    config: Config = request.getfixturevalue(f"{name}_server")
    made = Bench(config, name, store)
    make_namespace(config, made.namespace)
    yield made
    made.engine.close()


def make_namespace(config: Config, name: str) -> None:
    """Through pyiceberg, which also creates the catalog's own tables; Trino does not."""
    with closing(open_catalog("lake", config.catalogs["lake"]).iceberg()) as catalog:
        catalog.create_namespace(name)


def test_what_an_engine_ran_is_in_the_store_once(bench: Bench) -> None:
    table = f"lake.{bench.namespace}.t"
    created = bench.run(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS v")
    inserted = bench.run(f"INSERT INTO {table} VALUES (2, 'b'), (3, 'c')")  # noqa: S608 ours
    query = f"SELECT v FROM {table} WHERE id > 1"  # noqa: S608 a name of ours
    selected = bench.run(query, source="dashboard", tags=("team=bi",), gateway_id="gw-7")
    failed = bench.fail(f"SELECT nothing FROM {table}")  # noqa: S608 as above
    event = bench.final(selected)
    assert (event["status"], event["sql_text"]) == ("finished", query)
    assert (event["user_name"], event["source"], event["tags"]) == ("ana", "dashboard", ["team=bi"])
    assert event["gateway_id"] == "gw-7"
    assert event["rows_returned"] == 2
    assert event["bytes_scanned"] > 0
    assert event["cpu_ms"] is not None
    assert event["statement_kind"] == "select"
    assert len(event["snapshot_ids"]) == 1
    assert event["submitted_at"] <= event["ended_at"]
    assert bench.final(inserted)["rows_written"] == 2
    assert bench.final(created)["statement_kind"] == "create"
    assert failed.query_id is not None
    broken = bench.final(failed.query_id)
    assert (broken["status"], broken["error_class"]) == ("failed", "user_error")
    assert broken["error_code"] == failed.code
    ours = [e for e in bench.events().values() if bench.namespace in (e["sql_text"] or "")]
    assert len(ours) == 4
    usage = bench.store.read(
        "SELECT column_name, role FROM column_usage WHERE template_id = $id ORDER BY ALL",
        id=event["template_id"],
    ).to_pylist()
    assert [(u["column_name"], u["role"]) for u in usage] == [
        ("id", "filter_range"),
        ("v", "project"),
    ]


def test_the_snapshot_read_is_the_one_the_table_was_at(bench: Bench) -> None:
    table = f"lake.{bench.namespace}.s"
    bench.run(f"CREATE TABLE {table} AS SELECT 1 AS id")
    selected = bench.run(f"SELECT * FROM {table} WHERE id = 1")  # noqa: S608 a name of ours
    with closing(open_catalog("lake", bench.config.catalogs["lake"]).iceberg()) as catalog:
        snapshot = catalog.load_table((bench.namespace, "s")).current_snapshot()
    assert snapshot is not None
    assert bench.final(selected)["snapshot_ids"] == [snapshot.snapshot_id]


def test_a_query_is_seen_while_it_runs_and_as_cancelled_afterwards(bench: Bench) -> None:
    slow = {
        "spark": "SELECT count(*) FROM range(0, 400000000000, 1, 1) WHERE hash(id) = 1",
        "trino": "SELECT count(*) FROM UNNEST(sequence(1, 9000)) a(x), UNNEST(sequence(1, 9000)) "
        "b(y), UNNEST(sequence(1, 9000)) c(z) WHERE x * y + z = 7",
    }[bench.name]
    outcome: list[EngineError] = []

    def run() -> None:
        try:
            bench.run(slow, gateway_id="gw-slow")
        except EngineError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        running: list[dict[str, Any]] = []
        while not running:
            bench.collect()
            running = [e for e in bench.events().values() if e["gateway_id"] == "gw-slow"]
            assert time.monotonic() < deadline
            threading.Event().wait(0.2)
        assert running[0]["status"] in ("queued", "running")
        assert running[0]["ended_at"] is None
    finally:
        bench.engine.cancel("gw-slow")
        thread.join(PATIENCE_SECONDS)
    assert isinstance(outcome[0], QueryCancelledError)
    assert bench.final(running[0]["query_id"])["status"] == "cancelled"


def test_collecting_while_the_engine_works_loses_and_doubles_nothing(bench: Bench) -> None:
    ids: list[str] = []
    stop = threading.Event()

    def work() -> None:
        try:
            ids.extend(bench.run(f"SELECT {n} AS n", source="busy") for n in range(12))
        finally:
            stop.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not stop.is_set():
        bench.collect()
    thread.join()
    for query_id in ids:
        assert bench.final(query_id)["status"] == "finished"
    busy = [e for e in bench.events().values() if e["source"] == "busy"]
    assert sorted(e["query_id"] for e in busy) == sorted(ids)


@pytest.mark.spark
def test_duckdb_queries_reach_the_store_through_their_journal(
    spark_server: Config, store: OwnerStore
) -> None:
    spark = Bench(spark_server, "spark", store)
    make_namespace(spark_server, spark.namespace)
    table = f"lake.{spark.namespace}.t"
    spark.run(f"CREATE TABLE {table} AS SELECT id FROM range(10)")  # noqa: S608 ours
    bench = Bench(spark_server, "duckdb", store)
    query = f"SELECT count(*) AS n FROM {table} WHERE id > 3"  # noqa: S608 ours
    selected = bench.run(query, source="notebook", tags=("team=bi",), gateway_id="gw-1")
    failed = bench.fail("SELECT nothing FROM nowhere")
    event = bench.final(selected)
    assert (event["sql_text"], event["user_name"], event["source"]) == (query, "ana", "notebook")
    assert (event["tags"], event["gateway_id"]) == (["team=bi"], "gw-1")
    assert event["rows_returned"] == 1
    assert failed.query_id is not None
    assert bench.final(failed.query_id)["status"] == "failed"
    spark.engine.close()
    bench.engine.close()

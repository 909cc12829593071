"""A real Trino pushes its events to our gateway; what is pushed and what is pulled is one row."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn

from lakehouse_core.bootstrap import open_intakes
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import EngineError, QueryCancelledError
from lakehouse_core.gateway.app import Admin, create_app
from lakehouse_core.gateway.desk import Desk
from lakehouse_core.gateway.facts import FactsCache, read_facts
from lakehouse_core.gateway.ingest import Ingest
from lakehouse_core.store.owner import OwnerStore
from tests.integration.collectors.test_live_engines import Bench, make_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config

pytestmark = pytest.mark.trino

PATIENCE_SECONDS = 120
SLOW = (
    "SELECT count(*) FROM UNNEST(sequence(1, 9000)) a(x), UNNEST(sequence(1, 9000)) b(y), "
    "UNNEST(sequence(1, 9000)) c(z) WHERE x * y + z = 7"
)
# Trino's REST interface shows long durations with three digits; its events have them in full.
ROUNDED = ("queued_ms", "planning_ms", "cpu_ms")
OBSERVERS = ("reporter", "collected_at", "known_by")


class Gateway:
    """Our gateway's HTTP on its configured port, over a store of this process."""

    def __init__(self, config: Config, store: OwnerStore) -> None:
        intakes = open_intakes(config, store)
        ingest = Ingest(
            token=resolve_secret(config.gateway.ingest_token),
            trino=Desk(intakes.trino, store.upsert, 2**28),
            reports=Desk(intakes.reports, store.upsert, 2**28),
            most_bytes=config.gateway.ingest_max_body,
        )
        admin = Admin(
            facts=FactsCache(lambda: read_facts(store, utc_now), utc_now),
            engines=(),
            probe_every=timedelta(seconds=10),
            ingest=ingest,
        )
        port = config.gateway.admin_port
        settings = uvicorn.Config(
            create_app(admin), host="127.0.0.1", port=port, log_level="warning"
        )
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._server.started:
            assert time.monotonic() < deadline
            threading.Event().wait(0.05)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def pushed(tmp_path: Path) -> Iterator[OwnerStore]:
    with OwnerStore.at(tmp_path / "pushed") as opened:
        yield opened


@pytest.fixture
def bench(trino_server: Config, tmp_path: Path) -> Iterator[Bench]:
    with OwnerStore.at(tmp_path / "pulled") as pulled:
        made = Bench(trino_server, "trino", pulled)
        make_namespace(trino_server, made.namespace)
        yield made
        made.engine.close()


def final(store: OwnerStore, query_id: str) -> dict[str, Any]:
    """Wait until Trino has told the end of a query."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        rows = store.read("FROM query_event WHERE query_id = $id", id=query_id).to_pylist()
        if rows and rows[0]["revision"] == 2:
            return dict(rows[0])
        assert time.monotonic() < deadline, f"{query_id}: {rows}"
        threading.Event().wait(0.2)


def is_running(bench: Bench, gateway_id: str) -> bool:
    url = f"{bench.config.engines['trino'].url}/v1/query"
    listed = httpx.get(url, headers={"X-Trino-User": "ana"}, trust_env=False).json()
    states = [q["state"] for q in listed if q["session"].get("traceToken") == gateway_id]
    return states == ["RUNNING"]


def cancelled(bench: Bench) -> str:
    """A query that was stopped while it ran; one that is stopped before has fewer figures."""
    outcome: list[EngineError] = []

    def run() -> None:
        try:
            bench.run(SLOW, gateway_id="gw-pushed-slow")
        except EngineError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_running(bench, "gw-pushed-slow"):
        assert time.monotonic() < deadline
        threading.Event().wait(0.2)
    bench.engine.cancel("gw-pushed-slow")
    thread.join(PATIENCE_SECONDS)
    assert isinstance(outcome[0], QueryCancelledError)
    assert outcome[0].query_id is not None
    return outcome[0].query_id


def test_pushed_and_pulled_are_the_same_row(bench: Bench, pushed: OwnerStore) -> None:
    table = f"lake.{bench.namespace}.t"
    with closing(Gateway(bench.config, pushed)):
        ids = [
            bench.run(f"CREATE TABLE {table} AS SELECT 1 AS id, 'ü' AS v"),
            bench.run(f"INSERT INTO {table} VALUES (2, 'b'), (3, 'c')"),  # noqa: S608 ours
            bench.run(
                f"SELECT v FROM {table} WHERE id > 1",  # noqa: S608 ours
                source="dashboard",
                tags=("team=bi",),
                gateway_id="gw-pushed",
            ),
            str(bench.fail(f"SELECT nothing FROM {table}").query_id),  # noqa: S608 ours
            str(bench.fail("SELEC 1").query_id),
            str(bench.fail(f"SELECT 1 / (id - id) FROM {table}").query_id),  # noqa: S608 ours
            cancelled(bench),
        ]
        by_push = {query_id: final(pushed, query_id) for query_id in ids}
    assert [row["status"] for row in by_push.values()] == [
        *["finished"] * 3,
        *["failed"] * 3,
        "cancelled",
    ]
    assert by_push[ids[2]]["gateway_id"] == "gw-pushed"
    assert by_push[ids[1]]["bytes_written"] > 0
    assert {row["reporter"] for row in by_push.values()} == {"listener"}
    for query_id in ids:
        by_pull = bench.final(query_id)
        for name, value in by_pull.items():
            told = by_push[query_id][name]
            if name in OBSERVERS or (value is None and name in ("rows_written", "spilled_bytes")):
                continue
            if name in ROUNDED and value is not None:
                # Trino rounds to a millisecond before it pushes, and to three digits when asked.
                assert told == pytest.approx(value, rel=0.005, abs=1.0), (query_id, name)
            else:
                assert told == value, (query_id, name)


def test_what_is_pushed_while_the_gateway_is_away_arrives_later(
    bench: Bench, pushed: OwnerStore
) -> None:
    query_id = bench.run("SELECT 17 AS held")
    with closing(Gateway(bench.config, pushed)):
        assert final(pushed, query_id)["status"] == "finished"


def test_pull_after_push_adds_no_row_and_takes_no_figure_away(
    bench: Bench, pushed: OwnerStore
) -> None:
    with closing(Gateway(bench.config, pushed)):
        query_id = bench.run("SELECT 18 AS both", gateway_id="gw-both")
        before = final(pushed, query_id)
    bench.store = pushed
    assert bench.final(query_id) == bench.final(query_id)
    after = final(pushed, query_id)
    known = {name for name, value in before.items() if value is not None}
    assert {name: after[name] for name in known - {"collected_at"}} == {
        name: before[name] for name in known - {"collected_at"}
    }


def test_the_gateway_refuses_a_stranger(bench: Bench, pushed: OwnerStore) -> None:
    url = f"http://127.0.0.1:{bench.config.gateway.admin_port}/v1/ingest/trino"
    with closing(Gateway(bench.config, pushed)):
        assert httpx.post(url, content=b"{}", trust_env=False).status_code == 401
        wrong = {"Authorization": "Bearer guess"}
        assert httpx.post(url, content=b"{}", headers=wrong, trust_env=False).status_code == 403

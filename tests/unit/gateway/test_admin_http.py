"""/livez, /readyz and /metrics over a real store that holds known rows."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.errors import StoreUnavailableError
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.gateway.app import Admin, create_app
from lakehouse_core.gateway.facts import Facts, FactsCache, read_facts
from lakehouse_core.gateway.metrics import Steady, render
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, agent_run, engine_probe, query_event
from tests.stores import emptied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.applications import Starlette

    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.duckdb


class SilentStore:
    """A store whose owner is away."""

    def read(self, sql: str, **params: Any) -> Any:
        raise StoreUnavailableError("The owner of the store does not answer")

    def upsert(self, table: str, rows: Any) -> int:
        raise StoreUnavailableError("The owner of the store does not answer")

    def close(self) -> None:
        pass


class Http:
    """Requests to an application in an event loop of its own."""

    def __init__(self, app: Starlette) -> None:
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://gateway")

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Admin], Http]]:
    """Serve an application; closed at the end of the test."""
    with ExitStack() as stack:

        def start(admin: Admin) -> Http:
            return stack.enter_context(closing(Http(create_app(admin))))

        yield start


@pytest.fixture
def client(serve: Callable[[Admin], Http]) -> Callable[..., Http]:
    """Serve a store: `client(store, "duckdb")` waits for the probe of DuckDB."""

    def start(store: Any, *engines: str, seconds: Any = time.monotonic) -> Http:
        cache = FactsCache(lambda: read_facts(store, lambda: NOW), lambda: NOW, seconds)
        return serve(Admin(facts=cache, engines=engines, probe_every=timedelta(seconds=10)))

    return start


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    return emptied(shared_store)


def put(store: OwnerStore, table: str, *rows: object) -> None:
    store.upsert(table, to_arrow(table, rows))


def test_alive_is_not_ready(client: Callable[..., Http]) -> None:
    http = client(SilentStore(), "duckdb")
    assert http.get("/livez").json()["status"] == "alive"
    answer = http.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "unready",
        "reasons": {"store": "The owner of the store does not answer"},
    }


def test_ready_when_every_engine_has_been_looked_at_lately(
    store: OwnerStore, client: Callable[..., Http]
) -> None:
    http = client(store, "duckdb", "trino", seconds=iter(range(0, 1000, 100)).__next__)
    put(store, "engine_probe", engine_probe(engine_id=EngineId("duckdb")))
    assert http.get("/readyz").json()["reasons"] == {"trino": "not probed yet"}
    old = engine_probe(engine_id=EngineId("trino"), probed_at=NOW - timedelta(seconds=61))
    put(store, "engine_probe", old)
    assert http.get("/readyz").json()["reasons"] == {"trino": "last probed 61 s ago"}
    down = engine_probe(engine_id=EngineId("trino"), observed=ObservedState.UNHEALTHY)
    put(store, "engine_probe", down)
    answer = http.get("/readyz")  # an unhealthy engine is known: that is enough to be ready
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "reasons": {}})


def test_metrics_say_what_the_store_holds(store: OwnerStore, client: Callable[..., Http]) -> None:
    trino = EngineId("trino")
    put(
        store,
        "engine_probe",
        engine_probe(engine_id=EngineId("duckdb"), probed_at=NOW - timedelta(seconds=4)),
        engine_probe(engine_id=trino, probed_at=NOW - timedelta(seconds=9)),
        engine_probe(engine_id=trino, observed=ObservedState.UNHEALTHY),
    )
    put(
        store,
        "query_event",
        query_event(),
        query_event(),
        query_event(engine_id=trino, status=QueryStatus.FAILED),
        query_event(engine_id=trino, status=QueryStatus.RUNNING),
    )
    put(
        store,
        "agent_run",
        agent_run(agent="collect:trino", started_at=NOW - timedelta(seconds=30)),
        agent_run(agent="collect:trino", started_at=NOW, outcome="failed", error="down"),
        agent_run(agent="health"),
    )
    answer = client(store).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = set(answer.text.splitlines())
    assert lines >= {
        "lakehouse_store_up 1.0",
        'lakehouse_engine_up{engine="duckdb"} 1.0',
        'lakehouse_engine_up{engine="trino"} 0.0',
        'lakehouse_engine_probe_age_seconds{engine="duckdb"} 4.0',
        'lakehouse_queries_total{engine="duckdb",status="finished"} 2.0',
        'lakehouse_queries_total{engine="trino",status="failed"} 1.0',
        'lakehouse_collector_lag_seconds{collector="trino"} 30.0',
    }
    assert not any('status="running"' in line for line in lines)
    assert any(line.startswith("lakehouse_build_info{") for line in lines)


def test_openmetrics_for_those_who_ask(store: OwnerStore, client: Callable[..., Http]) -> None:
    accept = "application/openmetrics-text; version=1.0.0"
    answer = client(store).get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_without_the_store_nothing_is_made_up(client: Callable[..., Http]) -> None:
    text = client(SilentStore()).get("/metrics").text
    assert "lakehouse_store_up 0.0" in text.splitlines()
    assert "lakehouse_engine_up{" not in text
    assert "lakehouse_queries_total{" not in text


def test_counters_never_fall_when_old_rows_are_dropped() -> None:
    steady = Steady()
    key = ("trino", "finished")
    seen = [steady.update({key: count})[key] for count in (10, 12, 7, 9)]
    assert seen == [10, 12, 12, 14]
    assert steady.update({})[key] == 14  # everything dropped
    assert steady.update({key: 3})[key] == 17


def test_a_store_that_went_away_does_not_shake_the_counters() -> None:
    steady = Steady()
    up = Facts(read_at=NOW, queries={("trino", "finished"): 5})
    wanted = b'lakehouse_queries_total{engine="trino",status="finished"} 5.0'
    assert wanted in render(up, steady, "")[0]
    render(Facts(read_at=NOW, error="away"), steady, "")
    assert wanted in render(up, steady, "")[0]


def test_the_store_is_not_asked_for_every_request(
    store: OwnerStore, serve: Callable[[Admin], Http]
) -> None:
    readings = []

    def read() -> Facts:
        readings.append(1)
        return read_facts(store, lambda: NOW)

    now = [0.0]
    cache = FactsCache(read, lambda: NOW, lambda: now[0])
    admin = Admin(facts=cache, engines=(), probe_every=timedelta(seconds=10))
    http = serve(admin)
    for _ in range(5):
        http.get("/metrics")
    assert len(readings) == 1
    now[0] = 5.1
    http.get("/metrics")
    assert len(readings) == 2


def test_a_store_that_hangs_does_not_hang_the_gateway(serve: Callable[[Admin], Http]) -> None:
    release = threading.Event()

    def read() -> Facts:
        release.wait(30)
        return Facts(read_at=NOW)

    cache = FactsCache(read, lambda: NOW, answer_seconds=0.05)
    admin = Admin(facts=cache, engines=(), probe_every=timedelta(seconds=10))
    http = serve(admin)
    answer = http.get("/readyz")
    assert http.get("/livez").status_code == 200
    release.set()
    assert answer.status_code == 503
    assert "has not answered" in answer.json()["reasons"]["store"]


def test_errors_are_json_with_what_to_do(store: OwnerStore, client: Callable[..., Http]) -> None:
    http = client(store)
    missing = http.get("/nothing")
    assert missing.status_code == 404
    assert "/readyz" in missing.json()["error"]["message"]
    wrong = http.request("POST", "/livez")
    assert wrong.status_code == 405
    assert wrong.json()["error"]["message"] == "POST is not allowed on /livez; use GET"


def test_a_fault_of_ours_is_json_too_and_tells_no_secrets(serve: Callable[[Admin], Http]) -> None:
    def read() -> Facts:
        raise RuntimeError("token=abc")

    admin = Admin(
        facts=FactsCache(read, lambda: NOW), engines=(), probe_every=timedelta(seconds=10)
    )
    answer = serve(admin).get("/metrics")
    assert answer.status_code == 500
    assert "abc" not in answer.text
    assert answer.json()["error"]["status"] == 500

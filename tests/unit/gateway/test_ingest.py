"""The ingest over HTTP: token, limits, what is durable when it answers, and what it answers."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
import pytest

from lakehouse_core.bootstrap import open_intakes
from lakehouse_core.domain.errors import StoreError, StoreUnavailableError
from lakehouse_core.gateway.__main__ import BY_TEMPLATE
from lakehouse_core.gateway.app import Admin, create_app
from lakehouse_core.gateway.desk import Desk
from lakehouse_core.gateway.facts import FactsCache, read_facts
from lakehouse_core.gateway.ingest import Ingest
from lakehouse_core.gateway.intake import Delivery, Mapped, Verdict
from lakehouse_core.gateway.keeping import NewsOnly, SpoolKeeper
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.spool import Spool
from tests.factories import NOW, watermark
from tests.stores import emptied
from tests.unit.collectors.reports.test_reports import COMMIT, SCAN
from tests.unit.collectors.trino.test_listener import bodies, completed, to_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config import Config

pytestmark = pytest.mark.duckdb

TOKEN = "right-token"
AUTH = {"Authorization": f"Bearer {TOKEN}"}
MIB = 2**20


class Http:
    """Requests to an application in an event loop of its own."""

    def __init__(self, ingest: Ingest, store: Any) -> None:
        self._runner = asyncio.Runner()
        cache = FactsCache(lambda: read_facts(store, lambda: NOW), lambda: NOW)
        admin = Admin(facts=cache, engines=(), probe_every=timedelta(seconds=10), ingest=ingest)
        transport = httpx.ASGITransport(create_app(admin), raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://gateway")

    def post(self, path: str, content: Any, headers: Any = AUTH) -> httpx.Response:
        return self._runner.run(self._client.post(path, content=content, headers=headers))

    def post_all(self, path: str, contents: list[bytes]) -> list[httpx.Response]:
        async def send() -> list[httpx.Response]:
            return await asyncio.gather(
                *(self._client.post(path, content=one, headers=AUTH) for one in contents)
            )

        return self._runner.run(send())

    def get(self, path: str) -> httpx.Response:
        return self._runner.run(self._client.get(path))

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    return emptied(shared_store)


@pytest.fixture
def serve(demo_config: Config) -> Iterator[Callable[..., Http]]:
    """Serve the ingest on a store: `serve(store, memory=…)`."""
    with ExitStack() as stack:

        def start(store: Any, memory: int = 64 * MIB, answer: float = 30.0, **more: Any) -> Http:
            intakes = open_intakes(demo_config, store)
            ingest = Ingest(
                token=TOKEN,
                trino=Desk(more.pop("intake", intakes.trino), store.upsert, memory, answer),
                reports=Desk(intakes.reports, store.upsert, memory, answer),
                **{"most_bytes": 4 * MIB, **more},
            )
            return stack.enter_context(closing(Http(ingest, store)))

        yield start


def count(store: Any, table: str) -> int:
    answer = store.read(f"SELECT count(*) AS n FROM {table}")  # noqa: S608 a name of ours
    return int(answer.column("n")[0].as_py())


def test_events_are_in_the_store_when_they_are_answered(
    store: OwnerStore, serve: Callable[..., Http]
) -> None:
    http = serve(store)
    for number, body in enumerate(bodies()[:6]):
        answer = http.post("/v1/ingest/trino", body)
        assert (answer.status_code, answer.json()) == (200, {"accepted": 1, "dead_letters": 0})
        assert count(store, "query_event") <= number + 1
    for body in bodies():
        http.post("/v1/ingest/trino/trino", body)
    assert count(store, "query_event") == 15
    states = "SELECT DISTINCT status FROM query_event ORDER BY 1"
    assert [row["status"] for row in store.read(states).to_pylist()] == [
        "cancelled",
        "failed",
        "finished",
    ]
    assert count(store, "query_template") > 0


def test_requests_at_once_share_one_write(store: OwnerStore, serve: Callable[..., Http]) -> None:
    writes: list[str] = []

    class Counting:
        def upsert(self, table: str, rows: pa.Table) -> int:
            writes.append(table)
            return store.upsert(table, rows)

        def read(self, sql: str, **params: Any) -> pa.Table:
            return store.read(sql, **params)

        def close(self) -> None:
            pass

    http = serve(Counting())
    answers = http.post_all("/v1/ingest/trino", bodies() * 10)
    assert {answer.status_code for answer in answers} == {200}
    assert count(store, "query_event") == 15
    assert writes.count("query_event") < 10


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Basic eDp5"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer wrong"}, 403),
        ({"Authorization": f"Bearer {TOKEN}x"}, 403),
        ({"Authorization": "Bearer \xff".encode("latin-1")}, 403),
    ],
)
def test_without_the_token_nothing_is_taken(
    store: OwnerStore, serve: Callable[..., Http], headers: Any, status: int
) -> None:
    http = serve(store)
    for path in ("/v1/ingest/trino", "/v1/ingest/iceberg"):
        answer = http.post(path, bodies()[0], headers)
        assert answer.status_code == status
        assert TOKEN not in answer.text
    assert count(store, "query_event") == 0


def test_a_body_that_is_no_json_is_named(store: OwnerStore, serve: Callable[..., Http]) -> None:
    http = serve(store)
    answer = http.post("/v1/ingest/trino", b'{"metadata": {"queryId" "q"}}')
    assert answer.status_code == 400
    assert "byte" in answer.json()["error"]["message"]
    assert answer.json()["error"]["code"] == 400
    assert count(store, "dead_letter") == 0


def test_a_bad_event_in_a_good_request_is_a_dead_letter(
    store: OwnerStore, serve: Callable[..., Http]
) -> None:
    good, bad = completed()[:2]
    bad["createTime"] = "noon"
    answer = serve(store).post("/v1/ingest/trino", to_body([good, bad]))
    assert answer.json() == {"accepted": 1, "dead_letters": 1}
    (letter,) = store.read("SELECT source, reason FROM dead_letter").to_pylist()
    assert letter["source"] == "trino"
    assert "createTime" in letter["reason"]


def test_a_large_body_is_refused_before_it_is_read(
    store: OwnerStore, serve: Callable[..., Http]
) -> None:
    http = serve(store, most_bytes=1_000)
    answer = http.post("/v1/ingest/trino", b"x" * 1_001)
    assert answer.status_code == 413
    assert "ingest_max_body" in answer.json()["error"]["message"]

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 500

    assert http.post("/v1/ingest/trino", endless()).status_code == 413


def test_a_body_that_trickles_is_given_up(store: OwnerStore, serve: Callable[..., Http]) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    answer = serve(store, read_seconds=0.05).post("/v1/ingest/trino", slow())
    assert answer.status_code == 408


def test_more_than_memory_allows_is_sent_away_for_now(
    store: OwnerStore, serve: Callable[..., Http]
) -> None:
    http = serve(store, memory=1_000)
    answer = http.post("/v1/ingest/trino", b" " * 2_000)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    small = bodies()[0]
    assert http.post("/v1/ingest/trino", small).status_code == 200  # what was held is free again


class Away:
    """A store that takes nothing: no owner, no spool."""

    def __init__(self, error: StoreError) -> None:
        self._error = error

    def upsert(self, table: str, rows: pa.Table) -> int:
        raise self._error

    def read(self, sql: str, **params: Any) -> pa.Table:
        raise StoreUnavailableError("away")

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "error", [StoreUnavailableError("away"), StoreError("cannot be written to the spool")]
)
def test_what_is_not_durable_is_not_acknowledged(
    serve: Callable[..., Http], error: StoreError
) -> None:
    http = serve(Away(error))
    answer = http.post("/v1/ingest/trino", bodies()[0])
    assert answer.status_code == 503
    assert "retry-after" in answer.headers
    assert 'outcome="unavailable",source="trino"} 1.0' in http.get("/metrics").text


def test_a_store_that_hangs_is_not_waited_for(serve: Callable[..., Http]) -> None:
    release = threading.Event()

    class Hanging(Away):
        def upsert(self, table: str, rows: pa.Table) -> int:
            release.wait(30)
            return rows.num_rows

    http = serve(Hanging(StoreError("")), answer=0.05)
    answer = http.post("/v1/ingest/trino", bodies()[0])
    release.set()
    assert answer.status_code == 503


class Kept:
    """What the gateway process does with rows: into the spool, templates only when they are new."""

    def __init__(self, spool: Spool) -> None:
        self.upsert = NewsOnly(SpoolKeeper(spool), BY_TEMPLATE)

    def read(self, sql: str, **params: Any) -> pa.Table:
        raise StoreUnavailableError("away")


def test_events_wait_in_the_spool_until_the_owner_fetches_them(
    demo_config: Config, serve: Callable[..., Http]
) -> None:
    spool = Spool(demo_config.store.spool)
    http = serve(Kept(spool))
    for body in bodies():
        assert http.post("/v1/ingest/trino", body).status_code == 200
    assert http.post("/v1/ingest/iceberg", json.dumps(SCAN)).status_code == 200
    assert len(spool.pending("query_event")) == len(bodies())
    templates = len(spool.pending("query_template"))
    for body in bodies():
        http.post("/v1/ingest/trino", body)
    assert len(spool.pending("query_template")) == templates
    with OwnerStore.open(demo_config.store) as owner:
        assert count(owner, "query_event") == 15
        assert count(owner, "query_template") == 15
        assert count(owner, "scan_report") == 1
        assert not spool.pending()
        assert not spool.broken_files()


def test_a_spool_that_cannot_be_written_is_not_durable(
    tmp_path: Path, serve: Callable[..., Http]
) -> None:
    (tmp_path / "file").touch()
    http = serve(Kept(Spool(tmp_path / "file" / "spool")))
    for _ in range(2):
        answer = http.post("/v1/ingest/trino", bodies()[0])
        assert answer.status_code == 503
        assert "spool" in answer.json()["error"]["message"]


def test_templates_are_written_again_after_a_while() -> None:
    written: list[int] = []
    now = [0.0]
    news = NewsOnly(lambda _, rows: written.append(rows.num_rows), ("watermark",), lambda: now[0])
    rows = to_arrow("watermark", [watermark(source="a"), watermark(source="b")])
    now[0] = 1.0
    news("watermark", rows)
    news("watermark", rows)
    news("watermark", to_arrow("watermark", [watermark(source="a"), watermark(source="c")]))
    now[0] = 1_000.0
    news("watermark", rows)
    assert written == [2, 1, 2]


def test_one_delivery_that_spoils_a_batch_spoils_no_other(store: OwnerStore) -> None:
    class Odd:
        """An intake with a fault: rows of one delivery do not fit the store."""

        def map(self, deliveries: list[Delivery]) -> Mapped:
            names = [delivery.body.decode() for delivery in deliveries]
            position = [None if name == "odd" else "p" for name in names]
            rows = pa.table(
                {"source": names, "position": position, "updated_at": [NOW] * len(names)}
            )
            return Mapped(tuple(Verdict(accepted=1) for _ in names), {"watermark": rows})

    async def send() -> list[Verdict]:
        desk = Desk(Odd(), store.upsert, MIB)
        return await asyncio.gather(
            *(desk.take(Delivery({}, name)) for name in (b"a", b"odd", b"b"))
        )

    verdicts = asyncio.run(send())
    assert [verdict.accepted for verdict in verdicts] == [1, 0, 1]
    assert "position" in str(verdicts[1].refusal)
    assert count(store, "watermark") == 2


def test_a_delivery_that_makes_the_intake_fail_fails_no_other() -> None:
    written: list[str] = []

    class Falls:
        """An intake with a fault: one body makes it fall over."""

        def map(self, deliveries: list[Delivery]) -> Mapped:
            names = [delivery.body.decode() for delivery in deliveries]
            if "odd" in names:
                raise KeyError("odd")
            written.extend(names)
            return Mapped(tuple(Verdict(accepted=1) for _ in names))

    async def send() -> tuple[list[Verdict], Desk]:
        desk = Desk(Falls(), lambda _table, _rows: None, MIB)
        names = (b"a", b"b", b"odd", b"c")
        verdicts = await asyncio.gather(*(desk.take(Delivery({}, name)) for name in names))
        return [*verdicts, await desk.take(Delivery({}, b"later"))], desk

    verdicts, desk = asyncio.run(send())
    assert [verdict.accepted for verdict in verdicts] == [1, 1, 0, 1, 1]
    assert "KeyError" in str(verdicts[2].refusal)
    assert written == ["a", "b", "c", "later"]
    assert (desk.counts["accepted"], desk.counts["refused"]) == (4, 1)


def test_a_keeper_that_falls_over_is_no_end_of_the_desk() -> None:
    class Plain:
        def map(self, deliveries: list[Delivery]) -> Mapped:
            rows = to_arrow("watermark", [watermark()])
            return Mapped(tuple(Verdict(accepted=1) for _ in deliveries), {"watermark": rows})

    def fall(table: str, rows: pa.Table) -> None:
        raise OSError("no such device")

    async def send() -> Desk:
        desk = Desk(Plain(), fall, MIB)
        for _ in range(2):
            with pytest.raises(StoreError, match="not written"):
                await desk.take(Delivery({}, b"a"))
        return desk

    assert asyncio.run(send()).counts["unavailable"] == 2


@pytest.mark.parametrize(
    "path",
    [
        "/v1/namespaces/demo/tables/events/metrics",
        "/v1/lake/namespaces/demo/tables/events/metrics",
        "/v1/ingest/iceberg/v1/lake/namespaces/a%1Fb/tables/events/metrics",
    ],
)
def test_reports_come_the_way_rest_clients_send_them(
    store: OwnerStore, serve: Callable[..., Http], path: str
) -> None:
    http = serve(store)
    report = {**SCAN, "table-name": "rest.demo.events"}
    for body in (report, COMMIT, report):
        answer = http.post(path, json.dumps(body))
        assert (answer.status_code, answer.content) == (204, b"")
    (row,) = store.read("SELECT table_id FROM scan_report").to_pylist()
    expected = "lake.a.b.events" if "%1F" in path else "lake.demo.events"
    assert row["table_id"] == expected
    assert count(store, "commit_report") == 1


def test_errors_know_the_routes(store: OwnerStore, serve: Callable[..., Http]) -> None:
    http = serve(store)
    assert "/v1/ingest/trino" in http.get("/nothing").json()["error"]["message"]
    wrong = http.get("/v1/ingest/trino")
    assert wrong.status_code == 405
    assert wrong.json()["error"]["message"] == "GET is not allowed on /v1/ingest/trino; use POST"
    packed = http.post("/v1/ingest/trino", b"x", {**AUTH, "Content-Encoding": "gzip"})
    assert packed.status_code == 415
    many = http.post("/v1/ingest/trino/nope", bodies()[0])
    assert "known: trino" in many.json()["error"]["message"]


def test_metrics_count_what_was_pushed(store: OwnerStore, serve: Callable[..., Http]) -> None:
    http = serve(store)
    http.post("/v1/ingest/trino", bodies()[0])
    http.post("/v1/ingest/trino", b"{")
    lines = http.get("/metrics").text.splitlines()
    assert 'lakehouse_ingest_events_total{outcome="accepted",source="trino"} 1.0' in lines
    assert 'lakehouse_ingest_events_total{outcome="refused",source="trino"} 1.0' in lines

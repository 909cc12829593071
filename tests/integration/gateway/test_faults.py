"""Clients that go, results that are large, a store that is away, secrets in statements."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest
from trino.exceptions import TrinoUserError

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.maintenance import AuditEntry
from lakehouse_core.maintenance.audit import Head, verify_chain
from tests.integration.gateway.harness import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config import Config

pytestmark = [pytest.mark.duckdb, pytest.mark.slow]
ENDLESS = (
    "SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c "
    "WHERE a.l_comment || b.l_comment || c.l_comment LIKE '%never%'"
)
USER = {"X-Trino-User": "ana", "X-Trino-Catalog": "lake", "X-Trino-Schema": "tpch"}


@pytest.fixture
def fresh(duckdb_lake: Config, tmp_path: Path) -> Iterator[Gateway]:
    """A gateway of the test's own, with a spool of its own."""
    store = duckdb_lake.store.model_copy(update={"spool": tmp_path / "spool"})
    config = duckdb_lake.model_copy(update={"store": store})
    with closing(Gateway(config, tmp_path)) as gateway:
        yield gateway


def wait_for(what: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def flush(gateway: Gateway) -> None:
    recorder = gateway.port._parts.recorder
    gateway.run(recorder.close())
    recorder._is_closing.clear()


def running(gateway: Gateway) -> int:
    return gateway.port._parts.service.running


def begin(gateway: Gateway, sql: str) -> dict[str, Any]:
    # Announced, so that closing the connection is not taken for hanging up.
    headers = {**USER, "Connection": "close"}
    answer = httpx.post(
        f"{gateway.url}/v1/statement", content=sql, headers=headers, trust_env=False, timeout=30
    )
    page: dict[str, Any] = answer.json()
    return page


def test_cancel_stops_the_engine_and_is_recorded(fresh: Gateway) -> None:
    cursor = fresh.connect().cursor()
    failed: list[Exception] = []

    def run() -> None:
        try:
            cursor.execute(ENDLESS)
        except Exception as error:  # noqa: BLE001 looked at below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: fresh.port.front.open_queries == 1)
    wait_for(lambda: cursor._query is not None and cursor._query._request.next_uri)
    cursor.cancel()
    thread.join(30)
    wait_for(lambda: running(fresh) == 0)
    flush(fresh)
    (event,) = fresh.records("query_event")
    assert event["status"] == "cancelled"
    assert fresh.rows("SELECT 1") == [[1]]


def test_a_query_nobody_asks_for_is_stopped(fresh: Gateway) -> None:
    page = begin(fresh, ENDLESS)
    assert page["stats"]["state"] == "RUNNING"

    async def sweep() -> None:
        fresh.port.front.sweep_once(time.monotonic() + 301)

    fresh.run(sweep())
    wait_for(lambda: running(fresh) == 0)
    gone = httpx.get(page["nextUri"], headers=USER, trust_env=False)
    assert gone.status_code == 404
    flush(fresh)
    (event,) = fresh.records("query_event")
    assert (event["status"], "abandoned" in event["error_message"]) == ("cancelled", True)


def test_a_slow_reader_costs_a_bounded_buffer(fresh: Gateway) -> None:
    sql = "SELECT a.l_comment || b.l_comment AS text FROM lineitem a CROSS JOIN lineitem b"
    page = begin(fresh, sql)
    while "data" not in page:
        page = httpx.get(page["nextUri"], headers=USER, trust_env=False).json()
    process = psutil.Process()
    before = process.memory_info().rss
    for _ in range(5):
        page = httpx.get(page["nextUri"], headers=USER, trust_env=False, timeout=30).json()
        assert page["data"]
    (served,) = fresh.port.front._served.values()
    pipe = served.query._pipe  # type: ignore[union-attr]
    limit = fresh.config.gateway.sql.buffer_bytes + fresh.config.gateway.sql.page_bytes
    wait_for(lambda: pipe._held_bytes > 0)
    assert pipe._held_bytes <= limit
    assert process.memory_info().rss - before < 200 * 2**20
    httpx.delete(page["nextUri"], headers=USER, trust_env=False)
    wait_for(lambda: running(fresh) == 0)


def test_a_page_may_be_asked_for_again_but_not_an_older_one(fresh: Gateway) -> None:
    page = begin(fresh, "SELECT * FROM lineitem")
    first = page["nextUri"]
    once = httpx.get(first, headers=USER, trust_env=False).content
    assert httpx.get(first, headers=USER, trust_env=False).content == once
    uri = httpx.get(first, headers=USER, trust_env=False).json()["nextUri"]
    httpx.get(uri, headers=USER, trust_env=False)
    assert httpx.get(first, headers=USER, trust_env=False).status_code == 410


def test_without_the_store_queries_go_on_and_records_arrive_later(
    fresh: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = fresh.port._parts.recorder
    keep = recorder._keep

    def refuse(table: str, rows: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(recorder, "_keep", refuse)
    fresh.store.close()
    assert fresh.rows("SELECT 1") == [[1]]
    flush(fresh)
    assert recorder.waiting == 1
    monkeypatch.setattr(recorder, "_keep", keep)
    assert fresh.rows("SELECT 2") == [[2]]
    flush(fresh)
    assert [row["status"] for row in fresh.records("query_event")] == ["finished"] * 2


def test_secrets_of_a_statement_are_in_no_record(fresh: Gateway) -> None:
    secret = "hunter2canary"
    for sql in (
        f"SELECT n_name FROM nation WHERE password = '{secret}'",  # noqa: S608
        f"CREATE SECRET s (TYPE s3, SECRET '{secret}')",
    ):
        with pytest.raises(TrinoUserError):
            fresh.rows(sql)
    flush(fresh)
    for table in ("query_event", "routing_decision", "query_audit", "query_template"):
        assert not any(secret in repr(row) for row in fresh.records(table)), table


def test_the_audit_is_a_chain(fresh: Gateway) -> None:
    fresh.rows("SELECT 1")
    with pytest.raises(TrinoUserError):
        fresh.rows("DROP TABLE nation")
    fresh.rows("SELECT 2")
    flush(fresh)
    rows = sorted(fresh.records("query_audit"), key=lambda row: row["seq"])
    assert [row["verb"] for row in rows] == ["finished", "denied", "finished"]
    assert len({row.pop("chain") for row in rows}) == 1
    entries = [AuditEntry(**row) for row in rows]
    head = Head(seq=entries[-1].seq, hash=entries[-1].hash)
    assert verify_chain(entries, head).is_intact
    assert not verify_chain([entries[0], entries[2]], head).is_intact

"""Statements that a Trino serves, with a Trino that fails in every way it can."""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from trino.exceptions import TrinoQueryError

from tests.factories import free_port
from tests.integration.gateway.harness import Gateway
from tests.integration.gateway.mock_trino import MockTrino

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from tests.conftest import DemoConfig

pytestmark = [pytest.mark.duckdb, pytest.mark.slow]
SQL = "SELECT 1 AS x"


@pytest.fixture
def trinos() -> Iterator[tuple[MockTrino, MockTrino]]:
    with closing(MockTrino("a")) as first, closing(MockTrino("b")) as second:
        yield first, second


@pytest.fixture
def serve(
    trinos: tuple[MockTrino, MockTrino], load_demo_config: DemoConfig, tmp_path: Path
) -> Iterator[Callable[..., Gateway]]:
    """A gateway before both Trinos, the first one first."""
    started: list[Gateway] = []

    def start(**group: Any) -> Gateway:
        first, second = trinos
        config = load_demo_config(tmp_path, LAKEHELM__ENGINES__SPARK__ENABLED="false")
        config = _with_trinos(config, first.port, second.port, group)
        started.append(Gateway(config, tmp_path / f"gateway{len(started)}"))
        return started[-1]

    yield start
    for gateway in started:
        gateway.close()


def _with_trinos(config: Config, first: int, second: int, group: dict[str, Any]) -> Config:
    trino = config.engines["trino"]
    engines = {
        "trino-a": trino.model_copy(update={"port": first, "max_running": 2}),
        "trino-b": trino.model_copy(update={"port": second, "max_running": 2}),
    }
    kind = type(config.routing)
    routing = kind.model_validate(
        {
            "clusterGroups": {
                "both": {
                    "members": ["trino-a", "trino-b"],
                    "strategy": {"type": "failover"},
                    **group,
                }
            },
            "routingFallback": "both",
        }
    )
    roles = {"engineer": {"users": ["eve"], "statements": ["read", "write"]}, "analyst": {}}
    governance = type(config.governance).model_validate({"roles": roles})
    changed = {"engines": engines, "routing": routing, "governance": governance, "collect": {}}
    return config.model_copy(update=changed)


def wait_for(what: Callable[[], object], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def post(gateway: Gateway, sql: bytes = SQL.encode(), **headers: str) -> httpx.Response:
    given = {"X-Trino-User": "ana", **headers}
    return httpx.post(f"{gateway.url}/v1/statement", content=sql, headers=given, trust_env=False)


def test_rows_and_types_are_trinos_own(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino]
) -> None:
    gateway, (first, _) = serve(), trinos
    first.pages = [[["one"], ["two"]], [["three"]]]
    cursor = gateway.connect(client_tags=["team:bi"]).cursor()
    assert cursor.execute(SQL).fetchall() == [["one"], ["two"], ["three"]]
    assert cursor.description[0].type_code == "varchar(5)"
    method, path, headers = first.asked[0]
    assert (method, path) == ("POST", "/v1/statement")
    assert headers["x-trino-user"] == "ana"
    assert headers["x-trino-client-tags"] == "team:bi"
    assert "x-trino-query-data-encoding" not in headers
    gateway.close = lambda: None  # type: ignore[method-assign] # closed here, to see the records
    Gateway.close(gateway)
    (event,) = gateway.records("query_event")
    assert event["query_id"] == "20260101_000000_00001_a"
    assert event["gateway_id"] == headers["x-trino-trace-token"]
    assert (event["status"], event["cpu_ms"], event["bytes_scanned"]) == ("finished", 7.0, 11)


@pytest.mark.parametrize("at", [0, 1])
def test_a_reading_statement_survives_an_engine_that_dies_before_the_first_row(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino], at: int
) -> None:
    gateway, (first, second) = serve(), trinos
    first.dies_at = at
    assert gateway.rows(SQL) == [["one"]]
    assert second.statements == [SQL]


def test_after_the_first_row_it_fails_clearly(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino]
) -> None:
    gateway, (first, second) = serve(), trinos
    first.pages = [[["one"]], [["two"]]]
    first.dies_at = 2
    with pytest.raises(TrinoQueryError, match="trino-a does not answer"):
        gateway.rows(SQL)
    assert second.statements == []


@pytest.mark.parametrize("at", [0, 1])
def test_a_write_reaches_one_engine_and_is_never_repeated(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino], at: int
) -> None:
    gateway, (first, second) = serve(), trinos
    first.dies_at = at
    sql = "INSERT INTO lake.demo.t SELECT 1"
    with pytest.raises(TrinoQueryError, match="trino-a does not answer"):
        gateway.rows(sql, user="eve")
    assert first.statements == [sql]
    assert second.statements == []


def test_when_every_member_is_down_the_refusal_says_so(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino]
) -> None:
    gateway = serve()
    for one in trinos:
        one.dies_at = 0
    with pytest.raises(TrinoQueryError, match="does not answer"):
        gateway.rows(SQL)


def test_a_client_that_hangs_up_ends_the_engines_query(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino]
) -> None:
    gateway, (first, _) = serve(), trinos
    first.pages = [[["one"]]] * 5
    body = SQL.encode()
    request = (
        b"POST /v1/statement HTTP/1.1\r\nHost: x\r\nX-Trino-User: ana\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    with socket.create_connection(("127.0.0.1", gateway.port.port)) as client:
        client.sendall(request)
        assert b"nextUri" in client.recv(65_536)
        assert gateway.port.front.open_queries == 1
    wait_for(lambda: any(subject.gone_since for subject in gateway.port.front._desk.open.values()))
    gateway.run(_sweep(gateway, 11.0))
    wait_for(lambda: ("DELETE", "/v1/query/20260101_000000_00001_a") in _asked(first))
    assert gateway.port.front.open_queries == 0


async def _sweep(gateway: Gateway, later: float) -> None:
    gateway.port.front.sweep_once(time.monotonic() + later)


def _asked(trino: MockTrino) -> list[tuple[str, str]]:
    return [(method, path) for method, path, _ in trino.asked]


def test_cancelling_reaches_the_engine_and_frees_the_place(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino]
) -> None:
    gateway, (first, _) = serve(), trinos
    first.pages = [[["one"]]] * 5
    uri = post(gateway).json()["nextUri"]
    assert uri.startswith(f"{gateway.url}/v1/statement/at/trino-a/executing/")
    answer = httpx.delete(uri, headers={"X-Trino-User": "ana"}, trust_env=False)
    assert answer.status_code == 204
    assert _asked(first)[-1] == ("DELETE", "/v1/statement/executing/20260101_000000_00001_a/slug/1")
    assert gateway.port.front.open_queries == 0


def test_who_finds_no_place_waits_or_is_told_that_the_queue_is_full(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino]
) -> None:
    gateway = serve(maxQueuedQueries=1)
    for one in trinos:
        one.pages = [[["one"]]] * 5
    running = [post(gateway).json() for _ in range(4)]
    waiting = post(gateway).json()
    assert waiting["stats"]["state"] == "QUEUED"
    refused = post(gateway).json()
    assert refused["error"]["errorName"] == "QUERY_QUEUE_FULL"
    httpx.delete(running[0]["nextUri"], headers={"X-Trino-User": "ana"}, trust_env=False)
    page = httpx.get(waiting["nextUri"], headers={"X-Trino-User": "ana"}, trust_env=False).json()
    assert "error" not in page
    assert "/at/trino-" in page["nextUri"]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"SELECT '" + b"a" * 2_000_000 + b"'", "QUERY_TEXT_TOO_LARGE"),
        (b"SELECT '\xff\xfe'", "SYNTAX_ERROR"),
        (b"", "SYNTAX_ERROR"),
        (b"SELECT '\x00'", None),
    ],
)
def test_statements_that_are_none_are_answered(
    serve: Callable[..., Gateway], body: bytes, name: str | None
) -> None:
    answer = post(serve(), body)
    assert answer.status_code == 200
    error = answer.json().get("error")
    assert name is None or (error or {}).get("errorName") == name, error


def test_what_is_no_request_of_the_protocol_is_answered(serve: Callable[..., Gateway]) -> None:
    gateway = serve()
    paths = ("/", "/v1/nothing", "/v1/statement/queued/x/y/0", "/v1/statement/at/nobody/a/b/c/0")
    user = {"X-Trino-User": "ana"}
    for path in paths:
        answer = httpx.get(f"{gateway.url}{path}", headers=user, trust_env=False)
        assert answer.status_code == 404, path
    assert httpx.get(f"{gateway.url}/v1/statement", trust_env=False).status_code == 401
    assert json.loads(httpx.get(f"{gateway.url}/v1/info", trust_env=False).text)["coordinator"]
    assert post(gateway, **{"X-Trino-Session": "broken"}).json()["error"]["errorName"] == (
        "SYNTAX_ERROR"
    )


def test_an_engine_that_is_not_there_is_told_apart_from_a_bad_statement(
    serve: Callable[..., Gateway], trinos: tuple[MockTrino, MockTrino]
) -> None:
    for one in trinos:
        one.close()
    gateway = serve()
    with pytest.raises(TrinoQueryError) as caught:
        gateway.rows(SQL)
    assert caught.value.error_name == "REMOTE_HOST_GONE"
    assert free_port()

"""What is passed on to a Trino engine, and what its answers do to the statement's place."""

from __future__ import annotations

import asyncio
import json

import pytest

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.gateway.trino.passage import follow_request, kill_request
from lakehouse_core.gateway.upstream import Target
from tests.unit.gateway.trino.site import site
from tests.unit.routing.conftest import on_loop

TARGET = Target(host="trino", port=8080)
SMUGGLED = (
    "executing/a/b/1%20HTTP/1.1%0d%0aHost:%20x%0d%0a%0d%0aPOST%20/v1/statement%20HTTP/1.1"
    "%0d%0aX-Trino-User:%20root%0d%0aContent-Length:%2012%0d%0a%0d%0aDROP%20TABLE%20t"
)


@pytest.mark.parametrize(
    "rest",
    [
        SMUGGLED,
        "executing/a/b/1%0a",
        "executing/../../query/1",
        "executing/%2e%2e/%2e%2e/query",
        "executing/a/b/1;x=1",
        "executing//b/1",
    ],
)
@on_loop
async def test_a_path_that_is_no_page_reaches_no_engine(rest: str) -> None:
    async with site() as here:
        status, _ = await here.ask(f"GET /v1/statement/at/trino/{rest}")
        assert status == 404
        assert here.trinos["trino"].received == []


@on_loop
async def test_a_page_is_asked_for_as_the_client_wrote_it() -> None:
    async with site() as here:
        path = "/v1/statement/at/trino/executing/20260101_000000_00001_abcde/ys-lug/3?maxWait=1s%0d"
        status, _ = await here.ask(f"GET {path}")
        (request,) = here.trinos["trino"].received
        assert status == 200
        assert request.startswith(
            b"GET /v1/statement/executing/20260101_000000_00001_abcde/ys-lug/3?maxWait=1s%0d HTTP/1"
        )


@on_loop
async def test_a_trino_is_asked_for_its_session() -> None:
    async with site() as here:
        await here.run("SHOW SESSION")
        assert here.trinos["trino"].statements == ["SHOW SESSION"]


@pytest.mark.parametrize("name", ["ana\r\nX-Trino-User: root", "ana\nb", "ana\0", "a\x7f"])
def test_a_name_with_a_line_break_is_not_passed_on(name: str) -> None:
    with pytest.raises(QueryFailedError, match="not passed on"):
        follow_request("GET", "executing/q/s/1", name, TARGET)
    with pytest.raises(QueryFailedError, match="not passed on"):
        kill_request("q", name, TARGET)
    assert b"/v1/query/q%0D%0Ax HTTP/1.1\r\n" in kill_request("q\r\nx", "ana", TARGET)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@on_loop
async def test_a_reading_statement_goes_elsewhere_when_its_engine_does_not_serve(
    status: int,
) -> None:
    async with site() as here:
        here.trinos["trino"].status = status
        page = await here.run("SELECT 1")
        assert "error" not in page
        assert here.trinos["trino-2"].statements == ["SELECT 1"]
        (flight,) = here.notes.flights
        assert (flight.status, flight.attempts, here.running()) == (QueryStatus.FINISHED, 2, 0)


@on_loop
async def test_a_write_is_not_sent_to_a_second_engine() -> None:
    async with site() as here:
        here.trinos["trino"].status = 503
        page = await here.run("INSERT INTO lake.demo.t SELECT 1")
        assert "does not serve: it answered 503" in page["error"]["message"]
        assert here.trinos["trino-2"].statements == []
        (flight,) = here.notes.flights
        assert (flight.status, here.running()) == (QueryStatus.FAILED, 0)


@on_loop
async def test_an_engine_that_keeps_refusing_is_left_alone() -> None:
    async with site() as here:
        for one in here.trinos.values():
            one.status = 503
        for _ in range(30):
            page = await here.run("SELECT 1")
        assert here.running() == 0
        assert len(here.notes.flights) == 30
        assert len(here.trinos["trino"].statements) < 30, "its circuit has not opened"
        assert page["error"]["errorType"] == "INTERNAL_ERROR"


@pytest.mark.parametrize(("status", "told"), [(400, 400), (401, 200), (403, 200), (429, 429)])
@on_loop
async def test_a_refusal_ends_the_statement(status: int, told: int) -> None:
    async with site() as here:
        here.trinos["trino"].status = status
        got, body = await here.ask("POST /v1/statement", "SELECT 1")
        assert got == told
        assert told != 200 or b"refused the statement with 40" in body
        (flight,) = here.notes.flights
        assert (flight.status, here.running()) == (QueryStatus.FAILED, 0)
        assert flight.error is not None
        assert str(status) in str(flight.error)


@pytest.mark.parametrize(
    ("sql", "pages"), [("SELECT 1", 2), ("INSERT INTO lake.demo.t SELECT 1", 1)]
)
@on_loop
async def test_what_cannot_be_run_elsewhere_is_asked_for_again(sql: str, pages: int) -> None:
    """A write, or a read whose rows have been given: the client asks for the page once more."""
    async with site() as here:
        first = here.trinos["trino"]
        first.pages = 3
        uri = (await here.run(sql))["nextUri"]
        for _ in range(pages - 1):
            uri = json.loads((await here.ask(f"GET {path_of(uri)}"))[1])["nextUri"]
        first.status = 503
        status, _ = await here.ask(f"GET {path_of(uri)}")
        assert (status, here.running(), here.notes.flights) == (503, 1, [])
        first.status = 200
        status, _ = await here.ask(f"GET {path_of(uri)}")
        assert (status, here.trinos["trino-2"].statements) == (200, [])


@on_loop
async def test_a_read_without_rows_yet_goes_elsewhere_and_is_stopped_where_it_was() -> None:
    async with site() as here:
        first = here.trinos["trino"]
        first.pages = 3
        uri = (await here.run("SELECT 1"))["nextUri"]
        first.status = 503
        status, body = await here.ask(f"GET {path_of(uri)}")
        assert (status, "error" in json.loads(body)) == (200, False)
        assert here.trinos["trino-2"].statements == ["SELECT 1"]
        async with asyncio.timeout(60):
            while not first.received[-1].startswith(b"DELETE /v1/query/q1 "):
                await asyncio.sleep(0)
        assert here.running() == 0


@on_loop
async def test_half_a_last_page_ends_the_statement_too() -> None:
    async with site() as here:
        here.trinos["trino"].cut = 1
        page = await here.run("INSERT INTO lake.demo.t SELECT 1")
        assert "no answer of Trino's protocol" in page["error"]["message"]
        (flight,) = here.notes.flights
        assert (flight.status, here.running()) == (QueryStatus.FAILED, 0)


def path_of(uri: str) -> str:
    return uri.removeprefix("http://here")

"""A front end on a socket, a real router behind it, and Trinos that answer as they are told."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from lakehouse_core.gateway.auth import Authenticator
from lakehouse_core.gateway.http import Address, HttpServer
from lakehouse_core.gateway.service import QueryService
from lakehouse_core.gateway.trino.frontend import TrinoFrontEnd
from lakehouse_core.gateway.trino.metadata import Metadata
from lakehouse_core.gateway.upstream import Target, Upstream
from lakehouse_core.routing.decide import Ports
from lakehouse_core.routing.router import Router
from tests.unit.routing.conftest import Fleet, plan_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.engines.base import Engine
    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.http import Exchange

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
NAMES = ("trino", "trino-2")


class Trino:
    """An engine: keeps what it was sent, answers with `status`; each query has `pages` pages.

    `cut` bytes are missing at the end of every page.
    """

    def __init__(self) -> None:
        self.status = 200
        self.pages = 1
        self.cut = 0
        self.received: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_http(reader):
                self.received.append(request)
                body = self._page(request) if self.status == 200 else b"not now"
                head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
        finally:
            writer.close()

    def _page(self, request: bytes) -> bytes:
        target = request.split()[1].decode().partition("?")[0]
        parts = target.split("/")
        is_next = request.startswith(b"GET")
        number = int(parts[-1]) if is_next else 0
        query_id = parts[-3] if is_next else f"q{len(self.statements)}"
        page: dict[str, Any] = {"id": query_id, "infoUri": "http://x"}
        if number + 1 < self.pages:
            page["nextUri"] = f"http://x/v1/statement/executing/{query_id}/s/{number + 1}"
        if number:
            page["data"] = [[number]]
        body = json.dumps({**page, "stats": {}}, separators=(",", ":")).encode()
        return body[: len(body) - self.cut]

    @property
    def statements(self) -> list[str]:
        """What was submitted to it."""
        return [
            one.partition(b"\r\n\r\n")[2].decode() for one in self.received if one[:4] == b"POST"
        ]


class Notes:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.flights: list[Flight] = []

    def note(self, flight: Flight) -> None:
        self.flights.append(flight)


class Site:
    """What a test speaks to."""

    def __init__(self, trinos: dict[str, Trino], engines: dict[EngineId, Engine]) -> None:
        self.trinos = trinos
        self.notes = Notes()
        group = {"members": [*NAMES, *engines], "strategy": {"type": "failover"}}
        plan = plan_of(clusterGroups={"all": group}, routingFallback="all")
        self.router = Router(plan, Ports(fleet=Fleet()))
        self.service = QueryService(self.router, engines, self.notes)
        self.upstreams = {
            name: Upstream(Target(host="127.0.0.1", port=one.port)) for name, one in trinos.items()
        }
        self.front = TrinoFrontEnd(self.service, Authenticator(), self.upstreams, Metadata({}))
        self.port = 0
        self.handled = 0

    def handle(self, exchange: Exchange) -> None:
        self.handled += 1
        self.front.handle(exchange)

    async def ask(self, request: str, body: str = "", **headers: str) -> tuple[int, bytes]:
        """Status and body of the answer to one request."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        given = {"Host": "here", "X-Trino-User": "ana", "Connection": "close", **headers}
        lines = [f"{request} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        lines += [f"Content-Length: {len(body)}", "", body]
        writer.write("\r\n".join(lines).encode())
        answer = await reader.read()
        writer.close()
        head, _, content = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), content

    async def run(self, sql: str) -> dict[str, Any]:
        """The page that answers a statement."""
        status, body = await self.ask("POST /v1/statement", sql)
        assert status == 200, body
        found: dict[str, Any] = json.loads(body)
        return found

    def running(self) -> int:
        """Places that are taken."""
        return sum(self.router.running(name) for name in NAMES)  # type: ignore[arg-type]


@asynccontextmanager
async def site(engines: dict[EngineId, Engine] | None = None) -> AsyncIterator[Site]:
    trinos, servers = {name: Trino() for name in NAMES}, []
    for one in trinos.values():
        server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
        one.port = server.sockets[0].getsockname()[1]
        servers.append(server)
    made = Site(trinos, engines or {})
    http = HttpServer(made.handle, made.front.lost)
    made.port = await http.start(Address("127.0.0.1", 0))
    try:
        yield made
    finally:
        await made.front.close()
        await made.service.close()
        await http.stop()
        for upstream in made.upstreams.values():
            upstream.close()
        for server in servers:
            server.close()


async def read_http(reader: asyncio.StreamReader) -> bytes:
    """One request; empty at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        return head + await reader.readexactly(int(length[1]) if length else 0)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""

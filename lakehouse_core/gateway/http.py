"""HTTP/1.1 on a raw asyncio protocol: parsed by httptools, answered by plain calls.

A general server costs a task, two scopes and a queue per request, which is most of what a gateway
adds to a short query. Here a request that is complete is handed to `handle(exchange)` in the very
call in which its last byte arrived, and `exchange.respond(...)` writes the answer to the socket.

What a connection may do is bounded: size of headers and body, time to send a request, time to read
an answer, requests sent ahead. What is no HTTP is answered with 400 in words, then closed.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import httptools
import structlog

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

    Handler = Callable[["Exchange"], None]

_log = structlog.get_logger(__name__)
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_PRINTABLE = re.compile(rb"[!-~]+")
_MOST_AHEAD = 8  # requests a client may send without waiting for answers


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """What a client may ask of a connection.

    Attributes:
        header_bytes: of one request; prepared statements travel in headers.
        body_bytes: what is kept of a body; more is read and thrown away.
        discarded_bytes: beyond this the connection is closed.
        request_seconds: from a request's first byte to its last.
        idle_seconds: between two requests.
        write_seconds: how long an answer may wait for its reader.
    """

    header_bytes: int = 2**20
    body_bytes: int = 2**20
    discarded_bytes: int = 64 * 2**20
    request_seconds: float = 30.0
    idle_seconds: float = 600.0
    write_seconds: float = 60.0


class Exchange:
    """One request and, once, its answer."""

    __slots__ = (
        "_connection", "_sharing", "body", "endpoint", "headers", "is_answered", "is_too_large",
        "keeps_alive", "method", "path", "prefix", "query",
    )  # fmt: skip

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sharing: list[Exchange] = []
        self.method = ""
        self.path = ""
        self.query = b""
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_too_large = False
        self.keeps_alive = True
        self.is_answered = False
        self.endpoint: str | None = None  # the named way it came in by
        self.prefix = ""  # of the path, when that way is a path

    @property
    def client(self) -> Connection:
        """Who asks; equal for all requests of one connection."""
        return self._connection

    @property
    def is_gone(self) -> bool:
        """Whether nobody is there to be answered."""
        return self._connection.is_closed

    def share(self, other: Exchange) -> None:
        """Give another request the answer of this one, when it comes."""
        self._sharing.append(other)

    def respond(
        self,
        status: int,
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        content_type: str = "application/json",
    ) -> None:
        """Write the answer; a second one, or one to nobody, is dropped."""
        if self.is_answered:
            return
        self.is_answered = True
        if self._sharing:
            headers = tuple(headers)
            for other in self._sharing:
                other.respond(status, body, headers, content_type)
        lines = [
            b"HTTP/1.1 %d %s\r\nContent-Length: %d\r\n"
            % (status, _REASONS.get(status, b""), len(body))
        ]
        if body:
            lines.append(b"Content-Type: %s\r\n" % content_type.encode())
        for name, value in headers:
            # A value of ours never has a line break; one from elsewhere must not make a header.
            text = f"{name}: {value}".replace("\r", " ").replace("\n", " ")
            lines.append(text.encode("latin-1", "replace") + b"\r\n")
        if not self.keeps_alive:
            lines.append(b"Connection: close\r\n")
        lines.append(b"\r\n")
        lines.append(body)
        self._connection.write(b"".join(lines), is_last=not self.keeps_alive)


class Connection(asyncio.Protocol):
    """One client's connection; the callbacks without a docstring are httptools'."""

    def __init__(self, server: HttpServer) -> None:
        self._handle = server.handle
        self._on_lost = server.on_lost
        self._limits = server.limits
        self._connections = server.connections
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._incoming: Exchange | None = None
        self._waiting: deque[Exchange] = deque()
        self._current: Exchange | None = None
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._url = b""
        self._since = time.monotonic()
        self._paused_since: float | None = None
        self.is_closed = False
        self.is_announced = False  # the client said that it would close
        self.subject: object = None  # what it asked about last, for whoever handles its requests

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greeted by nobody: HTTP's client speaks first."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own, of the same shape
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; whoever works for it is told."""
        del exc
        self.is_closed = True
        self._connections.discard(self)
        self._waiting.clear()
        if self._on_lost is not None:
            self._on_lost(self)

    def data_received(self, data: bytes) -> None:
        """Parse; what is no HTTP is answered and ends the connection."""
        if self._incoming is None:
            self._since = time.monotonic()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(HTTPStatus.BAD_REQUEST, "This port speaks HTTP/1.1 only")
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            if not isinstance(cause, _RefusedError):
                _log.error("request not handled", exc_info=error)
                self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error; see the log")
                return
            self._refuse(cause.status, cause.message)
        except httptools.HttpParserError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"This is no HTTP request: {error}")

    def pause_writing(self) -> None:
        """The reader is slow."""
        self._paused_since = time.monotonic()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._paused_since = None

    # --- httptools' side

    def on_message_begin(self) -> None:  # noqa: D102
        self._incoming = Exchange(self)
        self._url = b""
        self._header_bytes = 0
        self._body, self._body_bytes = [], 0

    def on_url(self, url: bytes) -> None:  # noqa: D102
        self._url += url
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:  # noqa: D102
        assert self._incoming is not None  # noqa: S101 httptools' promise
        self._count_header(len(name) + len(value))
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._incoming.headers
        known[key] = f"{known[key]},{text}" if key in known else text

    def on_headers_complete(self) -> None:  # noqa: D102
        assert self._incoming is not None  # noqa: S101 as above
        if self._incoming.headers.get("expect", "").lower() == "100-continue":
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:  # noqa: D102
        self._body_bytes += len(body)
        if self._body_bytes <= self._limits.body_bytes:
            self._body.append(body)
        elif self._body_bytes > self._limits.discarded_bytes:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is larger than {self._limits.discarded_bytes} bytes",
            )

    def on_message_complete(self) -> None:  # noqa: D102
        exchange, self._incoming = self._incoming, None
        assert exchange is not None  # noqa: S101 as above
        if not _PRINTABLE.fullmatch(self._url):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "The path has bytes that must be escaped")
        try:
            url = httptools.parse_url(self._url)
        except httptools.HttpParserInvalidURLError as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"The path is no URL: {error}") from error
        exchange.method = self._parser.get_method().decode("latin-1")
        # As it was sent: what an escape stands for may be a line break, and paths are passed on.
        exchange.path = (url.path or b"/").decode("ascii")
        exchange.query = url.query or b""
        exchange.is_too_large = self._body_bytes > self._limits.body_bytes
        exchange.body = b"" if exchange.is_too_large else b"".join(self._body)
        exchange.keeps_alive = self._parser.should_keep_alive()
        self.is_announced = not exchange.keeps_alive
        self._body = []
        if self._current is None:
            self._start(exchange)
        elif len(self._waiting) < _MOST_AHEAD:
            self._waiting.append(exchange)
        else:
            raise _RefusedError(HTTPStatus.TOO_MANY_REQUESTS, "Wait for answers before asking more")

    # --- ours

    def write(self, data: bytes, *, is_last: bool) -> None:
        """Send an answer; the next request that came ahead is taken up."""
        self._since = time.monotonic()
        self._write(data)
        self._current = None
        if is_last:
            self.close()
        elif self._waiting:
            self._start(self._waiting.popleft())

    def close(self) -> None:
        """Close once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def sweep(self, now: float) -> None:
        """Close what takes too long; called every few seconds."""
        limits = self._limits
        if self._paused_since is not None:
            if now - self._paused_since > limits.write_seconds:
                self.abort("reads too slowly")
        elif self._incoming is not None:
            if now - self._since > limits.request_seconds:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive in time")
        elif self._current is None and now - self._since > limits.idle_seconds:
            self.close()

    def _start(self, exchange: Exchange) -> None:
        self._current = exchange
        self._handle(exchange)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self.is_closed:
            self._transport.write(data)

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self._limits.header_bytes:
            raise _RefusedError(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The headers are larger than {self._limits.header_bytes} bytes",
            )

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Say why, and close: what follows on this connection cannot be told apart."""
        if self._current is None:
            exchange = Exchange(self)
            exchange.keeps_alive = False
            exchange.respond(status, message.encode(), content_type="text/plain; charset=utf-8")
        self.close()

    def abort(self, why: str) -> None:
        """Close without waiting for its reader."""
        _log.info("connection given up", reason=why)
        if self._transport is not None:
            self._transport.abort()


class _RefusedError(Exception):
    """Raised inside the parser's callbacks to end a connection with an answer."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens; port 0: any that is free."""

    host: str
    port: int


class HttpServer:
    """Listens, and sweeps its connections.

    Attributes:
        handle: takes each request.
        on_lost: told when a client hangs up.
        connections: those that are open.
    """

    SWEEP_SECONDS = 5.0
    STOP_SECONDS = 2.0

    def __init__(
        self,
        handle: Handler,
        on_lost: Callable[[Connection], None] | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        self.handle = handle
        self.on_lost = on_lost
        self.limits = limits or HttpLimits()
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def start(self, address: Address, tls: ssl.SSLContext | None = None) -> int:
        """Listen; returns the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self),
            address.host,
            address.port,
            ssl=tls,
            backlog=2048,
        )
        self._sweeper = loop.create_task(self._sweep())
        return int(self._server.sockets[0].getsockname()[1])

    def stop_listening(self) -> None:
        """Take no new clients."""
        if self._server is not None:
            self._server.close()

    async def stop(self) -> None:
        """Listen no more and close what is open."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.stop_listening()
        for connection in list(self.connections):
            connection.close()
        deadline = time.monotonic() + self.STOP_SECONDS
        while self.connections and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort("the server stops")
        await asyncio.sleep(0)  # those are told that they are lost

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self.SWEEP_SECONDS)
            now = time.monotonic()
            for connection in list(self.connections):
                connection.sweep(now)

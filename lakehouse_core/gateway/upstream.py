"""Pooled HTTP connections to an engine, answered by callbacks: the lean half of a proxy.

A request costs one write and one parse: no task, no future, no header objects. A connection that
the engine closed while it was idle is not an engine that is gone: the request is sent once more on
a new one, when nothing of an answer had arrived and the caller allows it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import httptools

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0
MOST_IDLE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An engine's address.

    Attributes:
        authorization: what it wants to see; None: nothing.
        answer_seconds: a silent engine is given up after this.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    authorization: str | None = None
    answer_seconds: float = 60.0

    @property
    def authority(self) -> str:
        """As a Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(slots=True)
class Answer:
    """What came back; header names in lower case."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Waiter(Protocol):
    """Whoever asked."""

    def answered(self, answer: Answer) -> None:
        """The engine has answered."""
        ...

    def failed(self, error: Exception) -> None:
        """The engine is not there, or went away in the middle."""
        ...


class Upstream:
    """Connections to one engine."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._idle: list[_Connection] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def send(self, request: bytes, waiter: Waiter, *, again: bool = True) -> None:
        """Send a whole request.

        Args:
            request: its bytes.
            waiter: who is told what came of it, exactly once.
            again: whether it may be sent a second time when an idle connection proves dead.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                connection.send(request, waiter, again=again)
                return
        task = asyncio.get_running_loop().create_task(self._open(request, waiter))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def close(self) -> None:
        """Let all connections go."""
        self._is_closed = True
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        for task in self._opening:
            task.cancel()

    async def _open(self, request: bytes, waiter: Waiter) -> None:
        target = self.target
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self), target.host, target.port, ssl=target.tls
                )
        except (OSError, TimeoutError) as error:
            reason = str(error) or f"no connection within {CONNECT_SECONDS:g} s"
            waiter.failed(ConnectionError(reason))
            return
        connection.send(request, waiter, again=False)

    def _free(self, connection: _Connection) -> None:
        if self._is_closed or len(self._idle) >= MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def _dropped(self, connection: _Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)


class _Connection(asyncio.Protocol):
    """One connection; the callbacks without a docstring are httptools'."""

    def __init__(self, pool: Upstream) -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._waiter: Waiter | None = None
        self._request = b""
        self._again = False
        self._has_bytes = False
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._parser = httptools.HttpResponseParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether it may be used again."""
        if self._transport is None or self._transport.is_closing():
            return False
        if time.monotonic() - self._idle_since > IDLE_SECONDS:
            self.close()
            return False
        return True

    def send(self, request: bytes, waiter: Waiter, *, again: bool) -> None:
        """Write a request; the connection is taken until it is answered."""
        assert self._transport is not None  # noqa: S101 it is connected
        self._waiter, self._request, self._again = waiter, request, again
        self._has_bytes = False
        self._headers, self._body = [], []
        self._transport.write(request)
        self._timer = asyncio.get_running_loop().call_later(
            self._pool.target.answer_seconds, self._too_late
        )

    def close(self) -> None:
        """Let it go."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own, of the same shape

    def data_received(self, data: bytes) -> None:
        """Parse."""
        self._has_bytes = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"it does not speak HTTP: {error}"))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone; whoever waits is told, or asked again on another connection."""
        self._pool._dropped(self)
        if self._waiter is None:
            return
        if self._again and not self._has_bytes:
            waiter, self._waiter = self._waiter, None
            self._stop_timer()
            self._pool.send(self._request, waiter, again=False)
            return
        self._fail(ConnectionError(str(exc) if exc else "it closed the connection"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        waiter, self._waiter = self._waiter, None
        self._stop_timer()
        keeps_alive = self._parser.should_keep_alive()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        answer = Answer(status, self._headers, body)
        self._headers, self._body, self._request = [], [], b""
        if keeps_alive:
            self._idle_since = time.monotonic()
            self._pool._free(self)
        else:
            self.close()
        if waiter is not None:
            waiter.answered(answer)

    def _too_late(self) -> None:
        self._fail(ConnectionError(f"no answer within {self._pool.target.answer_seconds:g} s"))
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: Exception) -> None:
        self._stop_timer()
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.failed(error)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

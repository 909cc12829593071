"""The HTTP server on a socket: what is good is answered, what is bad is answered and closed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.gateway.http import Connection, Exchange, HttpLimits, HttpServer

if TYPE_CHECKING:
    from collections.abc import Callable

LIMITS = HttpLimits(header_bytes=2_000, body_bytes=100, discarded_bytes=1_000)


class Wire(asyncio.Transport):
    """A transport that keeps what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed: bool = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


def echo(exchange: Exchange) -> None:
    exchange.respond(200, f"{exchange.method} {exchange.path} {len(exchange.body)}".encode())


def connection(handle: Callable[[Exchange], None] = echo) -> tuple[Connection, Wire]:
    server = HttpServer(handle, None, LIMITS)
    made, wire = Connection(server), Wire()
    made.connection_made(wire)
    return made, wire


def test_a_request_is_answered_wherever_it_is_cut() -> None:
    request = b"POST /v1/statement HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nSELECT 1"
    for cut in range(1, len(request)):
        made, wire = connection()
        made.data_received(request[:cut])
        made.data_received(request[cut:])
        assert wire.written.endswith(b"\r\n\r\nPOST /v1/statement 8"), cut
        assert not wire.is_closed


def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    waiting: list[Exchange] = []
    made, wire = connection(waiting.append)
    made.data_received(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
    assert [exchange.path for exchange in waiting] == ["/a"]
    waiting[0].respond(200, b"first")
    assert [exchange.path for exchange in waiting] == ["/a", "/b"]
    waiting[1].respond(200, b"second")
    assert wire.written.index(b"first") < wire.written.index(b"second")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", b"400"),
        (b"SELECT 1\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 3_000 + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + b"a" * 5_000, b"413"),
        (b"GET / HTTP/1.1\r\n\r\n" * 20, b"429"),
    ],
)
def test_what_is_wrong_is_said_and_the_connection_closed(sent: bytes, status: bytes) -> None:
    never = (lambda _: None) if status == b"429" else echo
    made, wire = connection(never)
    made.data_received(sent)
    assert wire.is_closed
    if status != b"429":  # the first request is not answered yet: no other answer may come first
        assert wire.written.startswith(b"HTTP/1.1 " + status)


def test_a_body_that_is_too_large_is_read_but_not_kept() -> None:
    seen: list[Exchange] = []
    made, _ = connection(seen.append)
    made.data_received(b"POST / HTTP/1.1\r\nContent-Length: 500\r\n\r\n" + b"a" * 500)
    assert seen[0].is_too_large
    assert seen[0].body == b""


def test_a_path_stays_as_it_was_sent() -> None:
    seen: list[Exchange] = []
    made, _ = connection(seen.append)
    made.data_received(b"GET /v1/a%0d%0aHost:%20x?b=%0a HTTP/1.1\r\n\r\n")
    assert (seen[0].path, seen[0].query) == ("/v1/a%0d%0aHost:%20x", b"b=%0a")


def test_headers_of_an_answer_cannot_be_forged() -> None:
    made, wire = connection(lambda e: e.respond(200, b"", [("X-A", "1\r\nX-B: 2")]))
    made.data_received(b"GET / HTTP/1.1\r\n\r\n")
    assert b"\r\nX-B" not in wire.written


def test_slow_senders_slow_readers_and_idle_clients_are_closed() -> None:
    later = time.monotonic() + 10_000
    half, wire = connection()
    half.data_received(b"POST / HTTP/1.1\r\nContent-Le")
    half.sweep(later)
    assert wire.is_closed
    assert b"408" in wire.written
    idle, wire = connection()
    idle.sweep(time.monotonic())
    still_open = not wire.is_closed
    idle.sweep(later)
    assert still_open
    assert wire.is_closed
    slow, wire = connection()
    slow.data_received(b"GET / HTTP/1.1\r\n\r\n")
    slow.pause_writing()
    slow.sweep(later)
    assert wire.is_closed


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.lists(st.binary(max_size=200), max_size=6),
    st.sampled_from([b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n"]),
)
def test_no_bytes_make_it_raise(pieces: list[bytes], start: bytes) -> None:
    made, wire = connection()
    for piece in [start, *pieces]:
        if not wire.is_closed:
            made.data_received(piece)
    made.connection_lost(None)
    assert not wire.written or wire.written.startswith(b"HTTP/1.1 ")

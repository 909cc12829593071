"""Messages of PostgreSQL's protocol 3: read from a stream, written as bytes.

Only the shape is known here; what a message means is the session's business.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import LakehouseError, Terminal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Sequence

PROTOCOL_3 = 196_608
CANCEL = 80_877_102
SSL = 80_877_103
GSS = 80_877_104
LARGEST_STARTUP = 10_000  # PostgreSQL's own limit

_INT = struct.Struct("!i")
_SHORT = struct.Struct("!h")
_HEAD = struct.Struct("!ci")


class WireError(Terminal, LakehouseError):
    """Raised when a client does not speak the protocol; the connection cannot go on."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result as the protocol describes it; `modifier` holds a decimal's scale."""

    name: str
    oid: int
    size: int = -1
    is_binary: bool = False
    modifier: int = -1


@dataclass(frozen=True, slots=True)
class Startup:
    """The first message: its code, and what follows it."""

    code: int
    body: bytes

    def parameters(self) -> dict[str, str]:
        """Name and value of what a start-up message says.

        Raises:
            WireError: it is cut off.
        """
        parts = self.body.split(b"\0")
        if len(parts) < 2 or parts[-1] or parts[-2]:
            raise WireError("The start-up message does not end with two zero bytes")
        words = [part.decode("utf-8", "replace") for part in parts[:-2]]
        return dict(zip(words[::2], words[1::2], strict=False))


class Reader:
    """The fields of one message, in order."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def short(self) -> int:
        """A 16-bit number."""
        return int(self._unpack(_SHORT))

    def long(self) -> int:
        """A 32-bit number."""
        return int(self._unpack(_INT))

    def take(self, length: int) -> bytes:
        """Some bytes.

        Raises:
            WireError: there are fewer.
        """
        end = self._at + length
        if length < 0 or end > len(self._body):
            raise WireError("A message is shorter than its fields")
        found, self._at = self._body[self._at : end], end
        return found

    def text(self) -> str:
        """Text up to a zero byte.

        Raises:
            WireError: there is no zero byte, or the text is not UTF-8.
        """
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise WireError("A text of a message has no end")
        raw, self._at = self._body[self._at : end], end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise WireError("A text of a message is not UTF-8") from error

    def _unpack(self, shape: struct.Struct) -> int:
        return int(shape.unpack(self.take(shape.size))[0])


async def read_startup(stream: asyncio.StreamReader) -> Startup:
    """The first message of a connection.

    Raises:
        WireError: its length makes no sense.
        asyncio.IncompleteReadError: the client hung up.
    """
    (length,) = _INT.unpack(await stream.readexactly(4))
    if not 8 <= length <= LARGEST_STARTUP:
        raise WireError(f"A start-up message of {length} bytes: this is no PostgreSQL client")
    body = await stream.readexactly(length - 4)
    return Startup(_INT.unpack(body[:4])[0], body[4:])


async def read_message(stream: asyncio.StreamReader, most: int) -> tuple[bytes, bytes]:
    """Kind and body of the next message.

    Raises:
        WireError: it is larger than `most`.
        asyncio.IncompleteReadError: the client hung up.
    """
    kind, length = _HEAD.unpack(await stream.readexactly(5))
    if length < 4:
        raise WireError(f"A message of {length} bytes")
    if length - 4 > most:
        raise WireError(f"A message of {length:,} bytes; {most:,} are the limit")
    return kind, await stream.readexactly(length - 4)


def message(kind: bytes, *parts: bytes) -> bytes:
    """A message of these parts."""
    body = b"".join(parts)
    return _HEAD.pack(kind, len(body) + 4) + body


def text(value: str) -> bytes:
    """A text with its zero byte; zero bytes inside cannot be told."""
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication_ok() -> bytes:
    """The client is in."""
    return message(b"R", _INT.pack(0))


def ask_password() -> bytes:
    """The client is to send its password as it is."""
    return message(b"R", _INT.pack(3))


def parameter(name: str, value: str) -> bytes:
    """A setting the client wants to know of."""
    return message(b"S", text(name), text(value))


def backend_key(process: int, secret: int) -> bytes:
    """What a cancel request must name."""
    return message(b"K", _INT.pack(process), _INT.pack(secret))


def ready(status: bytes) -> bytes:
    """Waiting for the next statement; I: idle, T: in a transaction, E: in a failed one."""
    return message(b"Z", status)


def row_description(columns: Sequence[Column]) -> bytes:
    """The columns of a result."""
    parts = [_SHORT.pack(len(columns))]
    for one in columns:
        parts += [
            text(one.name),
            struct.pack("!ihihih", 0, 0, one.oid, one.size, one.modifier, int(one.is_binary)),
        ]
    return message(b"T", *parts)


def parameter_description(oids: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message(b"t", _SHORT.pack(len(oids)), *(_INT.pack(oid) for oid in oids))


def command_complete(tag: str) -> bytes:
    """A statement is done."""
    return message(b"C", text(tag))


def failure(fields: Iterable[tuple[bytes, str]], kind: bytes = b"E") -> bytes:
    """An error (E) or a notice (N)."""
    return message(kind, *(code + text(value) for code, value in fields), b"\0")


EMPTY_QUERY = message(b"I")
NO_DATA = message(b"n")
PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
PORTAL_SUSPENDED = message(b"s")

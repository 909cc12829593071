"""Values of parameters as clients send them, in text or in binary."""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.gateway.postgres import types as t
from lakehouse_core.gateway.postgres.numeric import numeric_value
from lakehouse_core.sql.postgres.binding import Typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.sql.postgres.binding import Value

_EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001 PostgreSQL's plain timestamps have no zone
_TRUE = frozenset({"t", "true", "1", "on", "yes", "y"})
_FALSE = frozenset({"f", "false", "0", "off", "no", "n"})
_TEXTS = (0, t.TEXT, t.VARCHAR, t.UNKNOWN, t.BPCHAR, t.JSON)


def value_of(oid: int, sent: bytes | None, *, is_binary: bool) -> Value:
    """A value as it was bound.

    Raises:
        QueryFailedError: it is none of its type, or of a type that is not taken.
    """
    if sent is None:
        return None
    decode = _BINARY.get(oid) if is_binary else _TEXT.get(oid, bytes.decode)
    if decode is None:
        raise QueryFailedError(
            f"A parameter of type {oid} is not taken in binary; send it as text", code="0A000"
        )
    try:
        return decode(sent)
    except (ValueError, InvalidOperation, struct.error, OverflowError) as error:
        raise QueryFailedError(
            f"A parameter is no value of type {oid}: {error}", code="22P02"
        ) from error


def _boolean(sent: bytes) -> bool:
    word = sent.decode().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(f"{word!r} is neither true nor false")
    return word in _TRUE


def _exact(number: Decimal) -> Decimal:
    if not number.is_finite():
        raise ValueError("not a finite number")
    return number


def _unpack(shape: str) -> Callable[[bytes], int]:
    return lambda sent: struct.unpack(shape, sent)[0]


def _day(sent: bytes) -> date:
    return (_EPOCH + timedelta(days=struct.unpack("!i", sent)[0])).date()


def _moment(sent: bytes) -> datetime:
    return _EPOCH + timedelta(microseconds=struct.unpack("!q", sent)[0])


def _typed(kind: str) -> Callable[[bytes], Typed]:
    return lambda sent: Typed(sent.decode(), kind)


_TEXT: Mapping[int, Callable[[bytes], Value]] = {
    **dict.fromkeys((t.INT2, t.INT4, t.INT8), int),
    **dict.fromkeys((t.FLOAT4, t.FLOAT8), float),
    t.BOOL: _boolean,
    t.NUMERIC: lambda sent: _exact(Decimal(sent.decode())),
    t.DATE: _typed("DATE"),
    t.TIME: _typed("TIME"),
    t.TIMESTAMP: _typed("TIMESTAMP"),
    t.TIMESTAMPTZ: _typed("TIMESTAMPTZ"),
    t.BYTEA: lambda sent: bytes.fromhex(sent.decode().removeprefix("\\x")),
}
_BINARY: Mapping[int, Callable[[bytes], Value]] = {
    **dict.fromkeys(_TEXTS, bytes.decode),
    t.INT2: _unpack("!h"),
    t.INT4: _unpack("!i"),
    t.INT8: _unpack("!q"),
    t.FLOAT4: _unpack("!f"),
    t.FLOAT8: _unpack("!d"),
    t.BOOL: lambda sent: sent == b"\1",
    t.NUMERIC: lambda sent: _exact(numeric_value(sent)),
    t.DATE: _day,
    t.TIME: lambda sent: _moment(sent).time(),
    t.TIMESTAMP: _moment,
    t.TIMESTAMPTZ: lambda sent: _moment(sent).replace(tzinfo=UTC),
    t.BYTEA: bytes,
    t.UUID: lambda sent: str(uuid.UUID(bytes=sent)),
}

"""Values as DuckDB literals, for statements that travel as text through Quack.

Quack carries a statement, not its parameters. Placeholders (`$name`) are found with DuckDB's own
tokenizer, so a `$name` inside a string, a quoted name or a comment stays what it is; values become
literals of their type.

    bind("SELECT * FROM engine WHERE engine_id = $id", {"id": "it's"})
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb

from lakehouse_core.domain.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BIGINT = 2**63
_HUGEINT = 2**127
_MAX_DIGITS = 38
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_MICROSECOND = timedelta(microseconds=1)


def bind(sql: str, params: Mapping[str, Any]) -> str:
    """The statement with every `$name` replaced by the literal of its value.

    Raises:
        StoreError: a placeholder has no value, or a value has no literal.
    """
    try:
        raw = sql.encode()
    except UnicodeEncodeError as error:
        raise StoreError("The statement has characters that are not valid Unicode") from error
    parts: list[bytes] = []
    done = 0
    for start, name in _placeholders(sql, raw):
        if name not in params:
            given = ", ".join(sorted(params)) or "none"
            raise StoreError(f"The statement wants parameter ${name}; given: {given}")
        parts += [raw[done:start], literal(params[name]).encode()]
        done = start + 1 + len(name)
    return b"".join([*parts, raw[done:]]).decode()


def literal(value: Any) -> str:  # noqa: C901, PLR0911 one line per type is the clearest form
    """One value as a DuckDB expression without side effects.

    Raises:
        StoreError: the value has no exact counterpart in DuckDB.
    """
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return f"CAST('{_float_text(value)}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, timedelta):
        return f"to_microseconds(CAST({value // _MICROSECOND} AS BIGINT))"
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(item) for item in value)}]"
    raise StoreError(f"A value of type {type(value).__name__} cannot be a parameter of a statement")


def identifier(name: str) -> str:
    """A name, quoted: it is data, whatever it contains."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _placeholders(sql: str, raw: bytes) -> Iterator[tuple[int, str]]:
    tokens = duckdb.tokenize(sql)
    for (start, _), (following, kind) in pairwise(tokens):
        if raw[start : start + 1] != b"$" or following != start + 1:
            continue
        name = _NAME.match(raw, following)
        if name and kind in (duckdb.token_type.identifier, duckdb.token_type.keyword):
            yield start, name.group().decode()


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise StoreError("A text parameter has characters that are not valid Unicode") from error
    # A statement is a C string: it would end at a NUL.
    parts = [f"'{_quoted(part)}'" for part in value.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _integer(value: int) -> str:
    if abs(value) < _BIGINT:
        return str(value) if value >= 0 else f"({value})"
    if abs(value) < _HUGEINT:
        return f"CAST('{value}' AS HUGEINT)"
    raise StoreError("An integer parameter is larger than 127 bits")


def _float_text(value: float) -> str:
    return repr(value) if math.isfinite(value) else str(value)


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise StoreError(f"The decimal parameter {value} is not a number")
    scale = max(0, -exponent)
    width = max(len(digits) + max(0, exponent), scale, 1)
    if width > _MAX_DIGITS:
        raise StoreError(f"The decimal parameter {value} has more than {_MAX_DIGITS} digits")
    return f"CAST('{value:f}' AS DECIMAL({width}, {scale}))"


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        raise StoreError(f"Time {value.isoformat()} has no zone: times in the store are UTC")
    try:
        moment = value.astimezone(UTC)
    except OverflowError as error:
        raise StoreError(f"Time {value.isoformat()} is out of range in UTC") from error
    return f"TIMESTAMPTZ '{moment.isoformat()}'"

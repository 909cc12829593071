"""Cursors in SQL's own words: DECLARE, FETCH, MOVE, CLOSE."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakehouse_core.domain.errors import QueryFailedError

_NAME = r'(?P<name>"(?:[^"]|"")+"|\w+)'
_FLAGS = re.IGNORECASE | re.DOTALL
_DECLARE = re.compile(
    rf"\s*DECLARE\s+{_NAME}\s+(?P<options>(?:(?:BINARY|ASENSITIVE|INSENSITIVE|NO|SCROLL)\s+)*)"
    r"CURSOR\s+(?:(?P<hold>WITH|WITHOUT)\s+HOLD\s+)?FOR\s+(?P<query>.+)",
    _FLAGS,
)
_FETCH = re.compile(
    rf"\s*(?P<verb>FETCH|MOVE)\s+(?P<how>[\w\s+-]*?)\s*(?:\b(?:FROM|IN)\s+)?{_NAME}\s*;?\s*", _FLAGS
)
_CLOSE = re.compile(rf"\s*CLOSE\s+{_NAME}\s*;?\s*", _FLAGS)
_FORWARD = re.compile(r"(?:FORWARD\s*)?(?P<count>ALL|NEXT|\+?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Declare:
    """A cursor for a query."""

    name: str
    query: str
    is_binary: bool
    is_held: bool


@dataclass(frozen=True, slots=True)
class Fetch:
    """The next rows of a cursor; `most` None: all. A MOVE tells none of them."""

    name: str
    most: int | None
    is_move: bool


@dataclass(frozen=True, slots=True)
class Close:
    """The end of a cursor; None: of all."""

    name: str | None


def parse_declare(sql: str) -> Declare | None:
    """The cursor that a text declares; None: it is something else."""
    found = _DECLARE.fullmatch(sql)
    if found is None:
        return None
    options = found["options"].upper().split()
    is_held = (found["hold"] or "").upper() == "WITH"
    return Declare(_plain(found["name"]), found["query"], "BINARY" in options, is_held)


def parse_fetch(sql: str) -> Fetch | Close | None:
    """What a text asks of a cursor; None: it is something else.

    Raises:
        QueryFailedError: it asks to go back.
    """
    closed = _CLOSE.fullmatch(sql)
    if closed is not None:
        return Close(None if closed["name"].upper() == "ALL" else _plain(closed["name"]))
    found = _FETCH.fullmatch(sql)
    if found is None:
        return None
    forward = _FORWARD.fullmatch(found["how"].strip())
    if forward is None:
        raise QueryFailedError("cursor can only scan forward", code="55000")
    count = (forward["count"] or "1").upper()
    most = None if count == "ALL" else 1 if count == "NEXT" else int(count)
    return Fetch(_plain(found["name"]), most, found["verb"].upper() == "MOVE")


def _plain(name: str) -> str:
    """A name as it is kept: quoted as written, else in lower case."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()

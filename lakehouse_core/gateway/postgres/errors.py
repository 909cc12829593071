"""Errors as PostgreSQL's clients read them: a SQLSTATE, a message, a place in the statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import EngineError, LakehouseError
from lakehouse_core.gateway.auth import NotAuthenticatedError
from lakehouse_core.gateway.postgres.messages import WireError, failure
from lakehouse_core.gateway.trino.errors import of_exception

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERNAL = "XX000"
_STATE = re.compile(r"[0-9A-Z]{5}")
# Trino's names of errors (every engine's are told by them already) → SQLSTATE.
_STATES: Mapping[str, str] = {
    "SYNTAX_ERROR": "42601",
    "USER_CANCELED": "57014",
    "PERMISSION_DENIED": "42501",
    "NOT_FOUND": "42704",
    "FUNCTION_NOT_FOUND": "42883",
    "DIVISION_BY_ZERO": "22012",
    "INVALID_CAST_ARGUMENT": "22P02",
    "NOT_SUPPORTED": "0A000",
    "NUMERIC_VALUE_OUT_OF_RANGE": "22003",
    "QUERY_REJECTED": "42501",
    "QUERY_TEXT_TOO_LARGE": "54000",
    "SCHEMA_NOT_FOUND": "3F000",
    "TABLE_NOT_FOUND": "42P01",
    "COLUMN_NOT_FOUND": "42703",
    "TYPE_MISMATCH": "42804",
    "AMBIGUOUS_NAME": "42702",
    "GENERIC_USER_ERROR": "42000",
    "NO_NODES_AVAILABLE": "57P03",
    "REMOTE_HOST_GONE": "08006",
    "QUERY_QUEUE_FULL": "53300",
    "EXCEEDED_TIME_LIMIT": "57014",
    "EXCEEDED_LOCAL_MEMORY_LIMIT": "53200",
}


def state_of(error: BaseException) -> str:
    """The SQLSTATE of an error."""
    if isinstance(error, NotAuthenticatedError):
        return "28P01"
    if isinstance(error, WireError):
        return "08P01"
    if isinstance(error, EngineError) and _STATE.fullmatch(error.code or ""):
        return str(error.code)
    return _STATES.get(of_exception(error).name, INTERNAL)


def error_message(
    error: BaseException, sql: str | None = None, *, severity: str = "ERROR"
) -> bytes:
    """An error of ours for a client; of an unforeseen one it reads no details.

    Args:
        error: what happened.
        sql: the statement as the client sent it, when the error's place is a place in it.
        severity: ERROR; FATAL when the connection ends.
    """
    told = str(error) if isinstance(error, LakehouseError) else of_exception(error).message
    fields = [(b"S", severity), (b"V", severity), (b"C", state_of(error)), (b"M", told)]
    place = error.position if isinstance(error, EngineError) else None
    if place is not None and sql is not None:
        fields.append((b"P", str(_offset(sql, place))))
    return failure(fields)


def _offset(sql: str, place: tuple[int, int]) -> int:
    """The character of a statement, from 1, that line and column name."""
    lines = sql.splitlines(keepends=True)
    line = min(max(place[0], 1), max(len(lines), 1))
    return sum(len(one) for one in lines[: line - 1]) + max(place[1], 1)

"""Errors as Trino's clients read them: code, name, type, place, message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lakehouse_core.domain.errors import (
    EngineError,
    EngineUnavailableError,
    LakehouseError,
    QueryCancelledError,
)
from lakehouse_core.routing.lease import RoutingError

if TYPE_CHECKING:
    from collections.abc import Mapping

ErrorType = Literal["USER_ERROR", "INTERNAL_ERROR", "INSUFFICIENT_RESOURCES", "EXTERNAL"]

# Trino's own numbers (StandardErrorCode); its clients decide by them what to retry.
_CODES: Mapping[str, int] = {
    "GENERIC_USER_ERROR": 0,
    "SYNTAX_ERROR": 1,
    "ABANDONED_QUERY": 2,
    "USER_CANCELED": 3,
    "PERMISSION_DENIED": 4,
    "NOT_FOUND": 5,
    "FUNCTION_NOT_FOUND": 6,
    "DIVISION_BY_ZERO": 8,
    "INVALID_CAST_ARGUMENT": 9,
    "NOT_SUPPORTED": 13,
    "NUMERIC_VALUE_OUT_OF_RANGE": 19,
    "QUERY_REJECTED": 31,
    "QUERY_TEXT_TOO_LARGE": 35,
    "SCHEMA_NOT_FOUND": 45,
    "TABLE_NOT_FOUND": 46,
    "COLUMN_NOT_FOUND": 47,
    "TYPE_MISMATCH": 58,
    "AMBIGUOUS_NAME": 62,
    "INVALID_PARAMETER_USAGE": 80,
    "GENERIC_INTERNAL_ERROR": 65_536,
    "NO_NODES_AVAILABLE": 65_541,
    "REMOTE_HOST_GONE": 65_558,
    "GENERIC_INSUFFICIENT_RESOURCES": 131_072,
    "QUERY_QUEUE_FULL": 131_074,
    "EXCEEDED_TIME_LIMIT": 131_075,
    "EXCEEDED_LOCAL_MEMORY_LIMIT": 131_079,
}
# What engines call an error → what Trino calls it.
_NAMES: Mapping[str, str] = {
    "SYNTAX_ERROR": "SYNTAX_ERROR",
    "ParserException": "SYNTAX_ERROR",
    "PARSE_SYNTAX_ERROR": "SYNTAX_ERROR",
    "TABLE_NOT_FOUND": "TABLE_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND": "TABLE_NOT_FOUND",
    "NOT_A_LAKE_TABLE": "TABLE_NOT_FOUND",
    "SCHEMA_NOT_FOUND": "SCHEMA_NOT_FOUND",
    "NOT_READ_ONLY": "NOT_SUPPORTED",
    "UNRESOLVED_COLUMN": "COLUMN_NOT_FOUND",
    "UNRESOLVED_ROUTINE": "FUNCTION_NOT_FOUND",
    "AMBIGUOUS_REFERENCE": "AMBIGUOUS_NAME",
    "DATATYPE_MISMATCH": "TYPE_MISMATCH",
    "DIVIDE_BY_ZERO": "DIVISION_BY_ZERO",
    "CAST_INVALID_INPUT": "INVALID_CAST_ARGUMENT",
    "ConversionException": "INVALID_CAST_ARGUMENT",
    "OutOfRangeException": "NUMERIC_VALUE_OUT_OF_RANGE",
    "NUMERIC_VALUE_OUT_OF_RANGE": "NUMERIC_VALUE_OUT_OF_RANGE",
    "OutOfMemoryException": "EXCEEDED_LOCAL_MEMORY_LIMIT",
    "CATALOG_REFUSED": "PERMISSION_DENIED",
    "INVALID_TEXT": "SYNTAX_ERROR",
}
# Denials of the router → Trino's names.
_DENIALS: Mapping[str, str] = {
    "rule": "QUERY_REJECTED",
    "authorization": "PERMISSION_DENIED",
    "guard": "PERMISSION_DENIED",
    "translation": "NOT_SUPPORTED",
    "no_route": "QUERY_REJECTED",
    "unavailable": "NO_NODES_AVAILABLE",
    "queue_full": "QUERY_QUEUE_FULL",
    "queue_timeout": "EXCEEDED_TIME_LIMIT",
}
# With these names, a statement that could not be parsed is a syntax error in the first place.
_ABOUT_THE_TEXT = frozenset({"QUERY_REJECTED", "NOT_SUPPORTED", "PERMISSION_DENIED"})
_PLACE = re.compile(r"line:? (\d+),? col(?:umn)?:? (\d+)", re.IGNORECASE)
# DuckDB calls both an unknown column and an unknown function a binder's error.
_WORDS = tuple(
    (re.compile(words, re.IGNORECASE | re.DOTALL), name)
    for words, name in (
        (r"column .* (not found|must appear|does not exist)", "COLUMN_NOT_FOUND"),
        (r"function .* does not exist", "FUNCTION_NOT_FOUND"),
        (r"division by zero", "DIVISION_BY_ZERO"),
        (r"syntax error|cannot be parsed", "SYNTAX_ERROR"),
    )
)


@dataclass(frozen=True, slots=True)
class TrinoError:
    """An error as the protocol has it."""

    name: str
    message: str
    location: tuple[int, int] | None = None  # line and column, from 1

    @property
    def code(self) -> int:
        """Trino's number of it."""
        return _CODES[self.name]

    @property
    def type(self) -> ErrorType:
        """Whose fault it is."""
        if self.code >= 131_072:
            return "INSUFFICIENT_RESOURCES"
        return "INTERNAL_ERROR" if self.code >= 65_536 else "USER_ERROR"

    def to_json(self) -> dict[str, Any]:
        """The protocol's `error`."""
        document: dict[str, Any] = {
            "message": self.message,
            "errorCode": self.code,
            "errorName": self.name,
            "errorType": self.type,
        }
        failure: dict[str, Any] = {
            "type": "io.trino.spi.TrinoException",
            "message": self.message,
            "suppressed": [],
            "stack": [],
        }
        if self.location is not None:
            place = {"lineNumber": self.location[0], "columnNumber": self.location[1]}
            document["errorLocation"] = failure["errorLocation"] = place
            document["message"] = f"line {place['lineNumber']}:{place['columnNumber']}: " + (
                self.message
            )
        document["failureInfo"] = failure
        return document


def of_denial(error: RoutingError) -> TrinoError:
    """What a client reads when the router said no."""
    denial, facts = error.decision.denial, error.decision.facts
    name = _DENIALS.get(denial.kind, "QUERY_REJECTED") if denial else "QUERY_REJECTED"
    if facts.error is not None and name in _ABOUT_THE_TEXT:
        return TrinoError("SYNTAX_ERROR", f"{error} ({facts.error})", _place(facts.error))
    return TrinoError(name, str(error))


def _place(reason: str) -> tuple[int, int] | None:
    """Line and column that a parser's words name."""
    found = _PLACE.search(reason)
    return (int(found[1]), int(found[2])) if found else None


def of_exception(error: BaseException, location: tuple[int, int] | None = None) -> TrinoError:
    """What a client reads of an error of ours; of an unforeseen one it reads no details."""
    if isinstance(error, RoutingError):
        return of_denial(error)
    if isinstance(error, QueryCancelledError):
        return TrinoError("USER_CANCELED", str(error) or "Query was canceled")
    if isinstance(error, EngineUnavailableError):
        return TrinoError("REMOTE_HOST_GONE", str(error))
    if isinstance(error, EngineError):
        return TrinoError(_name(error), str(error), location)
    if isinstance(error, LakehouseError):
        return TrinoError("GENERIC_USER_ERROR", str(error), location)
    kind = type(error).__name__
    return TrinoError(
        "GENERIC_INTERNAL_ERROR", f"Internal error ({kind}); the gateway's log says more"
    )


def _name(error: EngineError) -> str:
    code = (error.code or "").partition(".")[0]
    if code in _CODES:
        return code
    by_words = next((name for words, name in _WORDS if words.search(str(error))), None)
    return _NAMES.get(code) or by_words or "GENERIC_USER_ERROR"

"""A query event as JSON and back: the form of the DuckDB journal, and of open queries."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from collectors.base import BadRowError
from lakehouse_core.domain.query import QueryEvent, QueryStatus, StatementKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_REQUIRED = ("engine_id", "query_id", "status", "submitted_at")


def to_json(event: QueryEvent) -> dict[str, Any]:
    """The event's known fields; times ISO 8601, unknown fields left out."""
    known = {f.name: getattr(event, f.name) for f in fields(event)}
    return {n: _plain(v) for n, v in known.items() if v is not None and v != () and n != "revision"}


def from_json(payload: object, collected_at: datetime) -> QueryEvent:
    """The event of a JSON object; fields that are not ours are ignored.

    Raises:
        BadRowError: it is not an object, lacks a required field, or a value does not fit; says
            which.
    """
    if not isinstance(payload, dict):
        raise BadRowError(f"expected a JSON object, got {type(payload).__name__}")
    missing = [name for name in _REQUIRED if payload.get(name) in (None, "")]
    if missing:
        raise BadRowError(f"missing field {', '.join(missing)}")
    values = {n: _field(n, parse, payload) for n, parse in _PARSERS.items() if n in payload}
    return QueryEvent(**{"collected_at": collected_at, **_without_none(values)})


def parse_time(value: object) -> datetime:
    """An ISO 8601 time with a zone, as UTC.

    Raises:
        ValueError: it is none, or has no zone.
    """
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004 callers treat every misfit alike
    parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is None:
        raise ValueError("has no time zone")
    return parsed.astimezone(UTC)


def _field(name: str, parse: Callable[[Any], Any], payload: Mapping[str, Any]) -> Any:
    value = payload[name]
    if value is None:
        return None
    try:
        return parse(value)
    except (TypeError, ValueError) as error:
        raise BadRowError(f"field {name}: {value!r:.80} does not fit ({error})") from error


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")  # noqa: TRY004 as above
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError("not a whole number")
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")  # noqa: TRY004 as above
    return float(value)


def _list_of(parse: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def parse_list(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError("not a list")  # noqa: TRY004 as above
        return tuple(parse(item) for item in value)

    return parse_list


def _origin(value: Any) -> str:
    if value not in ("real", "simulated"):
        raise ValueError("is neither real nor simulated")
    return str(value)


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "status": QueryStatus,
    "statement_kind": StatementKind,
    "tags": _list_of(_text),
    "snapshot_ids": _list_of(_whole),
    "origin": _origin,
}
_BY_TYPE: dict[str, Callable[[Any], Any]] = {
    "datetime": parse_time,
    "float": _number,
    "int": _whole,
}


def _parsers() -> dict[str, Callable[[Any], Any]]:
    parsers: dict[str, Callable[[Any], Any]] = {}
    for f in fields(QueryEvent):
        if f.name != "revision":
            kind = str(f.type).split(" ", maxsplit=1)[0]
            parsers[f.name] = _SPECIAL.get(f.name) or _BY_TYPE.get(kind, _text)
    return parsers


_PARSERS = _parsers()

"""Reading Flink's JSON: a value is what it should be, or the row is bad and the field is named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from collectors.base import BadRowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LAST_MOMENT = 253_402_300_799_000  # of the year 9999, beyond which there is no datetime
NEVER = 2**63 - 1  # Java's greatest long: Flink's word for "not set"


def text(payload: Mapping[str, Any], name: str) -> str | None:
    """A text, or None."""
    value = payload.get(name)
    return value if isinstance(value, str) else None


def number(payload: Mapping[str, Any], name: str) -> int | None:
    """A whole number; None when there is none, when it is negative, or stands for "not set".

    Raises:
        BadRowError: there is something else.
    """
    value = payload.get(name)
    if value is None or value == "NaN":
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRowError(f"field {name}: {value!r:.80} is no whole number")
    return value if 0 <= value < NEVER else None


def moment(payload: Mapping[str, Any], name: str) -> datetime | None:
    """A time; None where Flink writes 0 or -1.

    Raises:
        BadRowError: there is something else.
    """
    value = number(payload, name)
    if not value:
        return None
    if value > _LAST_MOMENT:
        raise BadRowError(f"field {name}: {value} is no time in milliseconds")
    return datetime.fromtimestamp(value / 1_000, UTC)


def section(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object, empty when there is none."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def objects(payload: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    """The objects of a list."""
    value = payload.get(name)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item

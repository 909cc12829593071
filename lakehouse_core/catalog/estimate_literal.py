"""Literals of a statement as values of a column: the least and the greatest they can mean.

Engines differ in how they convert: a timestamp without zone compared with an instant means the
session's zone, a decimal compared with a `float` may be rounded or not. Both ends are kept then, so
that no file is left out under any reading. None: no reading is safe, so nothing can be said.
"""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.catalog.bounds import ordered_decimal
from lakehouse_core.sql import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.sql.literal import Constant

Range = tuple[Any, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.date()
_EAST, _WEST = timedelta(hours=14), timedelta(hours=12)  # the zones of the earth
_MICROSECOND = timedelta(microseconds=1)


def range_of(value: Constant, type_name: str) -> Range | None:
    """What a literal can mean as a value of a column of that type, as its axis has values."""
    base, _, rest = type_name.partition("(")
    convert = _CONVERTERS.get(base.partition("[")[0])
    if convert is None or value is None or isinstance(value, literal.Unknown | literal.Span):
        return None
    try:
        return convert(value, rest)
    except (ArithmeticError, ValueError):
        return None


def _whole(value: Constant, _: str) -> Range | None:
    number = literal.to_number(value)
    return (number, number) if isinstance(number, Decimal) else None


def _float(value: Constant, _: str) -> Range | None:
    number = literal.to_number(value)
    if not isinstance(number, Decimal):
        return None
    with np.errstate(over="ignore"):
        wide, narrow = float(number), float(np.float32(float(number)))
    return min(wide, narrow), max(wide, narrow)


def _double(value: Constant, _: str) -> Range | None:
    number = literal.to_number(value)
    return (float(number), float(number)) if isinstance(number, Decimal) else None


def _decimal(value: Constant, rest: str) -> Range | None:
    number = literal.to_number(value)
    if not isinstance(number, Decimal):
        return None
    scaled = number.scaleb(int(rest.rstrip(")").split(",")[1]))
    least, most = (int(scaled.to_integral_value(way)) for way in (ROUND_FLOOR, ROUND_CEILING))
    return ordered_decimal(least), ordered_decimal(most)


def _date(value: Constant, _: str) -> Range | None:
    found = _time(value)
    if isinstance(found, datetime):
        if found.tzinfo is not None:
            day = (found.astimezone(UTC).date() - _EPOCH_DAY).days
            return day - 1, day + 2
        at_midnight = found == datetime(found.year, found.month, found.day)  # noqa: DTZ001 as found
        day = (found.date() - _EPOCH_DAY).days
        within = Decimal(day) + (0 if at_midnight else Decimal("0.5"))
        return within, within
    if isinstance(found, date):
        day = (found - _EPOCH_DAY).days
        return day, day
    return None


def _timestamp(value: Constant, _: str) -> Range | None:
    found = literal.to_timestamp(_time(value))
    if not isinstance(found, datetime):
        return None
    if found.tzinfo is not None:
        at = _microseconds(found)
        return at - _EAST // _MICROSECOND, at + _EAST // _MICROSECOND
    at = _microseconds(found.replace(tzinfo=UTC))
    return at, at


def _instant(value: Constant, _: str) -> Range | None:
    found = literal.to_timestamp(_time(value))
    if not isinstance(found, datetime):
        return None
    if found.tzinfo is None:
        at = _microseconds(found.replace(tzinfo=UTC))
        return at - _EAST // _MICROSECOND, at + _WEST // _MICROSECOND
    at = _microseconds(found)
    return at, at


def _in_nanoseconds(
    convert: Callable[[Constant, str], Range | None],
) -> Callable[[Constant, str], Range | None]:
    def converted(value: Constant, rest: str) -> Range | None:
        found = convert(value, rest)
        # Digits beyond microseconds are cut off when a literal is read.
        return None if found is None else (found[0] * 1_000, found[1] * 1_000 + 999)

    return converted


def _text(value: Constant, _: str) -> Range | None:
    if not isinstance(value, str):
        return None  # an engine may convert the column instead
    encoded = value.encode("utf-8", "surrogatepass")
    return encoded, encoded


def _uuid(value: Constant, _: str) -> Range | None:
    found = uuid.UUID(value).bytes if isinstance(value, str) else None
    return None if found is None else (found, found)


def _boolean(value: Constant, _: str) -> Range | None:
    truth = literal.to_boolean(value)
    return None if not isinstance(truth, bool) else (bytes([truth]), bytes([truth]))


def _time(value: Constant) -> Constant:
    if not isinstance(value, str):
        return value
    day = literal.to_date(value) if len(value.strip()) <= len("0000-00-00") else literal.UNKNOWN
    return literal.to_timestamp(value) if isinstance(day, literal.Unknown) else day


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


_CONVERTERS: dict[str, Callable[[Constant, str], Range | None]] = {
    "int": _whole,
    "long": _whole,
    "float": _float,
    "double": _double,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _instant,
    "timestamp_ns": _in_nanoseconds(_timestamp),
    "timestamptz_ns": _in_nanoseconds(_instant),
    "string": _text,
    "uuid": _uuid,
    "boolean": _boolean,
}

"""Values of literals: constants, arithmetic with dates, and one canonical form for all dialects.

A constant is a Python value: Decimal, str, bool, date, datetime, None for NULL, a `Span` for an
interval, or UNKNOWN for what nobody can tell from the text (parameters, functions, subqueries).
"""

from __future__ import annotations

import calendar
import contextlib
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal

from lakehouse_core.sql.records import LiteralValue
from lakehouse_core.sql.redaction import holds_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.sql.records import LiteralKind

MAX_TEXT = 256  # characters kept of a value
_MAX_DIGITS = 64
_MAX_EXPONENT = 400
_LONGEST_SPAN = Decimal(10**9)  # of any unit; beyond the calendar of every engine

_DATE = re.compile(r"\s*(\d{1,4})-(\d{1,2})-(\d{1,2})\s*\Z")
_TIME = re.compile(r"\s*(\d{1,4}-\d{1,2}-\d{1,2})[ T]+(\S.*?)\s*\Z")
_SPAN_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)")
_MONTHS = {"year": 12, "yr": 12, "y": 12, "quarter": 3, "month": 1, "mon": 1}
_MICROSECONDS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


class Unknown:
    """What the text does not say."""


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Span:
    """An interval; months have no fixed length, so they are counted apart."""

    months: int = 0
    microseconds: int = 0

    def __neg__(self) -> Span:
        return Span(-self.months, -self.microseconds)

    def __add__(self, other: Span) -> Span:
        return Span(self.months + other.months, self.microseconds + other.microseconds)


Constant = Decimal | str | bool | date | datetime | Span | Unknown | None


# --- what a constant is in another type ------------------------------------------------------


def to_number(value: Constant) -> Constant:
    """The constant as a number."""
    if isinstance(value, bool):
        return UNKNOWN
    if value is None or isinstance(value, Decimal):
        return value
    if not isinstance(value, str) or len(value) > _MAX_DIGITS:
        return UNKNOWN
    try:
        number = Decimal(value.strip().replace("_", ""))
    except InvalidOperation:
        return UNKNOWN
    return number if number.is_finite() and _is_sane(number) else UNKNOWN


def _is_sane(number: Decimal) -> bool:
    """Whether a number fits any engine's types; computing with 1e99999999 would take for ever."""
    return abs(number.adjusted()) <= _MAX_EXPONENT


def to_whole(value: Constant) -> Constant:
    """The constant as a whole number; engines differ in how they round."""
    number = to_number(value)
    if isinstance(number, Decimal) and number != number.to_integral_value():
        return UNKNOWN
    return number


def to_text(value: Constant) -> Constant:
    """The constant as a text, where all engines agree on it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    is_whole = isinstance(value, Decimal) and value == value.to_integral_value()
    return canonical_number(value) if isinstance(value, Decimal) and is_whole else UNKNOWN


def to_boolean(value: Constant) -> Constant:
    """The constant as a boolean."""
    if value is None or isinstance(value, bool):
        return value
    words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    return words.get(value.strip().lower(), UNKNOWN) if isinstance(value, str) else UNKNOWN


def to_date(value: Constant) -> Constant:
    """The constant as a date."""
    if isinstance(value, datetime):
        return value.date() if value.tzinfo is None else UNKNOWN
    if value is None or isinstance(value, date):
        return value
    if not isinstance(value, str):
        return UNKNOWN
    found = _DATE.match(value)
    if found is None:
        return to_date(_timestamp(value)) if len(value) > len("0000-00-00") else UNKNOWN
    return make_date(*(int(part) for part in found.groups()))


def to_timestamp(value: Constant) -> Constant:
    """The constant as a timestamp; with a zone only when the text has one."""
    if isinstance(value, datetime) or value is None:
        return value
    day = to_date(value) if not isinstance(value, str) or _DATE.match(value) else None
    if isinstance(day, date):
        return datetime(day.year, day.month, day.day)  # noqa: DTZ001 the text has no zone
    return _timestamp(value) if isinstance(value, str) else UNKNOWN


def make_date(year: int, month: int, day: int) -> Constant:
    """A date from its parts."""
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        return UNKNOWN


def to_span(value: Constant, unit: str = "") -> Constant:
    """An interval: `3` with a unit, or `1 year 2 months` without."""
    if isinstance(value, str) and not unit:
        return _span_of_text(value)
    number = to_number(value)
    return _span_part(number, unit) if isinstance(number, Decimal) else UNKNOWN


def _span_of_text(text: str) -> Constant:
    total, position = Span(), 0
    while position < len(text.rstrip()):
        found = _SPAN_PART.match(text, position)
        part = _span_part(Decimal(found[1]), found[2]) if found else UNKNOWN
        if found is None or not isinstance(part, Span):
            return UNKNOWN
        total, position = total + part, found.end()
    return total if position else UNKNOWN


def _span_part(number: Decimal, unit: str) -> Constant:
    word = unit.lower()
    if abs(number) > _LONGEST_SPAN:
        return UNKNOWN
    for name in (word, word.removesuffix("s")):
        if name in _MONTHS:
            months = number * _MONTHS[name]
            return Span(months=int(months)) if months == int(months) else UNKNOWN
        if name in _MICROSECONDS:
            return Span(microseconds=int(number * _MICROSECONDS[name]))
    return UNKNOWN


def _timestamp(text: str) -> Constant:
    found = _TIME.match(text)
    day = to_date(found[1]) if found else UNKNOWN
    if found is None or not isinstance(day, date):
        return UNKNOWN
    clock = re.sub(r"\s*(?:UTC|GMT|Z)\Z", "+00:00", found[2])
    clock = re.sub(r"\s+(?=[+-])", "", clock)
    try:
        return datetime.fromisoformat(f"{day.isoformat()}T{clock}")
    except ValueError:
        return UNKNOWN


# --- arithmetic ------------------------------------------------------------------------------


def add(left: Constant, right: Constant) -> Constant:
    """Sum of two constants: numbers, or a time and an interval (a bare number counts days)."""
    if left is None or right is None:
        return None
    if isinstance(left, Span) and not isinstance(right, Span):
        left, right = right, left
    if isinstance(left, Span) and isinstance(right, Span):
        return left + right
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return _sane(left + right)
    if isinstance(right, Decimal) and isinstance(left, date) and not isinstance(left, datetime):
        right = to_span(right, "day")
    if not isinstance(right, Span):
        return UNKNOWN
    if isinstance(left, str):
        left = to_date(left) if _DATE.match(left) else to_timestamp(left)
    return _later(left, right) if isinstance(left, date) else UNKNOWN


def negated(value: Constant) -> Constant:
    """The constant with the other sign."""
    if isinstance(value, bool) or not isinstance(value, Decimal | Span):
        return None if value is None else UNKNOWN
    return -value


def product(left: Constant, right: Constant) -> Constant:
    """Product of two numbers, or of a number and an interval."""
    if left is None or right is None:
        return None
    if isinstance(left, Span):
        left, right = right, left
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return _sane(left * right)
    is_whole = isinstance(left, Decimal) and left == left.to_integral_value()
    is_short = isinstance(left, Decimal) and abs(left) <= _LONGEST_SPAN
    if isinstance(left, Decimal) and isinstance(right, Span) and is_whole and is_short:
        return Span(right.months * int(left), right.microseconds * int(left))
    return UNKNOWN


def _sane(number: Decimal) -> Constant:
    return number if _is_sane(number) else UNKNOWN


def _later(start: date, span: Span) -> Constant:
    """A time after an interval; a date stays a date while the interval is made of whole days."""
    try:
        year, month = divmod(start.year * 12 + start.month - 1 + span.months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        moved = start.replace(year=year, month=month + 1, day=min(start.day, last))
        days, rest = divmod(span.microseconds, _MICROSECONDS["day"])
        if rest and not isinstance(moved, datetime):
            moved = datetime(moved.year, moved.month, moved.day)  # noqa: DTZ001 it has no zone
        return moved + timedelta(days=days, microseconds=rest)
    except (ValueError, OverflowError, calendar.IllegalMonthError):
        return UNKNOWN


# --- canonical form --------------------------------------------------------------------------


def canonical(value: Constant) -> LiteralValue:
    """The value as it is shown and stored; a text that is too long is cut (see `is_whole`)."""
    if isinstance(value, Decimal):
        return LiteralValue("number", canonical_number(value))
    if isinstance(value, str):
        if holds_credentials(value):
            return LiteralValue("unknown")
        return LiteralValue("text", value[:MAX_TEXT])
    if isinstance(value, date):
        return _canonical_time(value)
    if isinstance(value, bool):
        return LiteralValue("boolean", "true" if value else "false")
    return LiteralValue("null" if value is None else "unknown")


def is_whole(value: Constant) -> bool:
    """Whether the canonical form has all of the value."""
    return not isinstance(value, str) or len(value) <= MAX_TEXT


def canonical_number(value: Decimal) -> str:
    """A number without exponent and needless zeros."""
    if not value:
        return "0"
    if abs(value.adjusted()) > _MAX_DIGITS:
        return str(value.normalize()).lower()
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _canonical_time(value: date) -> LiteralValue:
    if not isinstance(value, datetime):
        return LiteralValue("date", value.isoformat())
    zone = ""
    if value.tzinfo is not None:
        with contextlib.suppress(OverflowError):  # within hours of the first or last year
            value = value.astimezone(UTC)
        value, zone = value.replace(tzinfo=None), "Z"
    return LiteralValue("timestamp", value.isoformat(timespec="microseconds") + zone)


# --- several values --------------------------------------------------------------------------


def kind_of(values: Iterable[LiteralValue]) -> LiteralKind | Literal["mixed"]:
    """The kind of the values but nulls; unknown when one of them is."""
    kinds = {value.kind for value in values}
    if "unknown" in kinds or not kinds:
        return "unknown"
    if len(kinds) > 1:
        kinds.discard("null")
    return kinds.pop() if len(kinds) == 1 else "mixed"


def extremes(values: Iterable[LiteralValue]) -> tuple[str | None, str | None]:
    """Smallest and largest of the values but nulls; None when they have no common order."""
    known = [value for value in values if value.kind != "null"]
    kind = kind_of(known)
    texts = [value.text for value in known if value.text is not None]
    if kind in ("unknown", "mixed") or len(texts) < len(known):
        return None, None
    if kind == "number":
        return min(texts, key=Decimal), max(texts, key=Decimal)
    return min(texts), max(texts)

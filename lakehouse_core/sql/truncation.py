"""Columns cut off to a day, a month, a year: what that demands of the column itself.

    date(at) = DATE '2026-01-02'  →  at >= 2026-01-02 AND at < 2026-01-03

A truncation never turns an order round, so a comparison of what is left is a range of the column.
What a column of text or of another type makes of it the range does not say: it is of dates and
times, and only columns of these are held against them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from sqlglot import exp

from lakehouse_core.sql import literal
from lakehouse_core.sql.condition import ALWAYS, ColumnTest, Condition, Either, Every
from lakehouse_core.sql.literal import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.sql.literal import Constant
    from lakehouse_core.sql.records import Operator

MOST_LISTED = 200
DAY = "day"
_DATES = (exp.Date, exp.TsOrDsToDate)
_DATE_TYPES = frozenset({exp.DType.DATE, exp.DType.DATE32})
_TRUNCATIONS = (exp.DateTrunc, exp.TimestampTrunc, exp.DatetimeTrunc)
# Where a week begins is a setting of some engines: none is cut off to its first day.
_UNITS = frozenset({"second", "minute", "hour", DAY, "week", "month", "quarter", "year"})
_CLOCK = ("hour", "minute", "second", "microsecond")


def truncating(wrapper: exp.Expr) -> exp.Expr | str | None:
    """What a column inside a function is cut off to.

    Returns:
        A unit, the expression of one, or None where the function is no truncation.
    """
    given = [name for name, value in wrapper.args.items() if value and not isinstance(value, bool)]
    if isinstance(wrapper, exp.Cast | exp.TryCast):
        kind = wrapper.args.get("to")
        return DAY if isinstance(kind, exp.DataType) and kind.this in _DATE_TYPES else None
    if isinstance(wrapper, _DATES):
        return DAY if given == ["this"] else None
    if isinstance(wrapper, _TRUNCATIONS) and set(given) == {"this", "unit"}:
        unit = wrapper.args["unit"]
        return unit if isinstance(unit, exp.Var | exp.Literal) else None
    return None


@dataclass(frozen=True, slots=True)
class _Step:
    """The values that are cut off to the same: from the first to before the next."""

    first: date
    next: date
    is_exact: bool


def untruncated(
    column: str, unit: str, operator: Operator, values: Sequence[Constant], *, is_negated: bool
) -> Condition:
    """What a comparison of a truncated column demands of the column; nothing where it cannot tell.

    Args:
        column: the column.
        unit: what it is cut off to.
        operator: with the column on the left.
        values: what the rest is compared with.
        is_negated: rows that fulfil it are left out.
    """
    steps = [_step(unit.lower(), value) for value in values]
    known = [one for one in steps if one is not None]
    if is_negated or not known or len(known) < len(steps) or len(known) > MOST_LISTED:
        return ALWAYS
    first, last = known[0], known[-1]

    def at_least(limit: date) -> ColumnTest:
        return ColumnTest(column, ">=", (limit,))

    def below(limit: date) -> ColumnTest:
        return ColumnTest(column, "<", (limit,))

    ranges: dict[str, Condition] = {
        "=": Every((at_least(first.first), below(first.next))),
        "<": below(first.first if first.is_exact else first.next),
        "<=": below(first.next),
        ">": at_least(first.next if first.is_exact else first.first),
        ">=": at_least(first.first),
        "between": Every((at_least(first.first), below(last.next))),
        "in": Either(tuple(Every((at_least(one.first), below(one.next))) for one in known)),
    }
    return ranges.get(operator, ALWAYS)


def _step(unit: str, value: Constant) -> _Step | None:
    """The step that a value lies in."""
    name = unit.removesuffix("s")
    # A day or a time without a zone; with one, where it is cut off hangs on the session's.
    moment = literal.to_timestamp(value)
    if name not in _UNITS or not isinstance(moment, datetime) or moment.tzinfo is not None:
        return None
    floor = moment if name == "week" else _floor(name, moment)
    span = literal.to_span(literal.to_number("3" if name == "quarter" else "1"), _whole(name))
    after = literal.add(floor, span) if isinstance(span, Span) else None
    if not isinstance(after, date):
        return None
    return _Step(floor, after, is_exact=name != "week" and floor == moment)


def _whole(unit: str) -> str:
    return "month" if unit == "quarter" else unit


def _floor(unit: str, moment: datetime) -> datetime:
    if unit in _CLOCK:
        finer = _CLOCK[_CLOCK.index(unit) + 1 :]
        return moment.replace(**dict.fromkeys(finer, 0))  # type: ignore[arg-type]  # parts of a time
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == DAY:
        return day
    month = {"month": day.month, "quarter": day.month - (day.month - 1) % 3, "year": 1}[unit]
    return day.replace(month=month, day=1)

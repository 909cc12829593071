"""The window of a view: one small grammar for the pages, the CLI and exports.

`1h`, `24h`, `7d`, `2w`: the time up to now. `today`, `yesterday`, `week`, `lastweek`, `month`,
`lastmonth`: calendar periods in UTC, weeks start on Monday. `2026-11-01/2026-11-07`: whole days,
both included; with times (`2026-11-01T06:00/2026-11-01T08:00`) the end is excluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse_core.config.units import parse_duration
from lakehouse_core.domain.errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_WINDOW = "24h"
EXAMPLES = "1h, 24h, 7d, today, yesterday, week, lastweek, month, lastmonth, 2026-11-01/2026-11-07"

_DAY = timedelta(days=1)
_LONGEST = 3_650 * _DAY
_STEPS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 180, 360, 720, 1_440, 10_080, 43_200)
)
_MOST_BUCKETS = 60
_CALENDAR_LABELS = ("last week", "last month")


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open span of time, start included, end excluded, and how to say it."""

    start: datetime
    end: datetime
    label: str

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.end - self.start

    @property
    def hours(self) -> float:
        """Its length in hours, never zero."""
        return self.length / timedelta(hours=1)

    @property
    def step(self) -> timedelta:
        """The bucket that cuts it into at most sixty pieces people can name."""
        for step in _STEPS:
            if self.length / step <= _MOST_BUCKETS:
                return step
        return _STEPS[-1]

    @property
    def step_label(self) -> str:
        """The bucket in words: `30 minutes`, `hour`."""
        return _spell(self.step)

    @property
    def phrase(self) -> str:
        """The window inside a sentence: `the last 24 hours`, `today`."""
        is_rolling = self.label.startswith("last ") and self.label not in _CALENDAR_LABELS
        return f"the {self.label}" if is_rolling else self.label

    def previous(self) -> Window:
        """The span of the same length right before it."""
        return Window(self.start - self.length, self.start, f"the {_spell(self.length)} before")


def parse_window(text: str, now: datetime) -> Window:
    """Read a window; see the module for the grammar.

    Raises:
        FilterError: the text is not a window; says what is.
    """
    spec = text.strip().lower()
    try:
        if spec in _CALENDAR:
            return _CALENDAR[spec](now.astimezone(UTC))
        return _pair(text.strip()) if "/" in spec else _last(spec, now)
    except (ValueError, OverflowError) as error:
        raise FilterError(
            f"Window {text!r} is not known ({error}). Use one of: {EXAMPLES}."
        ) from error


def _last(spec: str, now: datetime) -> Window:
    length = parse_duration(spec)
    if not timedelta(minutes=1) <= length <= _LONGEST:
        raise ValueError("shorter than a minute or longer than ten years")
    return Window(now - length, now, f"last {_spell(length)}")


def _spell(length: timedelta) -> str:
    for unit, size in (
        ("day", _DAY),
        ("hour", timedelta(hours=1)),
        ("minute", timedelta(minutes=1)),
    ):
        amount = length / size
        if amount == int(amount) and (unit != "day" or amount > 1):
            return unit if amount == 1 else f"{int(amount)} {unit}s"
    return "same span"


def _pair(spec: str) -> Window:
    left, right = (part.strip() for part in spec.split("/", 1))
    start, end = _moment(left), _moment(right)
    if len(right) == len("2026-11-07"):
        end += _DAY
    if not start < end:
        raise ValueError("the end is not after the start")
    if end - start > _LONGEST:
        raise ValueError("longer than ten years")
    return Window(start, end, f"{left} to {right}")


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _today(now: datetime) -> Window:
    start = _midnight(now.date())
    return Window(start, max(now, start + timedelta(minutes=1)), "today")


def _yesterday(now: datetime) -> Window:
    end = _midnight(now.date())
    return Window(end - _DAY, end, "yesterday")


def _week(now: datetime) -> Window:
    start = _midnight(now.date() - now.weekday() * _DAY)
    return Window(start, max(now, start + timedelta(minutes=1)), "this week")


def _last_week(now: datetime) -> Window:
    end = _midnight(now.date() - now.weekday() * _DAY)
    return Window(end - 7 * _DAY, end, "last week")


def _month(now: datetime) -> Window:
    start = _midnight(now.date().replace(day=1))
    return Window(start, max(now, start + timedelta(minutes=1)), "this month")


def _last_month(now: datetime) -> Window:
    end = _midnight(now.date().replace(day=1))
    return Window(_midnight((end - _DAY).date().replace(day=1)), end, "last month")


_CALENDAR: dict[str, Callable[[datetime], Window]] = {
    "today": _today,
    "yesterday": _yesterday,
    "week": _week,
    "lastweek": _last_week,
    "month": _month,
    "lastmonth": _last_month,
}

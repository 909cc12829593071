"""How far each view has been read: the hours taken, each with the fingerprint it had then."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from collectors.events import parse_time
from collectors.positions import dump, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

_VERSION = 1
HOUR = timedelta(hours=1)
_FILLING = timedelta(hours=6)  # hours this young still get rows: those taken are known by their ids
_MOST_IDS = 5_000


@dataclass(frozen=True, slots=True)
class Span:
    """Hours to read in one statement."""

    start: datetime
    end: datetime


@dataclass(slots=True)
class ViewPosition:
    """What has been read of one view.

    Attributes:
        floor: every hour before it was read and is not looked at again; None before the first pull.
        complete_at: when everything there was had been read.
        hours: hour → its fingerprint when it was read.
        taken: hour → ids of final rows, for hours that still fill: read again, but not sent again.
    """

    floor: datetime | None = None
    complete_at: datetime | None = None
    hours: dict[datetime, str] = field(default_factory=dict)
    taken: dict[datetime, list[str]] = field(default_factory=dict)

    def changed(self, found: Mapping[datetime, str], longest: int) -> Iterator[Span]:
        """The hours that are new or different, oldest first, neighbours together."""
        start = end = None
        for hour in sorted(hour for hour, mark in found.items() if self.hours.get(hour) != mark):
            if start is None or end is None:
                start, end = hour, hour + HOUR
            elif hour == end and end - start < longest * HOUR:
                end = hour + HOUR
            else:
                yield Span(start, end)
                start, end = hour, hour + HOUR
        if start is not None and end is not None:
            yield Span(start, end)

    def mark(self, found: Mapping[datetime, str], start: datetime, end: datetime) -> None:
        """Note that the hours from `start` up to `end` were read."""
        self.hours.update({h: mark for h, mark in found.items() if start <= h < end})

    def take(self, hour: datetime, ids: Sequence[str], now: datetime) -> None:
        """Note rows that were taken in their final form, while their hour still fills."""
        if hour < now - _FILLING:
            return
        self.taken[hour] = [*self.taken.get(hour, ()), *ids]
        while sum(map(len, self.taken.values())) > _MOST_IDS:
            del self.taken[min(self.taken)]

    def finish(self, now: datetime, overlap: timedelta) -> None:
        """Note that everything was read, and forget what is not looked at again."""
        floor = truncated(now - overlap)
        self.floor = floor if self.floor is None else max(self.floor, floor)
        self.complete_at = now
        self.hours = {h: mark for h, mark in self.hours.items() if h >= self.floor}
        self.taken = {h: ids for h, ids in self.taken.items() if h >= now - _FILLING}


@dataclass(slots=True)
class SnowflakePosition:
    """The positions of all views."""

    views: dict[str, ViewPosition] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> SnowflakePosition:
        """Read a stored position.

        Raises:
            SourceError: it was not written by this source.
        """
        if text is None:
            return cls()
        return load(text, _VERSION, "Snowflake", cls._build)

    @classmethod
    def _build(cls, data: dict[str, Any]) -> SnowflakePosition:
        return cls({name: _view(one) for name, one in data["views"].items()})

    def dump(self) -> str:
        """The position as text."""
        return dump(_VERSION, views={name: _plain(one) for name, one in self.views.items()})


def truncated(time: datetime) -> datetime:
    """The hour a time lies in."""
    return time.replace(minute=0, second=0, microsecond=0)


def _plain(one: ViewPosition) -> dict[str, Any]:
    return {
        "floor": one.floor.isoformat() if one.floor else None,
        "complete_at": one.complete_at.isoformat() if one.complete_at else None,
        "hours": {hour.isoformat(): mark for hour, mark in one.hours.items()},
        "taken": {hour.isoformat(): ids for hour, ids in one.taken.items()},
    }


def _view(data: dict[str, Any]) -> ViewPosition:
    return ViewPosition(
        floor=parse_time(data["floor"]) if data["floor"] else None,
        complete_at=parse_time(data["complete_at"]) if data["complete_at"] else None,
        hours={parse_time(hour): str(mark) for hour, mark in data["hours"].items()},
        taken={parse_time(hour): list(ids) for hour, ids in data["taken"].items()},
    )

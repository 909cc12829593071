"""How far a workgroup's history has been read.

Athena lists queries newest first and tells no times in the list, so a pull that is cut leaves a
stretch between what it read and what was read before. Such a stretch is part of the position: the
next pull reads what is new first, then goes on with the stretch where it was left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.events import parse_time
from collectors.positions import dump, load

if TYPE_CHECKING:
    from datetime import datetime, timedelta

_VERSION = 1


@dataclass(slots=True, eq=False)  # two of them may look alike for a moment
class Stretch:
    """Pages still to be read: from a token (None: from the top) down to a time (None: all)."""

    token: str | None
    until: datetime | None


@dataclass(slots=True)
class Open:
    """A query to be asked for by its id again: it runs, or Athena did not tell yet.

    Attributes:
        since: when it was submitted, or first asked for.
        event: what is in the store of it, as JSON and without secrets; None: nothing.
    """

    since: datetime
    event: dict[str, Any] | None = None


@dataclass(slots=True)
class WorkgroupPosition:
    """What has been read of one workgroup.

    Attributes:
        head: when the newest query taken was submitted.
        complete_at: when everything there was had been read.
        settled: final queries submitted within the overlap: they are listed again, not read again.
        open: id → a query that must be looked at again.
        stretches: what cut pulls have left, newest first.
    """

    head: datetime | None = None
    complete_at: datetime | None = None
    settled: dict[str, datetime] = field(default_factory=dict)
    open: dict[str, Open] = field(default_factory=dict)
    stretches: list[Stretch] = field(default_factory=list)

    def horizon(self, now: datetime, overlap: timedelta) -> datetime | None:
        """Older than this, everything was read; a clock that ran ahead does not move it."""
        return None if self.head is None else min(self.head, now) - overlap

    def settle(self, query_id: str, submitted: datetime, horizon: datetime | None) -> None:
        """Note that a query was taken in its final form."""
        self.open.pop(query_id, None)
        if horizon is None or submitted >= horizon:
            self.settled[query_id] = submitted

    def forget(self, horizon: datetime | None) -> None:
        """Drop settled queries that are not listed again."""
        if horizon is not None:
            self.settled = {i: at for i, at in self.settled.items() if at >= horizon}


@dataclass(slots=True)
class AthenaPosition:
    """The positions of all workgroups; one that is not collected any more keeps its own."""

    workgroups: dict[str, WorkgroupPosition] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> AthenaPosition:
        """Read a stored position.

        Raises:
            SourceError: it was not written by this source.
        """
        if text is None:
            return cls()
        return load(text, _VERSION, "Athena", cls._build)

    @classmethod
    def _build(cls, data: dict[str, Any]) -> AthenaPosition:
        return cls({name: _workgroup(one) for name, one in data["workgroups"].items()})

    def dump(self) -> str:
        """The position as text."""
        return dump(
            _VERSION, workgroups={name: _plain(one) for name, one in self.workgroups.items()}
        )


def _plain(one: WorkgroupPosition) -> dict[str, Any]:
    return {
        "head": _iso(one.head),
        "complete_at": _iso(one.complete_at),
        "settled": {i: at.isoformat() for i, at in one.settled.items()},
        "open": {i: [o.since.isoformat(), o.event] for i, o in one.open.items()},
        "stretches": [[s.token, _iso(s.until)] for s in one.stretches],
    }


def _workgroup(data: dict[str, Any]) -> WorkgroupPosition:
    return WorkgroupPosition(
        head=_time(data["head"]),
        complete_at=_time(data["complete_at"]),
        settled={i: parse_time(at) for i, at in data["settled"].items()},
        open={i: Open(parse_time(since), event) for i, (since, event) in data["open"].items()},
        stretches=[Stretch(token, _time(until)) for token, until in data["stretches"]],
    )


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _time(value: str | None) -> datetime | None:
    return None if value is None else parse_time(value)

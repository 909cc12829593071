"""How far Trino's history has been read: which queries are settled, which are still open.

A coordinator keeps its history in memory only (100 queries, 15 minutes by default), so a position
is the set of remembered queries that need no further look; it is bounded by what Trino remembers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collectors.positions import dump, load

if TYPE_CHECKING:
    from collections.abc import Collection

_VERSION = 1


@dataclass(frozen=True, slots=True)
class QueryNumber:
    """The parts of `20261116_062450_00012_2i2ti`: day, running number of that day, coordinator."""

    day: str
    number: int
    coordinator: str

    @classmethod
    def parse(cls, query_id: str) -> QueryNumber | None:
        """The parts of a query id; None when it was made by other rules."""
        parts = query_id.split("_")
        if len(parts) != 4 or not parts[0].isdigit() or not parts[2].isdigit():
            return None
        return cls(parts[0], int(parts[2]), parts[3])


@dataclass(frozen=True, slots=True)
class Gap:
    """Queries that came and went between two looks."""

    after: QueryNumber
    before: QueryNumber

    @property
    def is_over_midnight(self) -> bool:
        """Whether numbers started anew in between: how many are missing before that is unknown."""
        return self.after.day != self.before.day

    @property
    def missing(self) -> int:
        """How many at most of the day of `before`."""
        if self.is_over_midnight:
            return self.before.number  # each day starts with number 0
        return self.before.number - self.after.number - 1

    @property
    def reason(self) -> str:
        """What is missing, in words."""
        first = (
            f"up to {self.missing} queries between numbers {self.after.number} and "
            f"{self.before.number} of {self.after.day}"
        )
        if self.is_over_midnight:
            first = (
                f"up to {self.missing} queries before number {self.before.number} of "
                f"{self.before.day}, and any after number {self.after.number} of {self.after.day}"
            )
        return (
            f"history was dropped before it was read: {first}; collect more often or raise "
            "query.max-history and query.min-expire-age in Trino"
        )


@dataclass(slots=True)
class TrinoPosition:
    """What has been read; changed query by query, written down with each batch.

    Attributes:
        settled: ids that are in the store in their final form and still remembered by Trino.
        running: events, as JSON and without secrets, of queries that were not over when last seen.
        newest: the id with the highest number seen.
    """

    settled: set[str] = field(default_factory=set)
    running: dict[str, dict[str, Any]] = field(default_factory=dict)
    newest: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> TrinoPosition:
        """Read a stored position.

        Raises:
            SourceError: it was not written by this source.
        """
        if text is None:
            return cls()
        return load(text, _VERSION, "Trino", cls._build)

    @classmethod
    def _build(cls, data: dict[str, Any]) -> TrinoPosition:
        return cls(set(data["settled"]), dict(data["running"]), data["newest"])

    def dump(self) -> str:
        """The position as text."""
        settled = sorted(self.settled)
        return dump(_VERSION, settled=settled, running=self.running, newest=self.newest)

    def settle(self, query_id: str) -> None:
        """Note that a query was taken in its final form."""
        self.settled.add(query_id)
        self.running.pop(query_id, None)

    def finish_listing(self, listed: Collection[str]) -> None:
        """Note that a whole listing was read, and forget what Trino has forgotten."""
        self.settled.intersection_update(listed)
        self.newest = max([*listed, *([self.newest] if self.newest else [])], default=None)

    def restart(self, listed: Collection[str]) -> tuple[QueryNumber, str] | None:
        """The last query seen of a coordinator that is gone, and the coordinator there is now."""
        last = QueryNumber.parse(self.newest) if self.newest else None
        newest = QueryNumber.parse(max(listed, default=""))
        if last is None or newest is None or newest.coordinator == last.coordinator:
            return None
        known = {n.coordinator for n in map(QueryNumber.parse, listed) if n is not None}
        return None if last.coordinator in known else (last, newest.coordinator)

    def gap(self, listed: Collection[str]) -> Gap | None:
        """Queries missing between the newest one seen and the oldest one Trino still knows."""
        last = QueryNumber.parse(self.newest) if self.newest else None
        if last is None:
            return None
        numbers = [n for n in map(QueryNumber.parse, listed) if n is not None]
        # Trino counts anew each day (UTC): what it still knows begins with its earliest day.
        later = [n for n in numbers if n.coordinator == last.coordinator and n.day >= last.day]
        if not later:
            return None
        found = Gap(last, min(later, key=lambda n: (n.day, n.number)))
        return found if found.missing > 0 else None

"""Who runs how much: counted when a statement takes its place, and when it gives it back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.routing.groups import Endpoint, Group, Member


@dataclass(frozen=True, slots=True)
class Place:
    """What a running statement holds."""

    engine_id: EngineId
    group: str
    member: str
    endpoint: str | None


@dataclass(slots=True)
class Capacity:
    """The counts of one gateway; only its event loop touches them.

    Attributes:
        foreign: statements of others on each engine, as its probe saw them.
    """

    foreign: dict[EngineId, int] = field(default_factory=dict)
    _engines: Counter[EngineId] = field(default_factory=Counter)
    _members: Counter[tuple[str, str]] = field(default_factory=Counter)
    _groups: Counter[str] = field(default_factory=Counter)
    _endpoints: Counter[str] = field(default_factory=Counter)

    def running(self, engine_id: EngineId) -> int:
        """Our statements on an engine."""
        return self._engines[engine_id]

    def load(self, engine_id: EngineId) -> int:
        """Everybody's statements on an engine, as far as known."""
        return self._engines[engine_id] + self.foreign.get(engine_id, 0)

    def in_group(self, group: str) -> int:
        """Our statements of a group."""
        return self._groups[group]

    def in_endpoint(self, endpoint: str) -> int:
        """Our statements that came through an endpoint."""
        return self._endpoints[endpoint]

    def has_room(self, group: Group, member: Member) -> bool:
        """Whether a member may take one more statement of a group."""
        if member.limit is not None and self._engines[member.engine_id] >= member.limit:
            return False
        limit = group.member_limit
        return limit is None or self._members[group.name, member.name] < limit

    def lets_in(self, endpoint: Endpoint | None) -> bool:
        """Whether one more statement of an endpoint may run."""
        if endpoint is None or endpoint.settings.maxRunningQueries is None:
            return True
        return self._endpoints[endpoint.name] < endpoint.settings.maxRunningQueries

    def take(self, place: Place) -> None:
        """A statement starts."""
        self._engines[place.engine_id] += 1
        self._members[place.group, place.member] += 1
        self._groups[place.group] += 1
        if place.endpoint is not None:
            self._endpoints[place.endpoint] += 1

    def give_back(self, place: Place) -> None:
        """A statement ended."""
        self._engines[place.engine_id] -= 1
        self._members[place.group, place.member] -= 1
        self._groups[place.group] -= 1
        if place.endpoint is not None:
            self._endpoints[place.endpoint] -= 1

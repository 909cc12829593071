"""Reading one workgroup: queries still open by their ids, what is new, what cut pulls have left."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from collectors.athena.config import MOST_IDS, RETENTION
from collectors.athena.faults import RefusedRequestError
from collectors.athena.mapping import is_final, submitted_at, to_observed
from collectors.athena.position import Open, Stretch
from collectors.base import BadRowError
from collectors.events import from_json, to_json
from collectors.letters import dead_letter, gap_letter
from collectors.understanding import Observed
from lakehouse_core.domain.errors import SourceError
from lakehouse_core.domain.query import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from collectors.athena.client import AthenaApi, Looked, Page
    from collectors.athena.config import AthenaSettings
    from collectors.athena.position import WorkgroupPosition
    from collectors.understanding import Understanding
    from lakehouse_core.domain.agent import DeadLetter

# Athena ends a statement itself after hours at most: what it has not told of by then is lost.
GIVE_UP = timedelta(days=2)


@dataclass(slots=True)
class Haul:
    """What one batch gathers."""

    observed: list[Observed] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.observed) + len(self.letters)


class WorkgroupReader:
    """Reads a workgroup, changing its position as it goes; the caller writes it with each haul."""

    def __init__(
        self,
        name: str,
        settings: AthenaSettings,
        position: WorkgroupPosition,
        understanding: Understanding,
        now: datetime,
    ) -> None:
        self._name = name
        self._settings = settings
        self._position = position
        self._understanding = understanding
        self._now = now
        self._haul = Haul()

    def read(self, api: AthenaApi) -> Iterator[Haul]:
        """Yield hauls; at each the position is that of all that was yielded.

        A fault half way yields what was read before it is raised.
        """
        try:
            yield from self._read(api)
        except SourceError:
            yield self._take_haul()
            raise

    def _read(self, api: AthenaApi) -> Iterator[Haul]:
        position = self._position
        self._note_what_expired()
        self._look_at_open(api)
        until = position.horizon(self._now, self._settings.overlap)
        yield from self._walk(api, Stretch(None, until))
        while position.stretches:
            yield from self._walk(api, position.stretches[0])
        position.forget(self._horizon())
        position.complete_at = self._now
        yield self._take_haul()

    def _take_haul(self) -> Haul:
        haul, self._haul = self._haul, Haul()
        return haul

    def _horizon(self) -> datetime | None:
        return self._position.horizon(self._now, self._settings.overlap)

    # --- pages ----------------------------------------------------------------------------------

    def _walk(self, api: AthenaApi, stretch: Stretch) -> Iterator[Haul]:
        """Read a stretch from its token downwards; it stays in the position until it is read."""
        stretches = self._position.stretches
        while True:
            page = self._page(api, stretch)
            newest = self._read_page(api, page)
            is_below = stretch.until is not None and newest is not None and newest < stretch.until
            if page.next_token is None or is_below:
                if stretch in stretches:
                    stretches.remove(stretch)
                return
            stretch.token = page.next_token
            if stretch not in stretches:
                stretches.insert(0, stretch)
            if len(self._haul) >= self._settings.batch_queries:
                yield self._take_haul()

    def _page(self, api: AthenaApi, stretch: Stretch) -> Page:
        try:
            return api.page(self._name, stretch.token)
        except RefusedRequestError:
            if stretch.token is None:
                raise
        stretch.token = None  # the token has gone stale: from the top again, nothing is skipped
        return api.page(self._name, None)

    def _read_page(self, api: AthenaApi, page: Page) -> datetime | None:
        """Take what is not settled; returns when the newest query of the page came."""
        position = self._position
        known = {i: position.settled[i] for i in page.ids if i in position.settled}
        known |= {i: position.open[i].since for i in page.ids if i in position.open}
        wanted = [i for i in page.ids if i not in known]
        looked = api.queries(wanted)
        self._take(looked)
        times = [submitted_at(payload) for payload in looked.found.values()]
        return max([*(t for t in times if t is not None), *known.values()], default=None)

    # --- queries --------------------------------------------------------------------------------

    def _take(self, looked: Looked) -> None:
        for query_id, payload in looked.found.items():
            self._take_one(query_id, payload)
        for query_id in looked.unread:
            self._position.open.setdefault(query_id, Open(self._now))
        for query_id, reason in looked.garbled.items():
            self._position.open.setdefault(query_id, Open(self._now))
            self._gap(query_id, f"query {query_id} of workgroup {self._name}: {reason}")

    def _take_one(self, query_id: str, payload: Mapping[str, Any]) -> None:
        position = self._position
        submitted = submitted_at(payload) or self._now
        try:
            observed = to_observed(self._settings, payload, self._now)
        except BadRowError as error:
            text = json.dumps(payload, sort_keys=True, ensure_ascii=False, default=str)
            reason = f"query {query_id} of workgroup {self._name}: {error}"
            letter = dead_letter(str(self._settings.engine_id), text, reason, self._now)
            self._haul.letters.append(letter)
            if is_final(payload):  # it does not get better; one that runs is looked at again
                position.settle(query_id, submitted, self._horizon())
            else:
                position.open.setdefault(query_id, Open(submitted))
            return
        self._haul.observed.append(observed)
        position.head = max(submitted, position.head) if position.head else submitted
        if observed.event.revision < 2:
            event = to_json(self._understanding.event(observed))
            position.open[query_id] = Open(submitted, event)
        else:
            position.settle(query_id, submitted, self._horizon())

    def _look_at_open(self, api: AthenaApi) -> None:
        for ids in _chunks(list(self._position.open), MOST_IDS):
            self._take(api.queries(ids))
        for query_id, open_query in list(self._position.open.items()):
            if self._now - open_query.since > GIVE_UP:
                self._give_up(query_id, open_query)

    def _give_up(self, query_id: str, lost: Open) -> None:
        """A query that Athena does not tell of any more: recorded as what it is, not known."""
        reason = "Athena lost this query before its end was read; how it ended is not known"
        if lost.event is not None:
            event = replace(
                from_json(lost.event, self._now),
                status=QueryStatus.FAILED,
                error_class="history_lost",
                error_message=reason,
                reporter="inferred",
            )
            self._haul.observed.append(Observed(event))
        self._gap(query_id, f"{query_id}: {reason}")
        self._position.settle(query_id, lost.since, self._horizon())

    # --- gaps -----------------------------------------------------------------------------------

    def _note_what_expired(self) -> None:
        read = self._position.complete_at
        if read is None or self._now - read <= RETENTION:
            return
        dropped = self._now - RETENTION
        self._gap(
            f"{self._name} {read.isoformat()}",
            f"history of workgroup {self._name} from {read:%Y-%m-%d %H:%M} to "
            f"{dropped:%Y-%m-%d %H:%M} UTC was dropped before it was read: Athena keeps "
            f"{RETENTION.days} days; let the agents run more often",
        )

    def _gap(self, gap_id: str, reason: str) -> None:
        source = str(self._settings.engine_id)
        self._haul.letters.append(gap_letter(source, gap_id, reason, self._now))


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]

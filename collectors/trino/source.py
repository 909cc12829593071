"""Trino's query history, pulled from the coordinator's REST interface."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from collectors.base import BadRowError, Batch, SourceCapabilities
from collectors.events import from_json, to_json
from collectors.letters import dead_letter, gap_letter
from collectors.rest import RestApi, Server
from collectors.trino.mapping import is_final, to_observed, writes
from collectors.trino.position import QueryNumber, TrinoPosition
from collectors.understanding import TABLES, Observed, Understanding
from lakehouse_core.domain.agent import DeadLetter, Watermark
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.query import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from collectors.trino.config import TrinoSettings

Listed = dict[str, dict[str, Any]]


@dataclass(slots=True)
class _Haul:
    """What one batch gathers."""

    observed: list[Observed] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)


class TrinoSource:
    """Reads the short list each time; the long form of a query once, when it is over."""

    def __init__(
        self, settings: TrinoSettings, understanding: Understanding, clock: Clock = utc_now
    ) -> None:
        self.name = str(settings.engine_id)
        self.capabilities = SourceCapabilities(
            tables=TABLES, freshness_lag=timedelta(seconds=1), overlap=settings.overlap
        )
        self._settings = settings
        self._understanding = understanding
        self._clock = clock

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield new and changed queries, oldest first.

        Raises:
            SourceUnavailableError: the coordinator does not answer or asks us to slow down.
            SourceError: it refuses us, or is none.
        """
        position = TrinoPosition.parse(since.position if since else None)
        newest_at = since.event_at if since else None
        with RestApi(_coordinator(self._settings)) as api:
            listed, letters = self._list(api)
            wanted = [i for i in sorted(listed) if i not in position.settled]
            for ids in _chunks(wanted, self._settings.batch_queries):
                haul = _Haul()
                for query_id in ids:
                    self._take(api, listed[query_id], position, haul)
                newest_at = _newest(newest_at, haul.observed)
                yield self._batch(haul, position, newest_at)
        haul = _Haul(letters=letters)
        self._account_for_the_lost(position, listed, haul)
        position.finish_listing(listed)
        yield self._batch(haul, position, newest_at)

    def _list(self, api: RestApi) -> tuple[Listed, list[DeadLetter]]:
        listed: Listed = {}
        letters: list[DeadLetter] = []
        for basic in api.answer("/v1/query", list):
            query_id = basic.get("queryId") if isinstance(basic, dict) else None
            if isinstance(query_id, str) and query_id:
                listed[query_id] = basic
            else:
                letters.append(self._letter(basic, "an entry of the query list has no queryId"))
        return listed, letters

    def _take(
        self, api: RestApi, basic: Mapping[str, Any], position: TrinoPosition, haul: _Haul
    ) -> None:
        query_id = str(basic["queryId"])
        detail: Mapping[str, Any] | None = None
        try:
            if is_final(basic):
                pruned = {} if writes(basic) else {"pruned": "true"}
                detail = api.item(f"/v1/query/{quote(query_id, safe='')}", dict, **pruned)
            observed = self._observe(basic, detail)
        except BadRowError as error:
            haul.letters.append(self._letter(basic, f"query {query_id}: {error}"))
            if is_final(basic):  # it does not get better; one that runs is looked at again
                position.settle(query_id)
            return
        if self._may_change(detail, observed.event.ended_at):
            return  # looked at again: a final row is sent once, with its final figures
        haul.observed.append(observed)
        if observed.event.status.revision < 2:
            position.running[query_id] = to_json(self._understanding.event(observed))
        else:
            position.settle(query_id)

    def _observe(self, basic: Mapping[str, Any], detail: Mapping[str, Any] | None) -> Observed:
        settings = self._settings
        return to_observed(settings.engine_id, settings.url, basic, detail, self._clock())

    def _may_change(self, detail: Mapping[str, Any] | None, ended_at: datetime | None) -> bool:
        """Whether the figures of a query that is over are still coming in from the workers."""
        if detail is None or detail.get("finalQueryInfo") is not False:
            return False
        return ended_at is not None and self._clock() - ended_at < self._settings.overlap

    def _account_for_the_lost(self, position: TrinoPosition, listed: Listed, haul: _Haul) -> None:
        """Queries Trino no longer knows: their end is recorded as what it is, not known."""
        now = self._clock()
        gap = position.gap(listed)
        if gap is not None:
            after, before = gap.after, gap.before
            gap_id = f"{after.coordinator}_{after.day}_{after.number}_{before.number}"
            if gap.is_over_midnight:
                gap_id += f"_{before.day}"
            haul.letters.append(gap_letter(self.name, gap_id, gap.reason, now))
        restart = position.restart(listed)
        if restart is not None:
            last, now_there = restart
            reason = (
                f"the coordinator was restarted and forgot its history: what ran after query "
                f"{last.number} of {last.day} ({last.coordinator}) and was not read in time is "
                "known only as far as its event listener pushed it"
            )
            gap_id = f"restart_{last.coordinator}_{last.day}_{last.number}_{now_there}"
            haul.letters.append(gap_letter(self.name, gap_id, reason, now))
        for query_id in [i for i in position.running if i not in listed]:
            event = from_json(position.running[query_id], now)
            reason = _why_lost(query_id, listed)
            haul.observed.append(
                Observed(
                    replace(
                        event,
                        status=QueryStatus.FAILED,
                        reporter="inferred",  # what the listener pushed is better than a guess
                        error_class="history_lost",
                        error_message=reason,
                    )
                )
            )
            haul.letters.append(gap_letter(self.name, query_id, f"{query_id}: {reason}", now))
            position.settle(query_id)

    def _batch(self, haul: _Haul, position: TrinoPosition, newest_at: datetime | None) -> Batch:
        return Batch(
            rows=self._understanding.rows(haul.observed),
            dead_letters=tuple(haul.letters),
            watermark=Watermark(
                source=self.name,
                position=position.dump(),
                event_at=newest_at,
                updated_at=self._clock(),
            ),
        )

    def _letter(self, payload: object, reason: str) -> DeadLetter:
        text = json.dumps(payload, sort_keys=True, ensure_ascii=False)
        return dead_letter(self.name, text, reason, self._clock())


def _coordinator(settings: TrinoSettings) -> Server:
    return Server(
        name="Trino's coordinator",
        url=settings.url,
        user=settings.user,
        password=settings.password,
        user_header="X-Trino-User",
        call_timeout=settings.call_timeout,
    )


def _newest(known: datetime | None, observed: Sequence[Observed]) -> datetime | None:
    times = [o.event.ended_at or o.event.submitted_at for o in observed]
    return max([*times, *([known] if known else [])], default=None)


def _why_lost(query_id: str, listed: Listed) -> str:
    number = QueryNumber.parse(query_id)
    others = {n.coordinator for n in map(QueryNumber.parse, listed) if n is not None}
    if number is not None and others and number.coordinator not in others:
        return "the coordinator was restarted while this query ran"
    return "Trino forgot this query before its end was read; how it ended is not known"


def _chunks(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]

"""A history server's applications and their SQL executions, over its REST interface."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from collectors.base import BadRowError, Batch, SourceCapabilities
from collectors.events import from_json, to_json
from collectors.letters import dead_letter, gap_letter
from collectors.rest import RestApi
from collectors.spark.history.mapping import (
    Execution,
    Work,
    parse_moment,
    to_execution,
    to_query,
    to_work,
)
from collectors.spark.history.position import AppProgress, HistoryPosition
from collectors.spark.mapping import to_observed
from collectors.spark.queries import Application
from collectors.understanding import TABLES, Observed, Understanding
from lakehouse_core.domain.agent import DeadLetter, Watermark
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.query import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.spark.config import HistoryServerSettings

_API = "/api/v1/applications"


@dataclass(frozen=True, slots=True)
class _App:
    """One attempt of an application, as the server lists it."""

    name: str  # of our own: id and attempt
    path: str
    updated: int
    about: Application


@dataclass(slots=True)
class _Haul:
    observed: list[Observed] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)


class HistoryServerSource:
    """Reads each application again while it runs, and once more when it is over."""

    def __init__(
        self,
        settings: HistoryServerSettings,
        understanding: Understanding,
        clock: Clock = utc_now,
    ) -> None:
        self.name = str(settings.engine_id)
        self.capabilities = SourceCapabilities(
            tables=TABLES, freshness_lag=timedelta(seconds=15), overlap=timedelta(0)
        )
        self._settings = settings
        self._understanding = understanding
        self._clock = clock

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield new and changed queries, application by application.

        Raises:
            SourceUnavailableError: the server does not answer, is starting, or is busy.
            SourceError: it refuses us, or is none.
        """
        position = HistoryPosition.parse(since.position if since else None)
        newest_at = since.event_at if since else None
        first = _Haul()
        with RestApi(self._settings.server) as api:
            apps = self._list(api, first)
            for app in apps:
                progress = position.apps.setdefault(app.name, AppProgress())
                if progress.is_done and progress.updated == app.updated:
                    continue
                for haul in self._read(api, app, progress):
                    newest_at = _newest(newest_at, haul.observed)
                    yield self._batch(haul, position, newest_at)
        for name, progress in position.forget([app.name for app in apps]).items():
            self._close(name, progress, first)
        yield self._batch(first, position, newest_at)

    def _list(self, api: RestApi, haul: _Haul) -> list[_App]:
        found: list[_App] = []
        for entry in api.answer(_API, list):
            try:
                found += _attempts(entry)
            except (BadRowError, KeyError, TypeError, AttributeError) as error:
                reason = f"an entry of the application list cannot be understood ({error})"
                haul.letters.append(self._letter(entry, reason))
        return sorted(found, key=lambda app: (app.updated, app.name))

    def _read(self, api: RestApi, app: _App, progress: AppProgress) -> Iterator[_Haul]:
        """The queries of one application that are new or were open."""
        haul = _Haul()
        executions = self._executions(api, app, progress, haul)
        if executions is None:
            self._gap(app.name, f"application {app.name} was dropped while it was read", haul)
            yield haul
            return
        work = self._work(api, app, progress, executions, haul)
        if work is None:  # looked at again, so that no query is taken without its figures
            yield haul
            return
        groups: dict[str, list[Execution]] = {}
        for execution in executions:
            groups.setdefault(work.key(str(app.about.app_id), execution), []).append(execution)
        seen = max([progress.seen, *(e.id for e in executions)])
        wanted = {
            key: group
            for key, group in groups.items()
            if key in progress.open or group[-1].id > progress.seen
        }
        for key, group in wanted.items():
            self._take(api, app, work, (key, group), progress, haul)
            if len(haul.observed) >= self._settings.batch_queries:
                yield haul  # `seen` stands until all are taken: those of this batch come again
                haul = _Haul()
        progress.seen = seen
        progress.updated = app.updated
        progress.is_done = app.about.is_over and not progress.open
        yield haul

    def _executions(
        self, api: RestApi, app: _App, progress: AppProgress, haul: _Haul
    ) -> list[Execution] | None:
        """Every execution the server has, oldest first; None when the application is gone."""
        found: list[Execution] = []
        page = self._settings.page_executions
        offset = 0
        while True:
            entries = api.item(
                f"{app.path}/sql",
                list,
                details="false",
                planDescription="false",
                offset=offset,
                length=page,
            )
            if entries is None:
                return None
            for entry in entries:
                try:
                    found.append(to_execution(entry))
                except (BadRowError, AttributeError) as error:
                    haul.letters.append(self._letter(entry, f"{app.name}: {error}"))
            offset += len(entries)
            if len(entries) < page:
                break
        found.sort(key=lambda e: e.id)
        if found and found[0].id > progress.seen + 1:
            dropped = found[0].id - progress.seen - 1
            self._gap(
                f"{app.name}:{progress.seen}-{found[0].id}",
                f"{app.name}: up to {dropped} executions were dropped before they were read; "
                "collect more often, or raise spark.sql.ui.retainedExecutions",
                haul,
            )
        return found

    def _work(
        self,
        api: RestApi,
        app: _App,
        progress: AppProgress,
        executions: list[Execution],
        haul: _Haul,
    ) -> Work | None:
        """Jobs and stages; an empty one when nobody needs them, None when they are unreadable."""
        if not progress.open and all(e.id <= progress.seen for e in executions):
            return Work()
        try:
            jobs = api.item(f"{app.path}/jobs", list)
            stages = api.item(f"{app.path}/stages", list, details="false", withSummaries="false")
            return to_work(jobs or (), stages or ())
        except BadRowError as error:
            text = f"jobs and stages of {app.name}"
            haul.letters.append(self._letter(text, f"{text} cannot be understood: {error}"))
            return None

    def _take(
        self,
        api: RestApi,
        app: _App,
        work: Work,
        found: tuple[str, list[Execution]],
        progress: AppProgress,
        haul: _Haul,
    ) -> None:
        key, executions = found
        try:
            plans = [self._plan(api, app, execution) for execution in executions]
        except BadRowError as error:
            haul.letters.append(self._letter(key, f"{app.name}, query {key}: {error}"))
            plans = []
        query = to_query(key, executions, plans, work, app.about)
        progress.open.pop(key, None)
        if not query.counts:
            if query.status == "running":
                progress.open[key] = {}
            return
        settings = self._settings
        page = app.path.removeprefix(_API)
        observed = to_observed(
            settings.engine_id,
            query,
            app.about,
            settings.catalog,
            self._clock(),
            f"{settings.server.url}/history{page}/SQL/execution/?id={executions[0].id}",
        )
        haul.observed.append(observed)
        if observed.event.status.revision < QueryStatus.FINISHED.revision:
            progress.open[key] = to_json(self._understanding.event(observed))

    def _plan(self, api: RestApi, app: _App, execution: Execution) -> str:
        answer = api.item(
            f"{app.path}/sql/{execution.id}", dict, details="false", planDescription="true"
        )
        return str((answer or {}).get("planDescription") or "")

    def _close(self, name: str, progress: AppProgress, haul: _Haul) -> None:
        reason = "the history server dropped this application before it was read to its end"
        self._gap(name, f"{name}: {reason}", haul)
        now = self._clock()
        for payload in progress.open.values():
            if payload:
                event = replace(
                    from_json(payload, now),
                    status=QueryStatus.FAILED,
                    error_class="history_lost",
                    error_message=reason,
                )
                haul.observed.append(Observed(event))

    def _gap(self, gap_id: str, reason: str, haul: _Haul) -> None:
        haul.letters.append(gap_letter(self.name, gap_id, reason, self._clock()))

    def _letter(self, payload: object, reason: str) -> DeadLetter:
        text = json.dumps(payload, sort_keys=True, ensure_ascii=False)
        return dead_letter(self.name, text, reason, self._clock())

    def _batch(self, haul: _Haul, position: HistoryPosition, newest_at: datetime | None) -> Batch:
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


def _attempts(entry: dict[str, Any]) -> list[_App]:
    app_id, found = entry["id"], []
    if not isinstance(app_id, str) or not app_id:
        raise BadRowError("it has no id")
    for attempt in entry["attempts"]:
        number = attempt.get("attemptId")
        is_over = attempt.get("completed") is True
        path = f"{_API}/{quote(app_id, safe='')}"
        found.append(
            _App(
                name=f"{app_id}/{number}" if number else app_id,
                path=f"{path}/{quote(str(number), safe='')}" if number else path,
                updated=parse_moment(attempt.get("lastUpdated"), "lastUpdated"),
                about=Application(
                    app_id=app_id,
                    name=entry.get("name"),
                    user=attempt.get("sparkUser"),
                    version=attempt.get("appSparkVersion"),
                    is_over=is_over,
                    last_event=parse_moment(attempt.get("endTime"), "endTime") if is_over else None,
                ),
            )
        )
    return found


def _newest(known: datetime | None, observed: list[Observed]) -> datetime | None:
    times = [o.event.ended_at or o.event.submitted_at for o in observed]
    found = max([*times, *([known] if known else [])], default=None)
    return found.astimezone(UTC) if found else None

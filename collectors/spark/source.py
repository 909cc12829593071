"""Spark's event logs, read incrementally while Spark writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from collectors.base import Batch, SourceCapabilities
from collectors.spark.applog import AppLogReader, Step
from collectors.spark.layout import list_apps
from collectors.spark.mapping import session_url, to_observed
from collectors.spark.position import AppPosition, SparkPosition
from collectors.understanding import TABLES, Understanding
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.errors import SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.spark.config import EventLogSettings
    from collectors.spark.layout import AppLog


class EventLogSource:
    """Reads every application's log from where it stopped."""

    def __init__(
        self, settings: EventLogSettings, understanding: Understanding, clock: Clock = utc_now
    ) -> None:
        self.name = str(settings.engine_id)
        # A log is a sequence: what comes late is appended, so nothing needs to be read twice.
        self.capabilities = SourceCapabilities(
            tables=TABLES, freshness_lag=timedelta(seconds=5), overlap=timedelta(0)
        )
        self._settings = settings
        self._understanding = understanding
        self._clock = clock

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield what was logged since the watermark, application by application.

        Raises:
            SourceUnavailableError: the folder is not there, or a log cannot be read.
        """
        position = SparkPosition.parse(since.position if since else None)
        newest_at = since.event_at if since else None
        apps = self._list()
        for app in apps:
            if position.is_done(app.name, app.modified):
                continue
            place = position.apps.setdefault(app.name, AppPosition())
            reader = AppLogReader(self._settings, app, place, self._clock)
            for step in reader.read(is_over=app.is_complete or self._is_superseded(app, apps)):
                newest_at = _later(newest_at, step)
                yield self._batch(step, position, newest_at)
        position.forget([app.name for app in apps], self._settings.remembered_apps)
        yield self._batch(Step(), position, newest_at)

    def _list(self) -> list[AppLog]:
        folder = self._settings.folder
        try:
            return list_apps(folder)
        except OSError as error:
            raise SourceUnavailableError(
                f"the Spark event log folder {folder} cannot be read ({error.strerror}); start "
                "Spark with spark.eventLog.enabled=true and spark.eventLog.dir set to it, or "
                "correct `event_log` of the engine"
            ) from error

    def _is_superseded(self, app: AppLog, apps: list[AppLog]) -> bool:
        """Whether a newer application shows that this one is gone, though its log does not say."""
        return self._settings.one_at_a_time and any(o.started > app.modified for o in apps)

    def _batch(self, step: Step, position: SparkPosition, newest_at: datetime | None) -> Batch:
        now = self._clock()
        settings = self._settings
        observed = [
            to_observed(
                settings.engine_id,
                query,
                step.application,
                settings.catalog,
                now,
                session_url(settings.ui_url, query),
            )
            for query in step.changed
            if query.counts
        ]
        return Batch(
            rows=self._understanding.rows(observed),
            dead_letters=step.letters,
            watermark=Watermark(
                source=self.name, position=position.dump(), event_at=newest_at, updated_at=now
            ),
        )


def _later(known: datetime | None, step: Step) -> datetime | None:
    last = step.application.last_event
    if last is None:
        return known
    at = datetime.fromtimestamp(last / 1_000, UTC)
    return at if known is None else max(known, at)

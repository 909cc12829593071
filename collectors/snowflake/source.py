"""Snowflake's own history: queries, what warehouses were metered, what queries are charged with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from collectors.base import Batch, SourceCapabilities
from collectors.letters import dead_letter, gap_letter
from collectors.snowflake import mapping, views
from collectors.snowflake.config import RETENTION
from collectors.snowflake.connection import SnowflakeSession
from collectors.snowflake.faults import UnreadableViewError
from collectors.snowflake.names import in_lake_spelling
from collectors.snowflake.position import SnowflakePosition, ViewPosition, truncated
from collectors.snowflake.texts import understood_rows
from collectors.understanding import TABLES, Understanding
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.domain.clock import Clock, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from collectors.snowflake.config import SnowflakeSettings
    from collectors.snowflake.position import Span
    from collectors.snowflake.views import UsageView
    from lakehouse_core.domain.agent import DeadLetter

VIEWS = (views.QUERIES, views.METERING, views.ATTRIBUTION, views.ACCESS)
_FINAL = 2


@dataclass(slots=True)
class _Pull:
    """What one pull knows."""

    session: SnowflakeSession
    position: SnowflakePosition
    newest_at: datetime | None
    now: datetime


class SnowflakeSource:
    """Reads the hours that changed, view by view; a view that is refused stops no other."""

    def __init__(
        self, settings: SnowflakeSettings, understanding: Understanding, clock: Clock = utc_now
    ) -> None:
        self.name = str(settings.engine_id)
        self.capabilities = SourceCapabilities(
            tables=(*TABLES, "metering", "query_attribution", "query_access"),
            freshness_lag=timedelta(minutes=45),
            overlap=settings.overlap,
        )
        self._settings = settings
        self._understanding = understanding
        self._clock = clock
        account = settings.account.replace("-", "/", 1).lower()
        self._console = f"https://app.snowflake.com/{account}/#/compute/history/queries/"

    def pull(self, since: Watermark | None) -> Iterator[Batch]:
        """Yield what is new or changed, oldest hour first.

        Raises:
            NotInstalledError: the connector is missing; says what to install.
            SourceUnavailableError: Snowflake does not answer, or not in time.
            SourceError: it refuses us, or the history of queries.
        """
        position = SnowflakePosition.parse(since.position if since else None)
        refused: UnreadableViewError | None = None
        with SnowflakeSession(self._settings) as session:
            pull = _Pull(session, position, since.event_at if since else None, self._clock())
            for view in VIEWS:
                try:
                    yield from self._read(pull, view)
                except UnreadableViewError as error:
                    refused = error if view.is_essential else refused
                    letter = gap_letter(self.name, f"view {view.name}", str(error), pull.now)
                    yield self._batch(pull, {}, letter)
        if refused is not None:
            raise refused

    def _read(self, pull: _Pull, view: UsageView) -> Iterator[Batch]:
        own = pull.position.views.get(view.name, ViewPosition())
        found = self._fingerprints(pull, view, own)
        pull.position.views[view.name] = own
        expired = self._expired(view, own, pull.now)
        for span in own.changed(found, self._settings.span_hours):
            for rows in self._rows(pull, view, span):
                reached = truncated(_moment(pc.max(rows.column("FILED_AT"))))
                tables, letters = self._tables(pull, view, own, rows)
                own.mark(found, span.start, reached)  # in order: the hours before are whole
                yield self._batch(pull, tables, *letters)
            own.mark(found, span.start, span.end)
        own.finish(pull.now, self._settings.overlap)
        yield self._batch(pull, {}, *expired)

    def _fingerprints(self, pull: _Pull, view: UsageView, own: ViewPosition) -> dict[datetime, str]:
        settings = self._settings
        since = own.floor or truncated(pull.now - max(settings.backfill, settings.overlap))
        sql = view.fingerprints(settings.database, settings.schema)
        found: dict[datetime, str] = {}
        for table in pull.session.batches(f"reading {view.name}", sql, since):
            for row in mapping.with_plain_types(table).to_pylist():
                hour = row.pop("HOUR").astimezone(UTC)
                found[hour] = "/".join("" if one is None else str(one) for one in row.values())
        return found

    def _rows(self, pull: _Pull, view: UsageView, span: Span) -> Iterator[pa.Table]:
        settings = self._settings
        sql = view.rows(settings.database, settings.schema)
        doing = f"reading {view.name} of {span.start:%Y-%m-%d %H:%M} UTC"
        tables = pull.session.batches(doing, sql, span.start, span.end)
        if view.is_whole:
            pieces = [mapping.with_plain_types(table) for table in tables]
            if pieces:
                yield pa.concat_tables(pieces, promote_options="permissive")
            return
        for table in tables:
            for start in range(0, table.num_rows, settings.batch_rows):
                yield mapping.with_plain_types(table.slice(start, settings.batch_rows))

    def _tables(
        self, pull: _Pull, view: UsageView, own: ViewPosition, rows: pa.Table
    ) -> tuple[dict[str, pa.Table], list[DeadLetter]]:
        now = pull.now
        if view is views.QUERIES:
            return self._queries(pull, own, rows)
        rows = rows.drop_columns(["FILED_AT"])
        if view is views.METERING:
            name, mapped = "metering", mapping.to_metering(rows, self.name, now)
        elif view is views.ATTRIBUTION:
            name, mapped = "query_attribution", mapping.to_attribution(rows, self.name, now)
        else:
            name, mapped = "query_access", mapping.to_access(rows, self.name)
        good = in_lake_spelling(mapped.good, self._settings)
        return {name: good}, self._letters(mapped, view, now)

    def _letters(self, mapped: mapping.Mapped, view: UsageView, now: datetime) -> list[DeadLetter]:
        letters = []
        for one in mapped.problems:
            about = f"{view.name}, query {one.query_id}" if one.query_id else view.name
            letters.append(dead_letter(self.name, one.payload, f"{about}: {one.reason}", now))
        return letters

    def _queries(
        self, pull: _Pull, own: ViewPosition, rows: pa.Table
    ) -> tuple[dict[str, pa.Table], list[DeadLetter]]:
        taken = pa.array([i for ids in own.taken.values() for i in ids], pa.string())
        rows = rows.filter(pc.invert(pc.is_in(rows.column("QUERY_ID"), taken)))
        filed = rows.select(["QUERY_ID", "FILED_AT"])
        mapped = mapping.to_queries(rows.drop_columns(["FILED_AT"]), self._console)
        tables = understood_rows(mapped.good, self._settings, self._understanding, pull.now)
        events = tables.get("query_event")
        if events is not None:
            self._note(pull, own, events, filed)
        return tables, self._letters(mapped, views.QUERIES, pull.now)

    def _note(self, pull: _Pull, own: ViewPosition, events: pa.Table, filed: pa.Table) -> None:
        """Remember what was taken in its final form, and how new it is."""
        ends = pc.coalesce(events.column("ended_at"), events.column("submitted_at"))
        newest = _moment(pc.max(ends))
        pull.newest_at = max(newest, pull.newest_at) if pull.newest_at else newest
        final = events.filter(pc.equal(events.column("revision"), _FINAL)).column("query_id")
        kept = filed.filter(pc.is_in(filed.column("QUERY_ID"), final.combine_chunks()))
        hours = pc.floor_temporal(kept.column("FILED_AT"), unit="hour")
        for hour in pc.unique(hours):
            ids = kept.filter(pc.equal(hours, hour)).column("QUERY_ID").to_pylist()
            own.take(_moment(hour), ids, pull.now)

    def _expired(self, view: UsageView, own: ViewPosition, now: datetime) -> list[DeadLetter]:
        read = own.complete_at
        if read is None or now - read <= RETENTION or not view.is_essential:
            return []
        reason = (
            f"{view.name} from {read:%Y-%m-%d %H:%M} to {now - RETENTION:%Y-%m-%d %H:%M} UTC was "
            f"dropped before it was read: Snowflake keeps {RETENTION.days} days; let the agents "
            "run more often"
        )
        return [gap_letter(self.name, f"{view.name} {read.isoformat()}", reason, now)]

    def _batch(self, pull: _Pull, tables: dict[str, pa.Table], *letters: DeadLetter) -> Batch:
        return Batch(
            rows={name: rows for name, rows in tables.items() if rows.num_rows},
            dead_letters=letters,
            watermark=Watermark(
                source=self.name,
                position=pull.position.dump(),
                event_at=pull.newest_at,
                updated_at=self._clock(),
            ),
        )


def _moment(scalar: Any) -> datetime:
    """A time of Arrow, whatever its unit, as ours."""
    moment: datetime = scalar.cast(pa.timestamp("us", "UTC"), safe=False).as_py()
    return moment.astimezone(UTC)

"""The rollup agent: keeps hourly sums of the queries, so that windows of many days stay quick.

Days of the templates' figures are summed up beside (template_days.py).

A run looks at the queries collected since the last one and counts the hours they belong to anew; a
run in an hour compares every hour, which also finds what came late through the spool. An hour is
replaced in one transaction; the mark of how far the sums reach is written after them.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agents.runs import Result
from agents.template_days import TemplateDays
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.store.literals import bind
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.hourly import CLASS, HOUR, HOUR_AT, ROLLUP_SOURCE

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

FULL_EVERY = timedelta(hours=1)
OVERLAP = timedelta(minutes=10)

_SUMS = f"""
SELECT {HOUR_AT} AS hour_at, engine_id, status, origin,
  {CLASS} AS duration_class, count(*) AS queries, sum(bytes_scanned)::BIGINT AS bytes_scanned
FROM query_event WHERE submitted_at < $until::TIMESTAMPTZ
"""  # noqa: S608 constants of ours
_STORED = """
SELECT hour_at, engine_id, status, origin, duration_class, queries, bytes_scanned FROM query_hour
WHERE hour_at < $until::TIMESTAMPTZ
"""
ALL_SQL = f"""
WITH sums AS ({_SUMS} GROUP BY ALL), stored AS ({_STORED})
SELECT DISTINCT hour_at FROM (
  (SELECT * FROM sums EXCEPT SELECT * FROM stored)
  UNION ALL (SELECT * FROM stored EXCEPT SELECT * FROM sums)
) ORDER BY hour_at
"""  # noqa: S608 constants of ours
# Two scans rather than one with OR: each prunes all row groups but the last.
RECENT_SQL = f"""
SELECT {HOUR_AT} AS hour_at FROM query_event
WHERE collected_at >= $since::TIMESTAMPTZ AND submitted_at < $until::TIMESTAMPTZ
UNION
SELECT {HOUR_AT} FROM query_event
WHERE submitted_at >= $rolled::TIMESTAMPTZ AND submitted_at < $until::TIMESTAMPTZ
ORDER BY hour_at
"""  # noqa: S608 constants of ours
_DROP = "DELETE FROM query_hour WHERE hour_at IN (SELECT unnest($hours::TIMESTAMPTZ[]))"
_FILL = f"""
INSERT INTO query_hour {_SUMS}
  AND submitted_at >= $first::TIMESTAMPTZ
  AND {HOUR_AT} IN (SELECT unnest($hours::TIMESTAMPTZ[])) GROUP BY ALL
"""


class Rollup:
    """Remembers, for one process, how far it looked."""

    def __init__(self, store: OwnerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._looked_at: datetime | None = None
        self._compared_at: datetime | None = None
        self._rolled: datetime | None = None
        self._days = TemplateDays(store, clock)

    def run_once(self) -> Result:
        """Bring the sums up to date; the hour that is going on is left to the readers."""
        now = self._clock()
        until = now.replace(minute=0, second=0, microsecond=0)
        hours = self._changed_hours(now, until)
        if hours:
            values = {"hours": hours, "first": hours[0], "until": until}
            self._store.transact("query_hour", [bind(_DROP, {"hours": hours}), bind(_FILL, values)])
        if self._rolled != until:
            position = json.dumps({"every_seconds": HOUR.total_seconds()})
            mark = Watermark(
                source=ROLLUP_SOURCE, position=position, event_at=until, updated_at=now
            )
            self._store.upsert("watermark", to_arrow("watermark", [mark]))
        self._looked_at, self._rolled = now, until
        return Result(rows=len(hours) + self._days.run_once())

    def _changed_hours(self, now: datetime, until: datetime) -> list[datetime]:
        is_due = self._compared_at is None or abs(now - self._compared_at) >= FULL_EVERY
        if is_due or self._looked_at is None or self._rolled is None:
            found = self._store.read(ALL_SQL, until=until)
            self._compared_at = now
        else:
            found = self._store.read(
                RECENT_SQL,
                until=until,
                since=self._looked_at - OVERLAP,
                rolled=min(self._rolled, until),
            )
        return list(found.column("hour_at").to_pylist())

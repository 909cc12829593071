"""The finops agent: prices kept, hours charged, charges split, within a minute of what is told.

A run looks at what was collected since the last one and settles the hours it belongs to; the hour
that goes on and the one before it always; once an hour the day before too, because what an hour is
charged settles with time. Hours that do not balance are split again, whatever the cause was. What
the pipeline computes of the same hours is the same.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agents.collect import read_watermark
from agents.runs import Result
from lakehouse_core.domain.agent import Watermark
from lakehouse_core.finops import metering_sql
from lakehouse_core.finops.attribution import settle_hours, unbalanced_hours
from lakehouse_core.finops.prices import keep_prices
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from agents.watch import Lease
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore, TogetherStore

WATERMARK = "finops"
OVERLAP = timedelta(minutes=10)  # a batch may have waited in the spool
SETTLING_HOURS = 26


def run_once(store: TogetherStore, config: Config, clock: Clock, lease: Lease) -> Result:
    """Bring charges and their split up to date."""
    now = clock()
    book = keep_prices(store, config, now)
    mark = read_watermark(store, WATERMARK)
    hours = changed_hours(store, config, now, mark.event_at if mark else None)
    rows = settle_hours(store, config, book, hours, now, lambda: not lease.is_lost)
    # What does not balance now was charged by others meanwhile, or a run was cut off.
    rows += settle_hours(
        store, config, book, unbalanced_hours(store), now, lambda: not lease.is_lost
    )
    if not lease.is_lost:
        position = json.dumps({"hours": len(hours)})
        done = Watermark(source=WATERMARK, position=position, event_at=now, updated_at=now)
        store.upsert("watermark", to_arrow("watermark", [done]))
    return Result(rows=rows)


def changed_hours(
    store: TelemetryStore, config: Config, now: datetime, looked_at: datetime | None
) -> set[int]:
    """The hours whose charges or queries may be others than when they were last looked at."""
    present = int(now.timestamp()) // 3600
    first_at = store.read(metering_sql.FIRST_SQL).column("first_at")[0].as_py()
    oldest = max(first_at or now, now - config.store.retention)
    first = int(oldest.timestamp()) // 3600
    hours = {present, present - 1}
    if looked_at is None:
        # The first run may be cut off: the next one goes on with the hours that it left.
        charged = set(store.read(metering_sql.CHARGED_SQL).column("hour_no").to_pylist())
        hours |= set(range(first, present + 1)) - charged
        last_at = store.read(metering_sql.LAST_SQL).column("last_at")[0].as_py()
        since = now if last_at is None else last_at + timedelta(microseconds=1)
    else:
        since = looked_at - OVERLAP
        if int(looked_at.timestamp()) // 3600 != present:
            hours |= set(range(present - SETTLING_HOURS, present))
    found = store.read(
        metering_sql.CHANGED_SQL,
        since=since,
        first=datetime.fromtimestamp(first * 3600, UTC),
        now=now,
    )
    hours |= set(found.column("hour_no").to_pylist())
    return {hour for hour in hours if first <= hour <= present}

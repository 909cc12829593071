"""Who is at work on a table, as the store tells."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.maintenance.activity import read_activity
from lakehouse_core.maintenance.look import Lookout
from lakehouse_core.store.rows import to_arrow
from tests.factories import query_event

if TYPE_CHECKING:
    from tests.unit.maintenance.yard import Yard

DAY_MS = 86_400_000.0


def test_a_flink_job_that_runs_for_a_month_is_no_long_query(yard: Yard) -> None:
    """Else every table would keep a month of snapshots for it."""
    now = yard.clock()
    started = {"submitted_at": now - timedelta(days=30), "ended_at": None}
    job = query_event(
        engine_id=EngineId("flink"),
        query_id="job1",
        status=QueryStatus.RUNNING,
        elapsed_ms=30 * DAY_MS,
        statement_kind="insert",
        **started,
    )
    query = query_event(submitted_at=now - timedelta(hours=1), elapsed_ms=2_000.0)
    yard.store.upsert("query_event", to_arrow("query_event", [job, query]))
    known = {"engine_id": "flink", "job_id": "job1", "state": "RUNNING", "seen_at": now}
    yard.store.upsert("flink_job", pa.Table.from_pylist([known]))
    lookout = Lookout(yard.config, yard.clock)
    try:
        found = read_activity(yard.store, lookout.look(yard.create()), "a")
    finally:
        lookout.close()
    assert found.longest_query == timedelta(seconds=2)
    assert found.longest_write == timedelta(0)

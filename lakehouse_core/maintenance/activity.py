"""Who else is at work on a table: running queries, streams, earlier maintenance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from lakehouse_core.domain.flink import END_OF_INPUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.catalog.metadata import Snapshot
    from lakehouse_core.maintenance.look import Look
    from lakehouse_core.store.port import TelemetryStore

# An end that nobody reported: after so long a query is not believed to run.
FORGOTTEN_AFTER = timedelta(days=7)
CADENCE_COMMITS = 12
LEAST_COMMITS = 3
# A stream that is silent for so many of its own gaps has ended.
SILENT_GAPS = 5
WRITING = ("insert", "update", "delete", "merge", "create", "call")
CHECKPOINT = "flink.max-committed-checkpoint-id"
FLINK_JOB = "flink.job-id"

# A Flink job is told by its commits, not by a query that never ends.
_NO_STREAM = """NOT EXISTS (SELECT 1 FROM flink_job f
                  WHERE f.engine_id = q.engine_id AND f.job_id = q.query_id)"""
# Queries that nobody has seen end, which read or write the table, or of which nobody knows what
# they touch.
RUNNING_SQL = f"""
SELECT engine_id, query_id, statement_kind, coalesce(started_at, submitted_at) AS started_at,
  coalesce(snapshot_ids, []) AS snapshot_ids
FROM query_event q
WHERE status IN ('queued', 'running') AND origin = 'real'
  AND submitted_at >= $since::TIMESTAMPTZ
  AND {_NO_STREAM}
  AND (template_id IS NULL OR template_id IN (
    SELECT template_id FROM column_usage WHERE table_name = $table::VARCHAR
    UNION SELECT template_id FROM template_table WHERE table_name = $table::VARCHAR))
"""  # noqa: S608 a constant
LONGEST_SQL = f"""
SELECT max(elapsed_ms) AS query_ms,
  max(elapsed_ms) FILTER (WHERE statement_kind IN ('insert', 'update', 'delete', 'merge', 'create'))
    AS write_ms
FROM query_event q
WHERE origin = 'real' AND submitted_at >= $since::TIMESTAMPTZ AND {_NO_STREAM}
"""  # noqa: S608 a constant
# Flink jobs that have not ended, as far as anybody said.
FLINK_SQL = """
SELECT job_id FROM flink_job
WHERE seen_at >= $since::TIMESTAMPTZ
  AND state NOT IN ('FINISHED', 'CANCELED', 'FAILED', 'SUSPENDED')
"""
EARLIER_SQL = """
SELECT state, dedupe_key, started_at, ended_at, result_snapshot_id,
  CAST(json_extract(plan, '$.base_snapshot_id') AS BIGINT) AS base_snapshot_id
FROM action
WHERE table_id = $table::VARCHAR AND started_at IS NOT NULL AND action_id <> $action::VARCHAR
ORDER BY started_at DESC LIMIT 20
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """A query that has not ended, as far as anybody said."""

    engine_id: str
    query_id: str
    statement_kind: str | None
    started_at: datetime
    snapshot_ids: tuple[int, ...]

    @property
    def is_writing(self) -> bool:
        """Whether it changes a table."""
        return self.statement_kind in WRITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A writer that commits again and again."""

    writer: str
    last_at: datetime
    every: timedelta

    def next_at(self, now: datetime) -> datetime:
        """When its next commit is due."""
        gaps = (now - self.last_at) // self.every + 1
        return self.last_at + self.every * max(1, gaps)

    def is_live(self, now: datetime) -> bool:
        """Whether it goes on, as far as its rhythm tells."""
        return now - self.last_at <= self.every * SILENT_GAPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier action on the table."""

    state: str
    dedupe_key: str
    started_at: datetime
    ended_at: datetime | None
    base_snapshot_id: int | None
    result_snapshot_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """All of it, at one moment.

    Attributes:
        streams: writers with a rhythm that they keep.
        unended: the same and, beside them, Flink jobs that run and have fallen silent.
    """

    running: tuple[RunningQuery, ...] = ()
    longest_query: timedelta = timedelta(0)
    longest_write: timedelta = timedelta(0)
    streams: tuple[Stream, ...] = ()
    unended: tuple[Stream, ...] = ()
    earlier: tuple[Earlier, ...] = ()


def read_activity(store: TelemetryStore, look: Look, action_id: str) -> Activity:
    """What the store and the table's own history tell.

    Raises:
        StoreError: the store cannot be read: then nobody knows who reads the table.
    """
    table_id = look.metrics.table_id
    since = look.at - FORGOTTEN_AFTER
    running = tuple(
        RunningQuery(**{**row, "snapshot_ids": tuple(row["snapshot_ids"])})
        for row in store.read(RUNNING_SQL, table=table_id, since=since).to_pylist()
    )
    longest = store.read(LONGEST_SQL, since=look.at - timedelta(days=90)).to_pylist()[0]
    earlier = store.read(EARLIER_SQL, table=table_id, action=action_id).to_pylist()
    jobs = store.read(FLINK_SQL, since=since).column("job_id").to_pylist()
    running_jobs = {_flink_writer(one) for one in jobs}
    rhythms = rhythms_of(look.metadata.history)
    return Activity(
        running=running,
        longest_query=timedelta(milliseconds=longest["query_ms"] or 0),
        longest_write=timedelta(milliseconds=longest["write_ms"] or 0),
        streams=streams_of(look.metadata.history, look.at),
        unended=tuple(one for one in rhythms if one.is_live(look.at) or one.writer in running_jobs),
        earlier=tuple(Earlier(**row) for row in earlier),
    )


def streams_of(history: Sequence[Snapshot], now: datetime) -> tuple[Stream, ...]:
    """Writers with a rhythm, from the table's history, newest first; those that still go on."""
    return tuple(one for one in rhythms_of(history) if one.is_live(now))


def rhythms_of(history: Sequence[Snapshot]) -> tuple[Stream, ...]:
    """Writers with a rhythm, from the table's history, newest first."""
    times: dict[str, list[datetime]] = {}
    for snapshot in history:
        writer = _writer(snapshot)
        if writer is not None and len(times.setdefault(writer, [])) < CADENCE_COMMITS:
            times[writer].append(committed_at(snapshot))
    found = []
    for writer, moments in times.items():
        gaps = [newer - older for newer, older in pairwise(moments)]
        if len(moments) < LEAST_COMMITS:
            continue
        every = timedelta(seconds=max(1.0, median(gap.total_seconds() for gap in gaps)))
        found.append(Stream(writer=writer, last_at=moments[0], every=every))
    return tuple(found)


def committed_at(snapshot: Snapshot) -> datetime:
    """When a snapshot was committed, by its writer's clock."""
    return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)


def flink_checkpoints(snapshots: Sequence[Snapshot], since: datetime) -> set[int]:
    """The newest snapshot of each Flink job: from there it goes on after a restart."""
    newest: dict[str, Snapshot] = {}
    for snapshot in snapshots:
        job = snapshot.summary.get(FLINK_JOB)
        if job is None or CHECKPOINT not in snapshot.summary or committed_at(snapshot) < since:
            continue
        if snapshot.summary[CHECKPOINT] == str(END_OF_INPUT):
            newest.pop(job, None)  # its input has ended: it never asks again
        elif job not in newest or newest[job].timestamp_ms <= snapshot.timestamp_ms:
            newest[job] = snapshot
    return {snapshot.snapshot_id for snapshot in newest.values()}


def _writer(snapshot: Snapshot) -> str | None:
    """Who wrote a snapshot, where it can be told from maintenance."""
    if snapshot.summary.get("operation") == "replace":
        return None
    job = snapshot.summary.get(FLINK_JOB)
    return _flink_writer(job) if job else snapshot.summary.get("app-id")


def _flink_writer(job_id: str) -> str:
    return f"flink job {job_id}"

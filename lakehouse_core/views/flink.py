"""Flink: how often each job commits to each table, and what its slots add up to.

The commits come from the tables' own snapshots, which name the job that made them; jobs and
checkpoints come from Flink. Either may be known without the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.flink import END_OF_INPUT
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

# A gap belongs to the window when the commit that ends it does: the commit before it is looked up
# however old it is.
CADENCE_SQL = """
WITH commits AS (
  SELECT table_id, flink_job_id AS job_id, committed_at, added_files, added_rows, added_bytes,
    nullif(flink_checkpoint_id, $end_of_input::BIGINT) AS checkpoint_id,
    epoch_ms(committed_at) - epoch_ms(lag(committed_at) OVER (
      PARTITION BY table_id, flink_job_id ORDER BY committed_at, snapshot_id)) AS gap_ms
  FROM snapshot_commit
  WHERE flink_job_id IS NOT NULL AND committed_at < $end::TIMESTAMPTZ
    AND ($table::VARCHAR IS NULL OR table_id = $table::VARCHAR)
), cadence AS (
  SELECT table_id, job_id, count(*) AS commits, min(committed_at) AS first_commit_at,
    max(committed_at) AS last_commit_at, median(gap_ms)::DOUBLE AS median_gap_ms,
    quantile_cont(gap_ms, 0.95)::DOUBLE AS p95_gap_ms, max(gap_ms)::DOUBLE AS max_gap_ms,
    sum(added_files)::BIGINT AS added_files, sum(added_rows)::BIGINT AS added_rows,
    sum(added_bytes)::BIGINT AS added_bytes, max(checkpoint_id) AS committed_checkpoint
  FROM commits WHERE committed_at >= $start::TIMESTAMPTZ GROUP BY table_id, job_id
), checkpoints AS (
  SELECT engine_id, job_id,
    arg_max(checkpoint_id, checkpoint_id) FILTER (status = 'completed') AS last_checkpoint,
    arg_max(ended_at, checkpoint_id) FILTER (status = 'completed') AS last_checkpoint_at,
    arg_max(duration_ms, checkpoint_id) FILTER (status = 'completed') AS last_checkpoint_ms,
    arg_max(state_bytes, checkpoint_id) FILTER (status = 'completed') AS last_checkpoint_bytes
  FROM flink_checkpoint
  WHERE NOT is_savepoint AND job_id IN (SELECT job_id FROM cadence) GROUP BY engine_id, job_id
)
SELECT cadence.*, job.engine_id, job.job_name, query.status, job.checkpoint_interval_ms,
  job.checkpoints_completed, job.checkpoints_failed,
  last_checkpoint, last_checkpoint_at, last_checkpoint_ms, last_checkpoint_bytes
FROM cadence
LEFT JOIN flink_job AS job USING (job_id)
LEFT JOIN checkpoints ON checkpoints.engine_id = job.engine_id AND checkpoints.job_id = job.job_id
LEFT JOIN query_event AS query ON query.engine_id = job.engine_id AND query.query_id = job.job_id
ORDER BY cadence.table_id, cadence.last_commit_at DESC, cadence.job_id
"""

SLOT_TIME_SQL = """
SELECT engine_id, job_id, max(slots) AS most_slots, sum(slots * (
    epoch_us(least(ended_at, $end::TIMESTAMPTZ))
    - epoch_us(greatest(started_at, $start::TIMESTAMPTZ))
  ))::HUGEINT / 1e6 AS slot_seconds
FROM flink_slot_time
WHERE started_at < $end::TIMESTAMPTZ AND ended_at > $start::TIMESTAMPTZ
GROUP BY engine_id, job_id ORDER BY slot_seconds DESC, engine_id, job_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCadence:
    """The commits of one job to one table in a window.

    Attributes:
        median_gap_ms: time from one commit to the next; None with fewer than two commits.
        committed_checkpoint: the newest checkpoint whose rows are in the table.
        last_checkpoint: the newest one Flink completed; ahead of the other while it waits for its
            commit, or when checkpoints had nothing to commit.
        checkpoints_failed: since the job began, like `checkpoints_completed`.
        engine_id: None when no configured Flink knows the job.
    """

    table_id: str
    job_id: str
    engine_id: str | None
    job_name: str | None
    status: str | None
    commits: int
    first_commit_at: datetime
    last_commit_at: datetime
    median_gap_ms: float | None
    p95_gap_ms: float | None
    max_gap_ms: float | None
    added_files: int | None
    added_rows: int | None
    added_bytes: int | None
    committed_checkpoint: int | None
    checkpoint_interval_ms: int | None
    checkpoints_completed: int | None
    checkpoints_failed: int | None
    last_checkpoint: int | None
    last_checkpoint_at: datetime | None
    last_checkpoint_ms: float | None
    last_checkpoint_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotUsage:
    """What a job's slots add up to in a window: slots times seconds."""

    engine_id: str
    job_id: str
    most_slots: int
    slot_seconds: float


def commit_cadence(
    store: TelemetryStore, window: Window, *, table_id: str | None = None
) -> tuple[CommitCadence, ...]:
    """How each Flink job committed to each table, or to the one that is named."""
    found = store.read(
        CADENCE_SQL,
        start=window.start,
        end=window.end,
        table=table_id,
        end_of_input=END_OF_INPUT,
    )
    return records(CommitCadence, found)


def slot_usage(store: TelemetryStore, window: Window) -> tuple[SlotUsage, ...]:
    """The slot seconds of each job within the window."""
    return records(SlotUsage, store.read(SLOT_TIME_SQL, start=window.start, end=window.end))

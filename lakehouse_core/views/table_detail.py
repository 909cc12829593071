"""One table up close: its partitions that matter, its commits, the care it was given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import PartitionMetrics
from lakehouse_core.views.current import CURRENT_FIRST
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

PARTITIONS_SQL = f"""
SELECT m.largest_partitions FROM lake_table t JOIN table_metrics m USING (table_id)
WHERE t.table_id = $table::VARCHAR AND m.largest_partitions IS NOT NULL
ORDER BY {CURRENT_FIRST} LIMIT 1
"""  # noqa: S608 a constant of ours

COMMITS_SQL = """
WITH reported AS (
  SELECT snapshot_id, max(duration_ms) AS duration_ms, max(attempts) AS attempts
  FROM commit_report WHERE table_id = $table::VARCHAR GROUP BY snapshot_id
)
SELECT snapshot_id, committed_at, coalesce(operation, 'unknown') AS operation, engine_name,
  flink_checkpoint_id, added_files, deleted_files, added_rows, deleted_rows, added_bytes,
  duration_ms, attempts,
  EXISTS (SELECT 1 FROM action WHERE action.result_snapshot_id = snapshot_commit.snapshot_id
    AND action.table_id = snapshot_commit.table_id) AS is_care
FROM snapshot_commit LEFT JOIN reported USING (snapshot_id) WHERE table_id = $table::VARCHAR
ORDER BY committed_at DESC LIMIT $limit::BIGINT
"""

CARE_SQL = """
SELECT action_id, kind, state, title, explanation, decided_by, updated_at, ended_at
FROM action WHERE table_id = $table::VARCHAR
ORDER BY coalesce(ended_at, updated_at) DESC LIMIT $limit::BIGINT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """One commit; `is_care` when an action of ours made it.

    Attributes:
        duration_ms: how long committing took, when its client sent a report.
        attempts: how often it was tried; more than one: it met other writers.
    """

    snapshot_id: int
    committed_at: datetime
    operation: str
    engine_name: str | None
    flink_checkpoint_id: int | None
    added_files: int | None
    deleted_files: int | None
    added_rows: int | None
    deleted_rows: int | None
    added_bytes: int | None
    duration_ms: float | None
    attempts: int | None
    is_care: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCare:
    """One action on the table, proposed, under way or done."""

    action_id: str
    kind: str
    state: str
    title: str
    explanation: str | None
    decided_by: str | None
    updated_at: datetime
    ended_at: datetime | None


def largest_partitions(store: TelemetryStore, table_id: str) -> tuple[PartitionMetrics, ...]:
    """The largest partitions and those with the most files; none of an unpartitioned table."""
    found = store.read(PARTITIONS_SQL, table=table_id).to_pylist()
    if not found:
        return ()
    return tuple(PartitionMetrics(**one) for one in json.loads(found[0]["largest_partitions"]))


def latest_commits(
    store: TelemetryStore, table_id: str, *, limit: int = 100
) -> tuple[TableCommit, ...]:
    """The newest commits of a table, newest first."""
    return records(TableCommit, store.read(COMMITS_SQL, table=table_id, limit=limit))


def care_of(store: TelemetryStore, table_id: str, *, limit: int = 20) -> tuple[TableCare, ...]:
    """What was proposed for the table and done to it, newest first."""
    return records(TableCare, store.read(CARE_SQL, table=table_id, limit=limit))

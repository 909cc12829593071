"""Batch jobs that have just ended: the moment at which what they wrote may be put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.maintenance.coordinate import BATCH_ENGINES

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

# Tables a batch engine committed to lately, with no statement still writing to them.
FINISHED_SQL = """
SELECT c.table_id, max(c.committed_at) AS ended_at FROM snapshot_commit c
WHERE c.committed_at > $since::TIMESTAMPTZ AND list_contains($engines::VARCHAR[], c.engine_name)
  AND c.operation IN ('append', 'overwrite', 'delete')
  AND NOT EXISTS (
    SELECT 1 FROM query_event q JOIN template_table t USING (template_id)
    WHERE q.status IN ('queued', 'running') AND t.table_name = c.table_id
      AND q.statement_kind IN ('insert', 'update', 'delete', 'merge'))
GROUP BY c.table_id
"""


def finished_etl(store: TelemetryStore, since: datetime) -> dict[str, datetime]:
    """Tables whose batch writers have ended since a moment, and when; commits are told late."""
    rows = store.read(FINISHED_SQL, since=since, engines=sorted(BATCH_ENGINES)).to_pylist()
    return {row["table_id"]: row["ended_at"] for row in rows}

"""Batch jobs that have just ended: the moment at which what they wrote may be put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.maintenance.coordinate import BATCH_ENGINES

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

# Tables a batch engine committed to since then, with no statement still writing to them.
FINISHED_SQL = """
SELECT DISTINCT c.table_id FROM snapshot_commit c
WHERE c.committed_at > $since::TIMESTAMPTZ AND list_contains($engines::VARCHAR[], c.engine_name)
  AND c.operation IN ('append', 'overwrite', 'delete')
  AND NOT EXISTS (
    SELECT 1 FROM query_event q JOIN template_table t USING (template_id)
    WHERE q.status IN ('queued', 'running') AND t.table_name = c.table_id
      AND q.statement_kind IN ('insert', 'update', 'delete', 'merge'))
ORDER BY c.table_id
"""


def finished_etl(store: TelemetryStore, since: datetime) -> tuple[str, ...]:
    """Tables whose batch writers have ended since a moment."""
    rows = store.read(FINISHED_SQL, since=since, engines=sorted(BATCH_ENGINES))
    return tuple(rows.column("table_id").to_pylist())

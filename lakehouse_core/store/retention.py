"""Retention: history older than the configured time leaves the store."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.store.literals import identifier, literal
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from datetime import timedelta

    from lakehouse_core.store.owner import OwnerStore

_COUNT = Template("SELECT count(*) AS expired FROM $table WHERE $column < $limit AND NOT ($stays)")
_DELETE = Template("DELETE FROM $table WHERE $column < $limit AND NOT ($stays)")

# When an agent last succeeded is told however long ago that was.
LAST_SUCCESSES = """run_id IN (
  SELECT arg_max(run_id, started_at) FROM agent_run WHERE outcome = 'ok' GROUP BY agent
)"""

# Old rows that are still true. Of a table's metrics: those of the snapshot it is at, and the last
# ones before the limit, which say how it was until the next. Of its commits: the newest, and those
# whose snapshots its metadata still lists.
_STAYS = {
    "agent_run": LAST_SUCCESSES,
    "table_metrics": """rowid IN (
  SELECT arg_max(rowid, collected_at) FROM table_metrics WHERE collected_at < $limit
  GROUP BY table_id
) OR rowid IN (
  SELECT m.rowid FROM table_metrics m JOIN lake_table t
    ON t.table_id = m.table_id AND coalesce(t.current_snapshot_id, 0) = m.snapshot_id
)""",
    "snapshot_commit": """rowid IN (
  SELECT arg_max(rowid, committed_at) FROM snapshot_commit GROUP BY table_id
) OR rowid IN (
  SELECT c.rowid FROM snapshot_commit c JOIN lake_table t ON t.table_id = c.table_id
  JOIN table_metrics m
    ON m.table_id = t.table_id AND m.snapshot_id = coalesce(t.current_snapshot_id, 0)
  WHERE t.dropped_at IS NULL AND c.committed_at >= m.oldest_snapshot_at
)""",
}


def apply_retention(
    store: OwnerStore,
    keep: timedelta,
    clock: Clock = utc_now,
    *,
    keep_costs: timedelta | None = None,
) -> dict[str, int]:
    """Drop rows older than `keep` and return how many, per table that lost some.

    What was spent is dropped when it is older than `keep_costs`, where that is longer.

    A table without a `retention_time` keeps everything, and old rows that are still true stay.
    """
    now = clock()
    dropped = {}
    for name, spec in TABLES.items():
        if spec.retention_time is None:
            continue
        limit = literal(now - (max(keep, keep_costs or keep) if spec.is_ledger else keep))
        values = {
            "table": identifier(name),
            "column": identifier(spec.retention_time),
            "limit": limit,
            "stays": Template(_STAYS.get(name, "FALSE")).substitute(limit=limit),
        }
        expired = store.read(_COUNT.substitute(values)).column("expired")[0].as_py()
        if expired:
            store.transact(name, [_DELETE.substitute(values)])
            dropped[name] = int(expired)
    return dropped

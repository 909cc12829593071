"""All tables with what is known about them, in a handful of statements however many there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import LakeTable
from lakehouse_core.health import assess_table, thresholds_for
from lakehouse_core.recommend.facts import OldSnapshots, Reader, Subject
from lakehouse_core.views.current import current_metrics
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lakehouse_core.config.models import Config
    from lakehouse_core.store.port import TelemetryStore

MOST_READERS = 20  # of one table, the costliest

TABLES_SQL = """
SELECT * FROM lake_table
WHERE dropped_at IS NULL AND ($only::VARCHAR IS NULL OR table_id = $only::VARCHAR)
ORDER BY table_id
"""
# Whole hours the pipeline has processed come from its sums, later queries from the history itself.
_EVENTS = """
gold AS (
  SELECT coalesce(max(date_trunc('hour', event_at)), 'epoch'::TIMESTAMPTZ) AS until
  FROM watermark WHERE source = 'pipeline'
), ran AS (
  SELECT template_id, engine_id, runs, bytes_scanned, execution_ms, cpu_ms,
    NULL::DOUBLE AS planning_ms
  FROM template_hour, gold
  WHERE hour_at >= $start::TIMESTAMPTZ AND hour_at < gold.until AND runs > 0
  UNION ALL
  SELECT template_id, engine_id, 1, bytes_scanned, execution_ms, cpu_ms, planning_ms
  FROM query_event, gold
  WHERE submitted_at >= greatest($start::TIMESTAMPTZ, gold.until) AND template_id IS NOT NULL
)"""
# Statements that read a table: what only writes to it does not pay for its state.
READERS_SQL = f"""
WITH {_EVENTS}, used AS (
  SELECT DISTINCT u.template_id, u.table_name FROM (
    SELECT template_id, table_name FROM template_table
    UNION ALL SELECT template_id, table_name FROM column_usage
  ) u JOIN query_template q USING (template_id)
  WHERE q.statement_kind IN ('select', 'merge', 'update', 'delete')
    AND list_contains($tables::VARCHAR[], u.table_name)
), per_template AS (
  SELECT template_id, engine_id, sum(runs)::BIGINT AS runs,
    sum(bytes_scanned)::BIGINT AS bytes_scanned, sum(execution_ms) AS execution_ms,
    sum(cpu_ms) AS cpu_ms, avg(planning_ms) AS planning_ms
  FROM ran WHERE template_id IN (SELECT template_id FROM used) GROUP BY ALL
)
SELECT table_name AS table_id, engine_id, template_id, runs, bytes_scanned, execution_ms, cpu_ms,
  planning_ms
FROM used JOIN per_template USING (template_id)
QUALIFY row_number() OVER (
  PARTITION BY table_name ORDER BY execution_ms DESC NULLS LAST, runs DESC, template_id, engine_id
) <= {MOST_READERS}
ORDER BY table_id, execution_ms DESC NULLS LAST, runs DESC, template_id, engine_id
"""  # noqa: S608 constants only
FIRST_SEEN_SQL = """
SELECT least(
  (SELECT min(hour_at) FROM template_hour WHERE hour_at >= $start::TIMESTAMPTZ),
  (SELECT min(submitted_at) FROM query_event WHERE submitted_at >= $start::TIMESTAMPTZ)
) AS first_at
"""
# Commits whose snapshots the metadata still lists, and which are old enough to go; what a branch or
# tag keeps does not.
OLD_SQL = """
SELECT c.table_id, count(*) FILTER (c.committed_at < $cut::TIMESTAMPTZ) AS "count",
  sum(c.added_bytes) FILTER (c.committed_at < $cut::TIMESTAMPTZ)::BIGINT AS added_bytes,
  min(c.committed_at) FILTER (c.committed_at >= $cut::TIMESTAMPTZ) AS oldest_kept_at
FROM snapshot_commit c JOIN (
  SELECT unnest($tables::VARCHAR[]) AS table_id, unnest($oldest::TIMESTAMPTZ[]) AS oldest_at
) t USING (table_id)
WHERE c.committed_at >= t.oldest_at
  AND NOT list_contains($kept::VARCHAR[], c.table_id || ' ' || c.snapshot_id) GROUP BY c.table_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All tables that were looked at.

    Attributes:
        tables: all that exist, by id.
        subjects: those that could be read, with a verdict; what else is known only of sick ones.
    """

    tables: dict[str, LakeTable]
    subjects: tuple[Subject, ...]


def read_fleet(
    store: TelemetryStore, config: Config, now: datetime, *, only: str | None = None
) -> Fleet:
    """Look at every table: its verdict by the health rules and, where it is sick, its readers.

    Args:
        store: the store.
        config: limits, windows and ages.
        now: the moment.
        only: look at this table alone, and at its readers however it is.
    """
    tables = {one.table_id: one for one in records(LakeTable, store.read(TABLES_SQL, only=only))}
    subjects = [
        Subject(
            table=tables[metrics.table_id],
            metrics=metrics,
            limits=(limits := thresholds_for(config.health, metrics.table_id)),
            health=assess_table(tables[metrics.table_id], metrics, limits, now),
            config=config,
            now=now,
        )
        for metrics in current_metrics(store, only=only).values()
        if tables[metrics.table_id].error is None
    ]
    sick = [one for one in subjects if one.health.contributors or only is not None]
    known = {one.table.table_id: one for one in _with_history(store, sick, config, now)}
    return Fleet(
        tables=tables,
        subjects=tuple(known.get(one.table.table_id, one) for one in subjects),
    )


def _with_history(
    store: TelemetryStore, sick: Sequence[Subject], config: Config, now: datetime
) -> list[Subject]:
    """The same with who reads them, and with their old snapshots."""
    if not sick:
        return []
    ids = [one.table.table_id for one in sick]
    start = now - config.maintenance.evidence_window
    first = store.read(FIRST_SEEN_SQL, start=start).column("first_at")[0].as_py()
    days = max((now - first).total_seconds() / 86_400, 1.0) if first else 1.0
    readers: dict[str, list[Reader]] = {}
    for reader in records(Reader, store.read(READERS_SQL, tables=ids, start=start)):
        readers.setdefault(reader.table_id, []).append(reader)
    old = _old_snapshots(store, sick, now - config.maintenance.keep_snapshots)
    return [
        replace(
            one,
            readers=tuple(readers.get(one.table.table_id, ())),
            old=old.get(one.table.table_id),
            observed_days=days,
        )
        for one in sick
    ]


def _old_snapshots(
    store: TelemetryStore, sick: Sequence[Subject], cut: datetime
) -> dict[str, OldSnapshots]:
    dated = [
        (one.table.table_id, one.metrics.oldest_snapshot_at)
        for one in sick
        if one.metrics.oldest_snapshot_at is not None
    ]
    if not dated:
        return {}
    ids, oldest = zip(*dated, strict=True)
    kept = [
        f"{one.table.table_id} {snapshot}"
        for one in sick
        for snapshot in one.metrics.ref_snapshot_ids or ()
    ]
    rows = store.read(OLD_SQL, tables=list(ids), oldest=list(oldest), cut=cut, kept=kept)
    return {one.table_id: one for one in records(OldSnapshots, rows)}

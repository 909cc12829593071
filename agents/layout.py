"""The layout agent: looks at the tables whose reading costs most, a few at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from agents.runs import Result
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.errors import LakehouseError
from lakehouse_core.domain.layout import LayoutLook
from lakehouse_core.layout.planned import LakeFiles
from lakehouse_core.recommend.layout_advisor import LayoutAdvisor
from lakehouse_core.recommend.layout_proposals import keep_advice
from lakehouse_core.recommend.layout_sample import Sampler
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.watch import Lease
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

# Those that were not looked at for longest, whatever came of it, and of these the costliest; the
# pipeline looks after its own tables.
TABLES_SQL = """
WITH read AS (
  SELECT table_name AS table_id, sum(bytes_scanned) AS size, max("day") AS last_day
  FROM usage_day WHERE role IN ('filter_eq', 'filter_range', 'filter_in')
    AND "day" >= $start::TIMESTAMPTZ::DATE GROUP BY table_name
), looked AS (
  SELECT table_id, max(looked_at) AS looked_at FROM (
    SELECT table_id, advised_at AS looked_at FROM layout_advice
    UNION ALL SELECT table_id, looked_at FROM layout_look) GROUP BY table_id
)
SELECT t.table_id FROM lake_table t JOIN read USING (table_id) LEFT JOIN looked USING (table_id)
WHERE t.dropped_at IS NULL AND t.error IS NULL AND NOT starts_with(t.table_id, $own::VARCHAR)
  AND (looked.looked_at IS NULL OR looked.looked_at < $again::TIMESTAMPTZ)
ORDER BY looked.looked_at NULLS FIRST, read.size DESC NULLS LAST, t.table_id LIMIT $limit::BIGINT
"""
UNENDED = "The look was begun and did not end"
_log = structlog.get_logger(__name__)


def run_once(
    store: OwnerStore,
    config: Config,
    clock: Clock,
    lease: Lease,
    is_stopping: Callable[[], bool],
) -> Result:
    """Advise some tables; one that cannot be read or sampled stops no other."""
    now, settings = clock(), config.layout
    rows = store.read(
        TABLES_SQL,
        start=now - config.maintenance.evidence_window,
        again=now - settings.every / 2,
        own=f"{config.pipeline.catalog}.{config.pipeline.namespace}.",
        limit=settings.tables_per_run,
    )
    tables = rows.column("table_id").to_pylist()
    files = LakeFiles(config)
    advised, failed = 0, []
    try:

        def ends() -> bool:
            return lease.is_lost or is_stopping()

        sampler = Sampler(config, read_machine(), files, is_stopping=ends)
        advisor = LayoutAdvisor(config, store, files, sampler.sample, clock)
        for table in tables:
            if ends():
                break
            _note(store, clock, table, UNENDED)  # stands if the run is killed
            try:
                keep_advice(store, advisor.advise(table))
            except LakehouseError as error:
                _log.warning("layout.not_advised", table=table, detail=str(error))
                _note(store, clock, table, str(error))
                failed.append(f"{table}: {error}")
            else:
                _note(store, clock, table, None)
                advised += 1
    finally:
        files.close()
    if not failed:
        return Result(rows=advised)
    why = f"{len(failed)} of {advised + len(failed)} tables could not be looked at. {failed[0]}"
    return Result(rows=advised, error=why, is_partial=advised > 0)


def _note(store: OwnerStore, clock: Clock, table_id: str, error: str | None) -> None:
    """That it was the table's turn, so that the next ones have theirs."""
    look = LayoutLook(table_id=table_id, looked_at=clock(), error=error)
    store.upsert("layout_look", to_arrow("layout_look", [look]))

"""The structure of tables as they are now: the metrics of the snapshot each is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.domain.table import TableMetrics
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore

# Of `lake_table` t and `table_metrics` m. A table that was rolled back is at a snapshot whose
# metrics are not the newest; one whose snapshot was not measured yet has the newest there are.
CURRENT_FIRST = (
    "m.snapshot_id = coalesce(t.current_snapshot_id, 0) DESC NULLS LAST, m.collected_at DESC"
)

# Which row it is, told from three narrow columns: whole rows are read of the current ones only, so
# that the history of a table does not slow down what is shown of it.
CURRENT_ROWS = """
SELECT arg_max(m.rowid, (m.snapshot_id = coalesce(t.current_snapshot_id, 0), m.collected_at))
FROM table_metrics m JOIN lake_table t USING (table_id)
WHERE t.dropped_at IS NULL GROUP BY t.table_id
"""

METRICS_SQL = f"""
SELECT * EXCLUDE (largest_partitions) FROM table_metrics
WHERE rowid IN ({CURRENT_ROWS}) AND ($only::VARCHAR IS NULL OR table_id = $only::VARCHAR)
"""  # noqa: S608 constants of this module


def current_metrics(store: TelemetryStore, *, only: str | None = None) -> dict[str, TableMetrics]:
    """The metrics of every table that exists, or of one, by table id."""
    found = records(TableMetrics, store.read(METRICS_SQL, only=only))
    return {one.table_id: one for one in found}

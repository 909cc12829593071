"""What Iceberg clients reported of their scans of a table: how much of it each could skip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.filters import Filters
    from lakehouse_core.views.window import Window

SCANS_SQL = """
SELECT coalesce(engine_name, '') AS engine_name, filter_json IS NOT NULL AND filter_json <> 'true'
    AS is_filtered, count(*) AS scans,
  sum(scanned_data_files)::BIGINT AS files_read, sum(skipped_data_files)::BIGINT AS files_skipped,
  sum(scanned_bytes)::BIGINT AS bytes_read,
  sum(scanned_data_manifests)::BIGINT AS manifests_read,
  sum(skipped_data_manifests)::BIGINT AS manifests_skipped,
  quantile_cont(planning_ms, 0.95) AS p95_planning_ms
FROM scan_report
WHERE table_id = $table::VARCHAR
  AND received_at >= $start::TIMESTAMPTZ AND received_at < $end::TIMESTAMPTZ
GROUP BY ALL ORDER BY scans DESC, engine_name, is_filtered
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scans:
    """The scans of one engine, with a filter or without.

    Attributes:
        engine_name: as the client calls itself; empty when it did not say.
        files_skipped: files in manifests that were read, left out by their bounds. Files of
            skipped manifests are not among them: nobody counts those.
        bytes_read: of the data files planned to be read.
    """

    engine_name: str
    is_filtered: bool
    scans: int
    files_read: int | None
    files_skipped: int | None
    bytes_read: int | None
    manifests_read: int | None
    manifests_skipped: int | None
    p95_planning_ms: float | None

    @property
    def skipped_share(self) -> float | None:
        """Skipped out of all files that were looked at."""
        if self.files_read is None or self.files_skipped is None:
            return None
        total = self.files_read + self.files_skipped
        return self.files_skipped / total if total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScans:
    """The reported scans of a table in the window."""

    window: Window
    rows: tuple[Scans, ...]


def table_scans(store: TelemetryStore, table_id: str, filters: Filters, clock: Clock) -> TableScans:
    """How much of the table its readers skipped, as far as clients send reports."""
    window = filters.window_at(clock())
    found = store.read(SCANS_SQL, table=table_id, start=window.start, end=window.end)
    return TableScans(window=window, rows=records(Scans, found))

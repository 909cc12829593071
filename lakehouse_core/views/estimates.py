"""Scan estimates against what engines read: how far the sizes are off that decisions rest on.

The estimate counts whole files, because it may never be too small; an engine that reads a few of
the columns reads less. It reads the footer of a file before its columns, and tiny files twice: that
much per file is no error of the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.views.rows import records
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

FOOTER_BYTES = 16 * 1024
ESTIMATES_SQL = f"""
WITH run AS (
  SELECT event.engine_id, routed.estimated_bytes AS told,
    {FOOTER_BYTES} * coalesce(routed.estimated_files, 0) AS footers,
    CASE WHEN routed.estimated_bytes IS NOT NULL THEN event.bytes_scanned END AS seen
  FROM query_event AS event JOIN routing_decision AS routed USING (gateway_id)
  WHERE event.submitted_at >= $start::TIMESTAMPTZ AND event.submitted_at < $end::TIMESTAMPTZ
    AND event.statement_kind = 'select' AND event.status = 'finished'
    -- It may have waited; and the others need not be looked through.
    AND routed.submitted_at >= $start::TIMESTAMPTZ - INTERVAL 1 DAY
    AND routed.submitted_at < $end::TIMESTAMPTZ
)
SELECT engine_id, count(*) AS reads, count(told) AS estimated, count(seen) AS compared,
  coalesce(sum(told) FILTER (seen IS NOT NULL), 0)::BIGINT AS estimated_bytes,
  coalesce(sum(seen), 0)::BIGINT AS read_bytes,
  quantile_cont(seen / told, 0.05) FILTER (told > 0) AS p05_ratio,
  quantile_cont(seen / told, 0.5) FILTER (told > 0) AS p50_ratio,
  quantile_cont(seen / told, 0.95) FILTER (told > 0) AS p95_ratio,
  count(*) FILTER (seen > told + footers) AS too_low
FROM run GROUP BY engine_id ORDER BY engine_id
"""  # noqa: S608 a constant of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEstimates:
    """How well scans on one engine were told before they ran.

    Attributes:
        reads: finished reads that came through the gateway.
        estimated: of them, those with an estimate.
        compared: of those, the ones whose engine said what it read.
        estimated_bytes, read_bytes: sums over the compared ones.
        p05_ratio, p50_ratio, p95_ratio: bytes read by bytes estimated; None: nothing to compare.
        too_low: compared ones that read more than was estimated, footers of the files included.
    """

    engine_id: str
    reads: int
    estimated: int
    compared: int
    estimated_bytes: int
    read_bytes: int
    p05_ratio: float | None
    p50_ratio: float | None
    p95_ratio: float | None
    too_low: int


@dataclass(frozen=True, slots=True)
class ScanEstimates:
    """The estimates of a window, by engine."""

    window: Window
    engines: tuple[EngineEstimates, ...]


def scan_estimates(store: TelemetryStore, clock: Clock, *, window: str) -> ScanEstimates:
    """How far estimates were off in a window."""
    seen = parse_window(window, clock())
    rows = store.read(ESTIMATES_SQL, start=seen.start, end=seen.end)
    return ScanEstimates(seen, records(EngineEstimates, rows))

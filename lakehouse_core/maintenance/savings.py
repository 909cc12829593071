"""The savings ledger: what queries cost before an action and since, measured, never predicted.

Runs of one template on one engine are compared: bytes and time per run before the action began and
after it ended. A template that nobody ran on both sides says nothing. What was run before the
action before it, or after the one after it, is theirs: no drop is credited twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from lakehouse_core.domain.maintenance import Saving
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.config.pricebook import PricesConfig
    from lakehouse_core.domain.pricebook import EngineRates
    from lakehouse_core.store.port import TelemetryStore

# Fewer runs than these on one side are an accident, not a saving.
LEAST_RUNS = 3
# An action is measured for so long; then other changes say more than it.
MEASURED_FOR = timedelta(days=30)
MONTH = timedelta(days=30)
# A month is not foretold from a few minutes of queries: runs of less than a day count as a day's.
LEAST_TIME = timedelta(days=1)
_MICRO = Decimal("0.000001")

# With the neighbours of each on its table: only runs between them tell what it changed.
ACTIONS_SQL = """
WITH done AS (
  SELECT action_id, table_id, started_at, ended_at,
    lag(ended_at) OVER beside AS previous_at, lead(started_at) OVER beside AS next_at
  FROM action WHERE state = 'verified' AND ended_at IS NOT NULL AND started_at IS NOT NULL
  WINDOW beside AS (PARTITION BY table_id ORDER BY started_at, action_id)
)
SELECT * FROM done WHERE ended_at >= $since::TIMESTAMPTZ ORDER BY ended_at, action_id
"""
# Means of finished reads on either side; the window before is as long as the evidence's.
RUNS_SQL = """
WITH reads AS (
  SELECT engine_id, template_id, bytes_scanned, execution_ms, cpu_ms,
    submitted_at >= $ended::TIMESTAMPTZ AS is_after
  FROM query_event
  WHERE status = 'finished' AND statement_kind = 'select' AND origin = 'real'
    AND submitted_at >= $from::TIMESTAMPTZ AND submitted_at < $until::TIMESTAMPTZ
    AND NOT (submitted_at >= $started::TIMESTAMPTZ AND submitted_at < $ended::TIMESTAMPTZ)
    AND (template_id, coalesce(default_catalog, ''), coalesce(default_namespace, '')) IN (
      SELECT (template_id, default_catalog, default_namespace) FROM column_usage
      WHERE table_name = $table::VARCHAR
      UNION ALL SELECT (template_id, default_catalog, default_namespace) FROM template_table
      WHERE table_name = $table::VARCHAR)
)
SELECT engine_id, template_id,
  count(*) FILTER (WHERE NOT is_after) AS runs_before,
  count(*) FILTER (WHERE is_after) AS runs_after,
  avg(bytes_scanned) FILTER (WHERE NOT is_after) AS bytes_before,
  avg(bytes_scanned) FILTER (WHERE is_after) AS bytes_after,
  avg(execution_ms) FILTER (WHERE NOT is_after) AS ms_before,
  avg(execution_ms) FILTER (WHERE is_after) AS ms_after,
  avg(coalesce(cpu_ms, execution_ms)) FILTER (WHERE NOT is_after) AS core_ms_before,
  avg(coalesce(cpu_ms, execution_ms)) FILTER (WHERE is_after) AS core_ms_after
FROM reads GROUP BY engine_id, template_id
HAVING runs_before >= $least::BIGINT AND runs_after >= $least::BIGINT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    engine_id: str
    template_id: str
    runs_before: int
    runs_after: int
    bytes_before: float | None
    bytes_after: float | None
    ms_before: float | None
    ms_after: float | None
    core_ms_before: float | None
    core_ms_after: float | None


def measure_savings(store: TelemetryStore, config: Config, now: datetime) -> int:
    """Write the ledger's rows of all actions that are measured; returns how many are new."""
    rows: list[Saving] = []
    for action in store.read(ACTIONS_SQL, since=now - MEASURED_FOR).to_pylist():
        earliest = action["started_at"] - config.maintenance.evidence_window
        until = min(now, action["next_at"] or now)
        found = store.read(
            RUNS_SQL,
            table=action["table_id"],
            started=action["started_at"],
            ended=action["ended_at"],
            **{"from": max(earliest, action["previous_at"] or earliest)},
            until=until,
            least=LEAST_RUNS,
        ).to_pylist()
        since = max(until - action["ended_at"], LEAST_TIME)
        rows += [
            _saving(action["action_id"], _Runs(**row), since, config.prices, now) for row in found
        ]
    return store.upsert("savings", to_arrow("savings", rows)) if rows else 0


def _saving(
    action_id: str, runs: _Runs, since: timedelta, prices: PricesConfig, now: datetime
) -> Saving:
    per_run = _saved_per_run(runs, prices.rates(runs.engine_id))
    per_month = Decimal(runs.runs_after) * Decimal(MONTH / since)
    return Saving(
        action_id=action_id,
        engine_id=runs.engine_id,
        template_id=runs.template_id,
        measured_at=now,
        runs_before=runs.runs_before,
        runs_after=runs.runs_after,
        bytes_per_run_before=runs.bytes_before,
        bytes_per_run_after=runs.bytes_after,
        ms_per_run_before=runs.ms_before,
        ms_per_run_after=runs.ms_after,
        usd_month=None if per_run is None else (per_run * per_month).quantize(_MICRO),
    )


def _saved_per_run(runs: _Runs, rates: EngineRates) -> Decimal | None:
    """Money per run; negative when it became dearer; None where nothing is priced or measured."""
    parts = (
        (rates.of_bytes(runs.bytes_before), rates.of_bytes(runs.bytes_after)),
        (
            rates.of_time(runs.core_ms_before, runs.ms_before),
            rates.of_time(runs.core_ms_after, runs.ms_after),
        ),
    )
    if not rates.is_known:
        return None
    saved = Decimal(0)
    for before, after in parts:
        if before is None or after is None:
            return None
        saved += before - after
    return saved

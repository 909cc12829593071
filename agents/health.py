"""The health agent: judge every table from its newest metrics; write a verdict when it is news."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from agents.runs import Result
from lakehouse_core.domain.table import LakeTable
from lakehouse_core.health import assess_table, thresholds_for
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.current import current_metrics
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.config.models import HealthConfig
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.health import TableHealth
    from lakehouse_core.store.port import TelemetryStore

REPEAT_AFTER = timedelta(hours=1)

TABLES_SQL = "SELECT * FROM lake_table WHERE dropped_at IS NULL ORDER BY table_id"
# Whole rows are read of the newest verdicts only: there is one an hour of every table.
LAST_SQL = """
SELECT table_id, assessed_at, snapshot_id, state, score, contributors, reason FROM health
WHERE rowid IN (SELECT arg_max(rowid, assessed_at) FROM health GROUP BY table_id)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    table_id: str
    assessed_at: datetime
    snapshot_id: int | None
    state: str
    score: float | None
    contributors: str
    reason: str | None


def run_once(store: TelemetryStore, health: HealthConfig, clock: Clock) -> Result:
    """Assess all tables; verdicts that are not new are written once an hour."""
    now = clock()
    metrics = current_metrics(store)
    last = {one.table_id: one for one in records(_Last, store.read(LAST_SQL))}
    verdicts = []
    for table in records(LakeTable, store.read(TABLES_SQL)):
        limits = thresholds_for(health, table.table_id)
        verdict = assess_table(table, metrics.get(table.table_id), limits, now)
        if _is_news(verdict, last.get(table.table_id)):
            verdicts.append(verdict)
    if not verdicts:
        return Result()
    return Result(rows=store.upsert("health", to_arrow("health", verdicts)))


def _is_news(verdict: TableHealth, last: _Last | None) -> bool:
    if last is None or verdict.assessed_at - last.assessed_at >= REPEAT_AFTER:
        return True
    before = [(c["rule"], c["state"]) for c in json.loads(last.contributors)]
    after = [(c.rule, str(c.state)) for c in verdict.contributors]
    return (
        (verdict.snapshot_id, str(verdict.state), verdict.reason)
        != (last.snapshot_id, last.state, last.reason)
        or sorted(before) != sorted(after)
        or _rounded(verdict.score) != _rounded(last.score)
    )


def _rounded(score: float | None) -> float | None:
    """Ages grow by the minute; a verdict is news when a person would see a difference."""
    return None if score is None else round(score, 0)

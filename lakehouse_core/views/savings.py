"""The savings ledger: what each maintenance action saved, measured, beside what was promised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from lakehouse_core.store.port import TelemetryStore

# Actions of maintenance, and templates that were moved to another engine for good.
_DONE = """
done AS (
  SELECT action_id, kind, table_id, ended_at, gain_usd_month, cost_usd FROM action
  UNION ALL
  SELECT trial_id, 'route', 'template ' || template_id, step_at, gain_usd_month, 0
  FROM route_trial WHERE state = 'adopted'
)"""
LEDGER_SQL = f"""
WITH {_DONE}
SELECT action_id, kind, table_id, ended_at, gain_usd_month AS predicted_usd_month,
  sum(usd_month) AS saved_usd_month, cost_usd, count(*) AS templates,
  sum(runs_before)::BIGINT AS runs_before, sum(runs_after)::BIGINT AS runs_after,
  max(measured_at) AS measured_at
FROM savings JOIN done USING (action_id)
GROUP BY ALL ORDER BY saved_usd_month DESC NULLS LAST, action_id LIMIT $limit::BIGINT
"""  # noqa: S608 put together from constants
TOTALS_SQL = f"""
WITH {_DONE}, one AS (
  SELECT action_id, sum(usd_month) AS saved, any_value(cost_usd) AS cost
  FROM savings JOIN done USING (action_id) GROUP BY action_id
)
SELECT count(*) AS actions, sum(saved) AS saved_usd_month, sum(cost) AS cost_usd FROM one
"""  # noqa: S608 as above


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One action.

    Attributes:
        predicted_usd_month: what it promised; None: it could not say.
        saved_usd_month: what its readers cost less since, per month; None: nothing is priced.
        cost_usd: what carrying it out cost, once.
        templates: query templates that ran before and after it.
    """

    action_id: str
    kind: str
    table_id: str
    ended_at: datetime | None
    predicted_usd_month: Decimal | None
    saved_usd_month: Decimal | None
    cost_usd: Decimal | None
    templates: int
    runs_before: int
    runs_after: int
    measured_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingsLedger:
    """All measured actions: the largest saving first, and the totals of all of them."""

    actions: int
    saved_usd_month: Decimal | None
    cost_usd: Decimal | None
    rows: tuple[LedgerRow, ...]


def savings_ledger(store: TelemetryStore, *, limit: int = 500) -> SavingsLedger:
    """What maintenance saved; only runs of one template before and after an action count."""
    (totals,) = store.read(TOTALS_SQL).to_pylist()
    rows = records(LedgerRow, store.read(LEDGER_SQL, limit=limit))
    return SavingsLedger(**totals, rows=rows)

"""Imported bills: what each asks for, what of it is split, what is not and why, what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from lakehouse_core.store.port import TelemetryStore

# A line counts for the import that brought it, until another one replaces it. Imports of before
# they were noted have lines only.
BILLS_SQL = """
WITH reasons AS (
  SELECT import_id, currency, reason, sum(cost) AS cost FROM bill_line
  WHERE superseded_by IS NULL AND reason IS NOT NULL GROUP BY ALL
), told AS (
  SELECT import_id, currency, list({'reason': reason, 'cost': cost} ORDER BY abs(cost) DESC, reason)
    AS reasons
  FROM reasons GROUP BY ALL
), counted AS (
  SELECT import_id, currency, any_value(file_name) AS said_name, max(imported_at) AS said_at,
    min(period_start) AS period_start, max(period_end) AS period_end,
    count(*) FILTER (superseded_by IS NULL) AS counting,
    coalesce(sum(cost) FILTER (superseded_by IS NULL), 0) AS amount,
    coalesce(sum(cost) FILTER (superseded_by IS NULL AND reason IS NULL), 0) AS allocated
  FROM bill_line GROUP BY ALL
)
SELECT import_id, coalesce(file_name, said_name) AS file_name,
  coalesce(imported_at, said_at) AS imported_at, period_start, period_end, lines,
  coalesce(counting, 0) AS counting, currency, coalesce(amount, 0) AS amount,
  coalesce(allocated, 0) AS allocated, coalesce(reasons, []) AS reasons,
  coalesce(refused_lines, 0) AS refused_lines, coalesce(refused, '[]') AS refused
FROM bill_import FULL JOIN counted USING (import_id) LEFT JOIN told USING (import_id, currency)
ORDER BY imported_at DESC, import_id DESC, currency LIMIT $limit::BIGINT
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """An import, in one of its currencies.

    Attributes:
        lines: in the file; None: not noted when it was imported.
        counting: lines that count now, not replaced by a later import.
        currency: None when no line was taken.
        amount: what the counting lines come to.
        allocated: part of it that is split over the hours and queries of its engines.
        unallocated: reason → what is kept, but nobody's.
        refused: lines that were not taken, with the reason; the first of them.
    """

    import_id: str
    file_name: str
    imported_at: datetime
    period_start: datetime | None
    period_end: datetime | None
    lines: int | None
    counting: int
    currency: str | None
    amount: Decimal
    allocated: Decimal
    unallocated: dict[str, Decimal]
    refused_lines: int
    refused: tuple[str, ...]


def list_bills(store: TelemetryStore, *, limit: int = 200) -> tuple[Bill, ...]:
    """Imports, the newest first; one of several currencies is a row for each."""
    found = []
    for row in store.read(BILLS_SQL, limit=limit).to_pylist():
        reasons = {one["reason"]: one["cost"] for one in row.pop("reasons")}
        refused = tuple(json.loads(row.pop("refused")))
        found.append(Bill(**row, unallocated=reasons, refused=refused))
    return tuple(found)

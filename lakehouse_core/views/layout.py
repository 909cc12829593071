"""The layout of a table: what was advised last, what was tried, what a rewrite brought."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.layout import LayoutAdvice, LayoutLook, LayoutProof
from lakehouse_core.views.names import resolve_table
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

ADVICE_SQL = """
SELECT * FROM layout_advice WHERE table_id = $table::VARCHAR
ORDER BY advised_at DESC, advice_id LIMIT 1
"""
LOOK_SQL = "SELECT * FROM layout_look WHERE table_id = $table::VARCHAR AND error IS NOT NULL"
# Who decides on it: the newest action on account of the layout, with where it stands.
PROPOSAL_SQL = """
SELECT action_id, state FROM action WHERE table_id = $table::VARCHAR
  AND dedupe_key = 'layout ' || $table::VARCHAR || ' ' || $layout::VARCHAR
ORDER BY proposed_at DESC LIMIT 1
"""
FILTERS_SQL = """
SELECT column_name, engine_id, role, sum(runs)::BIGINT AS runs,
  sum(bytes_scanned)::BIGINT AS bytes_scanned
FROM usage_day WHERE table_name = $table::VARCHAR AND starts_with(role, 'filter_')
  AND "day" >= $since::TIMESTAMPTZ::DATE
GROUP BY ALL ORDER BY runs DESC, column_name, engine_id, role LIMIT 100
"""
PROVEN_SQL = """
SELECT action_id, title FROM action WHERE table_id = $table::VARCHAR AND state = 'verified'
  AND kind IN ('sort', 'zorder', 'hilbert')
  AND action_id IN (SELECT action_id FROM layout_proof)
ORDER BY ended_at DESC LIMIT 1
"""
PROOF_SQL = """
SELECT p.*, q.template, s.runs_after, s.bytes_per_run_before AS seen_before,
  s.bytes_per_run_after AS seen_after
FROM layout_proof p LEFT JOIN query_template q USING (template_id)
LEFT JOIN savings s USING (action_id, template_id, engine_id)
WHERE p.action_id = $action::VARCHAR
ORDER BY p.runs * (p.bytes_before - p.bytes_after) DESC, p.template_id, p.engine_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRow(LayoutProof):
    """A template on an engine: planned before and after; what the history shows since, if it does.

    Attributes:
        runs_after: runs that were seen since the rewrite; None: too few so far.
        seen_before: bytes that the engine scanned per run before, as it says.
        seen_after: the same since.
    """

    template: str | None = None
    runs_after: int | None = None
    seen_before: float | None = None
    seen_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRow:
    """An engine that filters on a column in a role (`filter_eq`, `filter_range`, …)."""

    column_name: str
    engine_id: str
    role: str
    runs: int
    bytes_scanned: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutView:
    """What is known; empty when nobody looked.

    Attributes:
        layout: what is advised; None: leave it, or nobody looked (`reason` is None then).
        candidates: what was tried, the cheapest first.
        rows: per template and engine the bytes of a run now and then.
        proof: of the last rewrite in some order.
        proposal_id: the newest action on account of the advised layout; `proposal_state` says how
            far it is.
        unread_runs: runs whose text nobody has, or nobody understands; they are not counted.
        filters: which engine filters on which column how, in the days up to the advice.
        failed_at: when the agent last took the table up, if that came to nothing; `failure` is why.
    """

    table_id: str
    advice_id: str | None = None
    advised_at: datetime | None = None
    layout: str | None = None
    reason: str | None = None
    target_bytes: int | None = None
    prediction: dict[str, Any] | None = None
    runs: int | None = None
    sample_rows: int | None = None
    sample_share: float | None = None
    saved_usd_month: str | None = None
    columns: tuple[dict[str, Any], ...] = ()
    candidates: tuple[dict[str, Any], ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    unusable: tuple[dict[str, Any], ...] = ()
    partitioning: tuple[str, ...] = ()
    overlaps: tuple[dict[str, Any], ...] = ()
    proof_of: str | None = None
    proof_title: str | None = None
    proof: tuple[ProofRow, ...] = ()
    failed_at: datetime | None = None
    failure: str | None = None
    proposal_id: str | None = None
    proposal_state: str | None = None
    unread_runs: int = 0
    filters: tuple[FilterRow, ...] = ()


def show_layout(store: TelemetryStore, name: str) -> LayoutView:
    """The layout of a table.

    Raises:
        NotFoundError: no such table; names the nearest.
    """
    table_id = resolve_table(store, name)
    proof_of, title, proof = _proof(store, table_id)
    told: dict[str, Any] = {"proof_of": proof_of, "proof_title": title, "proof": proof}
    for look in records(LayoutLook, store.read(LOOK_SQL, table=table_id)):
        told |= {"failed_at": look.looked_at, "failure": look.error}
    found = records(LayoutAdvice, store.read(ADVICE_SQL, table=table_id))
    if not found:
        return LayoutView(table_id=table_id, **told)
    row, said = found[0], json.loads(found[0].advice)
    if row.layout is not None:
        for one in store.read(PROPOSAL_SQL, table=table_id, layout=row.layout).to_pylist():
            told |= {"proposal_id": one["action_id"], "proposal_state": one["state"]}
    since = row.advised_at - timedelta(days=said["observed_days"])
    filters = store.read(FILTERS_SQL, table=table_id, since=since)
    return LayoutView(
        table_id=table_id,
        advice_id=row.advice_id,
        advised_at=row.advised_at,
        layout=row.layout,
        reason=row.reason,
        target_bytes=row.target_bytes,
        prediction=said["prediction"],
        runs=said["runs"],
        sample_rows=said["sample_rows"],
        sample_share=said["sample_share"],
        saved_usd_month=_saved(said),
        columns=tuple(said["columns"]),
        candidates=tuple(said["candidates"]),
        rows=tuple(said["rows"]),
        unusable=tuple(said["unusable"]),
        partitioning=tuple(said["partitioning"]),
        overlaps=tuple(said["overlaps"]),
        unread_runs=said["unread_runs"],
        filters=tuple(records(FilterRow, filters)),
        **told,
    )


def _proof(
    store: TelemetryStore, table_id: str
) -> tuple[str | None, str | None, tuple[ProofRow, ...]]:
    last = store.read(PROVEN_SQL, table=table_id).to_pylist()
    if not last:
        return None, None, ()
    action = last[0]["action_id"]
    rows = store.read(PROOF_SQL, action=action)
    return action, last[0]["title"], tuple(records(ProofRow, rows))


def _saved(said: dict[str, Any]) -> str | None:
    now, then = said["usd_month_now"], said["usd_month_then"]
    return None if now is None or then is None else str(Decimal(now) - Decimal(then))

"""Routing recommendations and their trials: rows as records, the list, one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.trial import OPEN, RouteTrial, TrialState
from lakehouse_core.views.recommendations import ROUTE

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.store.port import TelemetryStore

LIST_SQL = """
SELECT * FROM route_trial WHERE list_contains($states::VARCHAR[], state)
ORDER BY gain_usd_month DESC NULLS LAST, trial_id LIMIT 500
"""
SHOW_SQL = "SELECT * FROM route_trial WHERE trial_id = $trial::VARCHAR"


def trials_of(rows: pa.Table) -> tuple[RouteTrial, ...]:
    """One trial per row of `route_trial`."""
    return tuple(
        RouteTrial(
            **row
            | {"state": TrialState(row["state"]), "figures": json.loads(row["figures"] or "{}")}
        )
        for row in rows.to_pylist()
    )


def list_trials(store: TelemetryStore, state: str = "open") -> tuple[RouteTrial, ...]:
    """Trials in a state (`open`: proposed or snoozed; `all`), the largest saving first."""
    if state == "all":
        wanted = [one.value for one in TrialState]
    else:
        wanted = [one.value for one in OPEN] if state == "open" else [state]
    return trials_of(store.read(LIST_SQL, states=wanted))


def show_trial(store: TelemetryStore, trial_id: str) -> RouteTrial:
    """One trial.

    Raises:
        NotFoundError: there is no such trial.
    """
    found = trials_of(store.read(SHOW_SQL, trial=trial_id))
    if not found:
        raise NotFoundError(
            f"Recommendation {trial_id!r} is not known. See `lakehelm recommend list`."
        )
    return found[0]


def trial_document(trial: RouteTrial, template: str | None) -> dict[str, Any]:
    """A trial with the keys that recommendations for tables have, and its own."""
    return {
        "action_id": trial.trial_id,
        "kind": ROUTE,
        "table_id": None,
        "state": trial.state.value,
        "title": trial.title,
        "score": None,
        "gain_usd_month": trial.gain_usd_month,
        "cost_usd": 0,
        "priority": float(trial.gain_usd_month or 0),
        "expires_at": trial.expires_at,
        "template_id": trial.template_id,
        "template": template,
        "from_engine": trial.from_engine,
        "to_engine": trial.to_engine,
        "share": trial.share,
        "gain_low": trial.gain_low,
        "gain_high": trial.gain_high,
        "currency": trial.currency,
        "runs": trial.runs,
        "evidence": trial.figures,
        "evidence_at": trial.evidence_at,
        "risk": trial.risk,
        "plan_hash": trial.plan_hash,
        "decided_by": trial.decided_by,
        "decided_at": trial.decided_at,
        "explanation": trial.explanation,
    }

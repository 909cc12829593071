"""Tables of recommendations: the ranked list, what is predicted, who pays, what is not cured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.recommendations import change_of
from pages.parts.cells import (
    counted,
    mebibytes,
    number,
    one_line,
    seconds,
    short_time_of,
    show,
    state_word,
    time_of,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.domain.maintenance import Action, Change
    from lakehouse_core.views.recommendations import HistoryStep, Payer
    from lakehouse_core.views.unhealed import Unhealed


def action_grid(actions: Sequence[Action], key: str, on_select: Callable[[], None]) -> Any:
    """The recommendations in the order of gain over cost; a row can be chosen."""
    return show(
        [
            {
                "title": one.title,
                "table": one.table_id,
                "kind": one.kind.value.replace("_", " "),
                "state": state_word(one.state.value),
                "score": _arrow(change_of(one, "score")),
                "gain": None if one.gain_usd_month is None else float(one.gain_usd_month),
                "cost": None if one.cost_usd is None else float(one.cost_usd),
                "bytes": mebibytes(one.plan.input_bytes),
                "readers": len(one.evidence),
                "proposed": one.proposed_at,
                "expires": one.expires_at,
            }
            for one in actions
        ],
        {
            "title": st.column_config.TextColumn("What", pinned=True, width=300),
            "table": "Table",
            "kind": "Kind",
            "state": "State",
            "score": st.column_config.TextColumn("Score", help="Now and predicted, of 100."),
            "gain": number("Saving", "%.4f $/month", "Modelled, at list prices."),
            "cost": number("Cost", "%.4f $", "Of carrying it out once, at list prices."),
            "bytes": number("Rewritten", "%.1f MiB"),
            "readers": counted("Readers", "Templates on engines that read the table, at most 10."),
            "proposed": short_time_of("Proposed"),
            "expires": short_time_of("Expires"),
        },
        key=key,
        on_select=on_select,
    )


def change_grid(changes: Sequence[Change]) -> None:
    """What is predicted, each figure with its range."""
    show(
        [
            {
                "figure": one.name.replace("_", " "),
                "before": _amount(one.before, one.unit),
                "after": _amount(one.after, one.unit),
                "range": "-"
                if one.low is None or one.high is None
                else f"{_amount(one.low, one.unit)} to {_amount(one.high, one.unit)}",
                "unit": one.unit,
            }
            for one in changes
        ],
        {
            "figure": "Figure",
            "before": "Now",
            "after": "Predicted",
            "range": "Range",
            "unit": "Unit",
        },
    )


def payer_grid(payers: Sequence[Payer]) -> None:
    """The queries that read the table."""
    show(
        [
            {
                "template": one_line(one.template) or one.template_id,
                "engine": one.engine_id,
                "runs": one.runs,
                "time": seconds(one.execution_ms),
                "scanned": mebibytes(one.bytes_scanned),
                "saving": one.saving_usd_month,
            }
            for one in payers
        ],
        {
            "template": wide("Template"),
            "engine": "Engine",
            "runs": counted("Runs"),
            "time": number("Execution", "%.1f s", "Of all runs together."),
            "scanned": number("Scanned", "%.1f MiB", "By all runs, where the engine says so."),
            "saving": number("Saving", "%.4f $/month", "Modelled."),
        },
    )


def unhealed_grid(signals: Sequence[Unhealed]) -> None:
    """What hurts and is not cured."""
    show(
        [
            {
                "table": one.table_id,
                "state": state_word(one.state),
                "message": one.message,
                "why": one.why,
            }
            for one in signals
        ],
        {
            "table": "Table",
            "state": "State",
            "message": "What hurts",
            "why": wide("Why nothing is proposed"),
        },
    )


def step_grid(steps: Sequence[HistoryStep]) -> None:
    """What happened to a recommendation, oldest first."""
    show(
        [
            {"at": one.noted_at, "actor": one.actor, "verb": one.verb, "detail": one.detail}
            for one in steps
        ],
        {
            "at": time_of("When"),
            "actor": "Who",
            "verb": "What",
            "detail": wide("Detail"),
        },
    )


def _arrow(change: Change | None) -> str | None:
    if change is None:
        return None
    return f"{f.count(change.before)} → {f.count(change.after)}"


def _amount(value: float | None, unit: str) -> str:
    if unit == "bytes":
        return f.size(value)
    if unit.startswith("USD"):
        return f.UNKNOWN if value is None else f"{value:,.4f}"
    return f.duration(value) if unit == "ms" else f.count(value)

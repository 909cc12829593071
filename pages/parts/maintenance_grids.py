"""Tables of maintenance: queue, what was done with before and after, what was refused and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lakehouse_core.views import formatting as f
from pages.parts.cells import counted, number, seconds, short_time_of, show, state_word, wide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.domain.maintenance import Action, Saving
    from lakehouse_core.views.maintenance import Comparison, MaintenanceItem


def item_grid(items: Sequence[MaintenanceItem], key: str, on_select: Callable[[], None]) -> Any:
    """Actions on their way and at their end; a row can be chosen."""
    return show(
        [
            {
                "title": one.action.title,
                "table": one.action.table_id,
                "state": state_word(one.action.state.value),
                "why": one.action.explanation,
                "files": _arrow(one.action, "data_files"),
                "score": _arrow(one.action, "score"),
                "saved": one.saved_usd_month,
                "took": _took(one.action),
                "attempts": one.action.attempts,
                "ended": one.action.ended_at,
                "not_before": one.action.not_before,
            }
            for one in items
        ],
        {
            "title": st.column_config.TextColumn("What", pinned=True, width=280),
            "table": "Table",
            "state": "State",
            "why": wide("Why, or what came of it"),
            "files": st.column_config.TextColumn("Files", help="Before and after, measured."),
            "score": st.column_config.TextColumn("Score", help="Before and after, of 100."),
            "saved": number("Saving", "%.4f $/month", "Measured on the queries since then."),
            "took": number("Took", "%.1f s"),
            "attempts": counted("Attempts"),
            "ended": short_time_of("Ended"),
            "not_before": short_time_of("Not before"),
        },
        key=key,
        on_select=on_select,
    )


def figure_grid(figures: Sequence[Comparison]) -> None:
    """Each figure before, as predicted, as it became."""
    show(
        [
            {
                "figure": one.name.replace("_", " "),
                "before": amount(one.before, one.unit),
                "predicted": amount(one.predicted, one.unit),
                "realised": amount(one.realised, one.unit),
                "unit": one.unit,
            }
            for one in figures
        ],
        {
            "figure": "Figure",
            "before": "Before",
            "predicted": "Predicted",
            "realised": "Realised",
            "unit": "Unit",
        },
    )


def check_grid(action: Action) -> None:
    """What was compared afterwards."""
    show(
        [
            {
                "name": str(one.get("name")),
                "ok": "as it should be" if one.get("ok") else "NOT as it should be",
                "expected": str(one.get("expected")),
                "found": str(one.get("found")),
            }
            for one in action.verification
        ],
        {"name": wide("Check"), "ok": "Result", "expected": "Expected", "found": "Found"},
    )


def saving_grid(savings: Sequence[Saving]) -> None:
    """What queries cost per run before and since."""
    show(
        [
            {
                "template": one.template_id,
                "engine": one.engine_id,
                "before": seconds(one.ms_per_run_before),
                "after": seconds(one.ms_per_run_after),
                "runs": one.runs_after,
                "usd": None if one.usd_month is None else float(one.usd_month),
            }
            for one in savings
        ],
        {
            "template": "Template",
            "engine": "Engine",
            "before": number("Before", "%.3f s", "Execution time per run."),
            "after": number("Since", "%.3f s", "Execution time per run."),
            "runs": counted("Runs since"),
            "usd": number("Saving", "%.4f $/month", "At list prices; negative: it became dearer."),
        },
    )


def amount(value: float | None, unit: str) -> str:
    """A figure in its unit."""
    if unit == "bytes":
        return f.size(value)
    if unit.startswith("USD"):
        return f.UNKNOWN if value is None else f"{value:,.4f}"
    return f.duration(value) if unit == "ms" else f.count(value)


def _arrow(action: Action, name: str) -> str | None:
    change = next((one for one in action.realised if one.name == name), None)
    if change is None or change.before is None or change.after is None:
        return None
    return f"{f.count(change.before)} → {f.count(change.after)}"


def _took(action: Action) -> float | None:
    if action.started_at is None or action.ended_at is None:
        return None
    return (action.ended_at - action.started_at).total_seconds()

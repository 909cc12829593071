"""Tables of templates, and of the columns a table's queries use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lakehouse_core.views import formatting as f
from pages.parts.cells import (
    counted,
    mebibytes,
    number,
    one_line,
    percent,
    seconds,
    show,
    time_of,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse_core.views.costs import CostReport, CostRow
    from lakehouse_core.views.processed import Coverage
    from lakehouse_core.views.unparsed import ReasonRow
    from lakehouse_core.views.workloads import Workload


def coverage(seen: Coverage) -> str:
    """Which part of the figures the pipeline made, in a sentence."""
    if seen.exported_at is None or seen.gold_until <= seen.start:
        return "Counted live."
    return f"From the pipeline up to {f.moment(seen.gold_until)}, live since."


def workload_grid(
    rows: Sequence[Workload], key: str, on_select: Callable[[], None], spent: CostReport
) -> Any:
    """The templates with what they cost; a row can be chosen."""
    costs = {row.first: row for row in spent.rows}
    return show(
        [
            {
                "template": one_line(row.template) or "(text not known)",
                "runs": row.runs,
                "trend": list(row.trend),
                **_money(costs.get(row.template_id or "unknown")),
                "errors": percent(row.error_ratio),
                "p50": seconds(row.p50_ms),
                "p95": seconds(row.p95_ms),
                "time": seconds(row.elapsed_ms),
                "scanned": mebibytes(row.bytes_scanned),
                "engines": list(row.engines),
                "users": row.users,
                "kind": row.statement_kind,
                "parse": row.parse_error,
            }
            for row in rows
        ],
        {
            "template": st.column_config.TextColumn("Template", width=420, pinned=True),
            "runs": counted("Runs"),
            "trend": st.column_config.BarChartColumn("Runs over the window", y_min=0),
            **_money_columns(spent.currency),
            "errors": number("Errors", "%.1f %%", "Failed out of finished and failed."),
            "p50": number("p50", "%.2f s", "Of finished runs, within 1 %."),
            "p95": number("p95", "%.2f s", "Of finished runs, within 1 %."),
            "time": number("Time in all", "%.0f s"),
            "scanned": number("Scanned", "%.1f MiB", "Where engines say so."),
            "engines": st.column_config.ListColumn("Engines"),
            "users": counted("Users"),
            "kind": "Kind",
            "parse": st.column_config.TextColumn("Not understood because", width=240),
        },
        key=key,
        on_select=on_select,
    )


def _money(row: CostRow | None) -> dict[str, float | None]:
    if row is None:
        return {"cost": None, "thousand": None}
    each = row.per_thousand
    return {"cost": float(row.cost), "thousand": None if each is None else float(each)}


def _money_columns(currency: str) -> dict[str, Any]:
    note = "Its share of the engines' metered hours; the costs page has the basis."
    return {
        "cost": number("Cost", f"%.4f {currency}", note),
        "thousand": number("Per 1,000 runs", f"%.4f {currency}"),
    }


def engine_grid(engines: Sequence[Workload], total: Workload, spent: CostReport) -> None:
    """One template on each engine, and over all of them."""
    costs = {row.first: row for row in spent.rows} | {"all": spent.total}
    rows = [(one.engines[0], one) for one in engines]
    if len(rows) > 1:
        rows.append(("all", total))
    show(
        [
            {
                "engine": name,
                "runs": one.runs,
                "trend": list(one.trend),
                **_money(costs.get(name)),
                "errors": percent(one.error_ratio),
                "p50": seconds(one.p50_ms),
                "p95": seconds(one.p95_ms),
                "scanned": mebibytes(one.bytes_scanned / one.runs)
                if one.bytes_scanned is not None and one.runs
                else None,
                "users": one.users,
            }
            for name, one in rows
        ],
        {
            "engine": "Engine",
            "runs": counted("Runs"),
            "trend": st.column_config.BarChartColumn("Runs over the window", y_min=0),
            **_money_columns(spent.currency),
            "errors": number("Errors", "%.1f %%", "Failed out of finished and failed."),
            "p50": number("p50", "%.2f s"),
            "p95": number("p95", "%.2f s"),
            "scanned": number("Scanned per run", "%.1f MiB"),
            "users": counted("Users"),
        },
    )


def reason_grid(reasons: Sequence[ReasonRow]) -> None:
    """Why statements were not understood."""
    show(
        [
            {
                "reason": row.reason,
                "queries": row.queries,
                "templates": row.templates,
                "engines": list(row.engines),
                "example": row.example,
                "last": row.last_seen_at,
            }
            for row in reasons
        ],
        {
            "reason": "Reason",
            "queries": counted("Queries"),
            "templates": counted("Templates"),
            "engines": st.column_config.ListColumn("Engines"),
            "example": wide("What was said of one"),
            "last": time_of("Last seen"),
        },
    )

"""Tables of money: reports, queries, tables, rules, alerts; the CSV of each is a click away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.downloads import to_csv
from lakehouse_core.views.spend_words import sum_words
from pages.parts.cells import counted, mebibytes, number, one_line, percent, show, time_of, wide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal

    from lakehouse_core.views.cost_detail import DearQuery, StoredTable, UnitCosts
    from lakehouse_core.views.costs import CostReport

HOW_COSTS = """
- **Cost**: every metered hour of an engine (quantity times rate of the price book, or a line of a
  bill) is divided over the queries that ran in it, by their execution seconds, their CPU, or what
  they scanned. Failed and cancelled queries cost too. Not a digit is lost.
- **Idle**: the part of a metered hour in which nothing ran. **Unallocated**: metered, but no query
  can be charged with it; the reason is in the row.
- **Workload, team**: the first rule of `workload_groups` that matches; what none matches is in the
  default group.
- **Table**: a template that touches several tables divides its cost over them evenly.
- **Before**: the span of the same length right before the window.
- **Basis**: billed (an invoice), list (the engine's own meter at list price), modelled (measured by
  us at the price book's rate). Unpriced hours are in no sum.

`lakehelm cost report --json` has the same numbers; docs/finops.md has the method in full.
"""
HOW_FORECAST = """
The mean of the last 7 days or of the same weekday over four weeks, whichever erred less one day
ahead on the last two weeks. The range holds the end of the month four of five times, as far as days
go on varying as they did. `lakehelm cost forecast --json` names method, days and error.
"""


def amount(label: str, currency: str, note: str | None = None) -> Any:
    """A column of money; the exact digits are in the CSV and in `--json`."""
    return number(label, f"%.4f {currency}", note)


def download(label: str, rows: Sequence[dict[str, Any]], name: str) -> None:
    """The rows as a CSV file."""
    st.download_button(
        label, to_csv(rows), file_name=f"{name}.csv", mime="text/csv", icon=":material/download:"
    )


def reconciliation(report: CostReport) -> None:
    """Whether it adds up, in a line."""
    sums = report.reconciliation
    icon = ":material/check_circle:" if not sums.difference else ":material/error:"
    st.markdown(
        f"{icon} **Reconciliation:** {sum_words(sums)} {report.currency}, metered "
        f"{sums.metered:f} {report.currency}, difference {sums.difference:f} {report.currency}"
    )


def basis_words(report: CostReport) -> str:
    """What the figures rest on, in a sentence or two."""
    basis = report.basis
    words = [f"Basis: {', '.join(basis.bases) or 'nothing metered'}, {basis.hours} metered hours."]
    if basis.unpriced:
        names = ", ".join(basis.unpriced_engines)
        words.append(f"{basis.unpriced} charges ({names}) have no price and are in no sum.")
    if basis.provisional_from is not None:
        words.append(f"Provisional since {f.moment(basis.provisional_from)}.")
    words += [f"{f.money(cost, code)} more." for code, cost in basis.other_currencies.items()]
    return " ".join(words)


def report_grid(report: CostReport, key: str, on_select: Callable[[], None]) -> Any:
    """The rows of a report; one can be chosen."""
    code = report.currency
    first, *more = report.by
    return show(
        [
            {
                "first": row.first,
                "second": row.second,
                "cost": money(row.cost),
                "share": percent(float(row.cost / report.total.cost))
                if report.total.cost
                else None,
                "before": money(row.before),
                "change": money(row.change),
                "queries": row.queries,
                "thousand": money(row.per_thousand),
                "failed": money(row.failed_cost),
                "basis": ", ".join(row.bases),
            }
            for row in report.rows
        ],
        {
            "first": st.column_config.TextColumn(first.replace("_", " ").capitalize(), pinned=True),
            "second": more[0].replace("_", " ").capitalize() if more else None,
            "cost": amount("Cost", code),
            "share": number("Share", "%.1f %%", "Of all rows that pass the filters."),
            "before": amount("Before", code, "The span of the same length right before."),
            "change": amount("Change", code),
            "queries": counted("Queries"),
            "thousand": amount("Per 1,000 queries", code),
            "failed": amount("Of it failed", code, "Queries that failed or were cancelled."),
            "basis": "Basis",
        },
        key=key,
        on_select=on_select,
    )


def query_grid(rows: Sequence[DearQuery], currency: str) -> None:
    """The queries that cost most."""
    show(
        [
            {
                "cost": money(row.cost),
                "engine": row.engine_id,
                "user": row.user_name,
                "status": row.status,
                "seconds": None if row.execution_us is None else row.execution_us / 1e6,
                "template": one_line(row.template),
                "hour": row.first_hour_at,
                "query": row.query_id,
            }
            for row in rows
        ],
        {
            "cost": number("Cost", f"%.6f {currency}"),
            "engine": "Engine",
            "user": "User",
            "status": "Status",
            "seconds": number("Executed", "%.1f s"),
            "template": wide("Template"),
            "hour": time_of("First hour"),
            "query": "Query",
        },
    )


def storage_grid(rows: Sequence[StoredTable], currency: str) -> None:
    """What keeping tables cost."""
    show(
        [
            {
                "table": row.table_id,
                "class": row.storage_class,
                "cost": money(row.cost),
                "size": mebibytes(row.total_bytes),
                "basis": row.basis,
            }
            for row in rows
        ],
        {
            "table": st.column_config.TextColumn("Table", pinned=True),
            "class": "Storage class",
            "cost": number("Cost", f"%.6f {currency}"),
            "size": number("Size", "%.1f MiB", "Files of the current snapshot."),
            "basis": "Basis",
        },
    )


def unit_grid(rows: Sequence[UnitCosts], currency: str) -> None:
    """What units of work cost on each engine."""
    show(
        [
            {
                "engine": row.engine_id,
                "cost": money(row.cost),
                "thousand": money(row.per_thousand),
                "tb": money(row.per_tb),
                "hour": money(row.per_busy_hour),
                "idle": percent(row.idle_ratio),
                "queries": row.queries,
            }
            for row in rows
        ],
        {
            "engine": st.column_config.TextColumn("Engine", pinned=True),
            "cost": amount("Cost", currency),
            "thousand": amount("Per 1,000 queries", currency),
            "tb": amount("Per TB scanned", currency, "Where the engine says what it scans."),
            "hour": amount("Per hour of execution", currency),
            "idle": number("Idle", "%.1f %%", "Share of the cost."),
            "queries": counted("Queries"),
        },
    )


def money(value: Decimal | None) -> float | None:
    """For a cell alone: tables of the browser know floats only."""
    return None if value is None else float(value)

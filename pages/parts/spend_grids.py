"""Tables around money: rules of workload groups, what they would move, alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.views import formatting as f
from pages.parts.cells import counted, number, show, time_of, wide
from pages.parts.cost_grids import amount, money

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.finops.alerts import Alert
    from lakehouse_core.views.bills import Bill
    from lakehouse_core.views.groups import Move, RuleHit
    from lakehouse_core.views.savings import LedgerRow


def rule_grid(rows: Sequence[RuleHit], currency: str) -> None:
    """The rules in order, the default group last."""
    show(
        [
            {
                "number": row.number,
                "workload": row.workload,
                "team": row.team,
                "center": row.cost_center,
                "cost": money(row.cost),
                "queries": row.queries,
            }
            for row in rows
        ],
        {
            "number": counted("Order"),
            "workload": "Group",
            "team": "Team",
            "center": "Cost center",
            "cost": amount("Caught", currency),
            "queries": counted("Queries"),
        },
    )


def move_grid(rows: Sequence[Move], currency: str) -> None:
    """What would be in another group, team or cost center."""

    def place(*names: str | None) -> str:
        return " / ".join(name for name in names if name)

    show(
        [
            {
                "before": place(row.before, row.before_team, row.before_center),
                "after": place(row.after, row.after_team, row.after_center),
                "cost": money(row.cost),
                "queries": row.queries,
                "users": list(row.users),
            }
            for row in rows
        ],
        {
            "before": "Group / team / cost center now",
            "after": "Then",
            "cost": amount("Moves", currency),
            "queries": counted("Queries"),
            "users": st.column_config.ListColumn("Some of the users"),
        },
    )


def bill_grid(rows: Sequence[Bill]) -> None:
    """Imported bills, the newest first; an import in two currencies is two rows."""
    show(
        [
            {
                "imported": row.imported_at,
                "file": row.file_name,
                "from": row.period_start,
                "to": row.period_end,
                "lines": row.counting,
                "amount": money(row.amount),
                "currency": row.currency,
                "split": money(row.allocated),
                "kept": "; ".join(f"{cost:f} {why}" for why, cost in row.unallocated.items()),
                "refused": row.refused_lines,
                "why": "; ".join(row.refused),
            }
            for row in rows
        ],
        {
            "imported": time_of("Imported"),
            "file": "File",
            "from": time_of("From"),
            "to": time_of("To"),
            "lines": counted("Lines that count"),
            "amount": number("Amount", "%.2f"),
            "currency": "Currency",
            "split": number("Of it split", "%.2f", "Over the hours and queries of its engines."),
            "kept": wide("Unallocated, and why"),
            "refused": counted("Refused lines"),
            "why": wide("Why refused"),
        },
    )


def savings_grid(rows: Sequence[LedgerRow]) -> None:
    """Maintenance actions by what they saved."""
    show(
        [
            {
                "table": row.table_id,
                "kind": row.kind,
                "saved": money(row.saved_usd_month),
                "promised": money(row.predicted_usd_month),
                "cost": money(row.cost_usd),
                "templates": row.templates,
                "before": row.runs_before,
                "after": row.runs_after,
                "ended": row.ended_at,
            }
            for row in rows
        ],
        {
            "table": st.column_config.TextColumn("Table", pinned=True),
            "kind": "Action",
            "saved": number("Saves per month", "%.2f USD", "Measured on its readers."),
            "promised": number("Predicted", "%.2f USD"),
            "cost": number("Cost once", "%.4f USD"),
            "templates": counted("Templates"),
            "before": counted("Runs before"),
            "after": counted("Runs after"),
            "ended": time_of("Carried out"),
        },
    )


def alert_grid(rows: Sequence[Alert]) -> None:
    """Alerts, the newest first."""
    show(
        [
            {
                "raised": row.raised_at,
                "kind": row.kind,
                "title": row.title,
                "since": row.since,
                "who": "; ".join(
                    f"{one.name} {f.money(one.amount, row.currency)}" for one in row.who
                ),
                "told": "; ".join(f"{name}: {state}" for name, state in row.delivered.items())
                or "no channel is configured",
            }
            for row in rows
        ],
        {
            "raised": time_of("Raised"),
            "kind": "Kind",
            "title": wide("What"),
            "since": time_of("Since"),
            "who": wide("Who"),
            "told": "Told",
        },
    )

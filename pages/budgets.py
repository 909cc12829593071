"""Will it last? Budgets and their forecasts, unusual days, and the alerts that were raised."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.budgets import BudgetStatus, budget_statuses, list_alerts
from lakehouse_core.views.forecasts import unusual_spend
from pages.parts import cards, frame, menu, session, spend_grids
from pages.parts.text import plain

EXAMPLE = """finops:
  budgets:
    all_month: {amount: "500", period: month, alert_at: [0.5, 0.8, 1.0], notify: [chat]}
  channels:
    chat: {type: webhook, url: "env:FINOPS_WEBHOOK"}"""
HOW = """
An alert is raised once per budget, period and share, and as soon as the forecast passes the amount.
A day is unusual when it lies far above the median of the days before it, by median distances, not
by a mean that one wild day moves. Alerts go to the channels of the configuration (webhook, e-mail),
and are tried again when a channel does not answer.
"""


def one_budget(status: BudgetStatus) -> None:
    code = status.budget.currency
    with st.container(border=True):
        heading, state = st.columns([4, 1], vertical_alignment="center")
        heading.markdown(f"**{plain(status.name)}**: {plain(status.scope)}, "
                         f"{status.budget.period} from {status.start}")  # fmt: skip
        with state:
            frame.badge(status.state)
        st.progress(
            min(float(status.ratio), 1.0),
            text=f"{f.money(status.spent, code)} of {f.money(status.budget.amount, code)} "
            f"({f.percent(float(status.ratio))})",
        )
        found = status.ahead.forecast
        if found is not None:
            st.caption(
                f"Expected at the end: {f.money(found.expected, code)} "
                f"({f.money(found.low, code)} to {f.money(found.high, code)}); {found.method}, "
                f"{found.n} days."
            )
        else:
            st.caption(f"No forecast: {status.ahead.reason}.")
        if not status.report.rows:
            st.caption("Nothing was spent yet; `lakehelm cost reconcile` has what is metered.")
        rows = [
            f"{row.name} {f.money(row.cost, code)} ({f.money(row.change, code, signed=True)})"
            for row in status.report.rows[:3]
        ]
        if rows:
            st.caption(f"Most of it: {plain('; '.join(rows))}")


def budgets() -> None:
    st.subheader("Will the budgets last?", anchor=False)
    found = session.read(budget_statuses, session.config().finops.budgets, session.rules())
    if not found:
        frame.empty(
            "No budget is configured",
            "Add one to the configuration; it is seen within seconds. Check it with "
            "`lakehelm config validate`:",
        )
        st.code(EXAMPLE, "yaml")
        return
    for status in found:
        one_budget(status)
    frame.caption("Spend of the running period, all hours that are known.", "costs")


def unusual() -> None:
    st.subheader("Which days cost more than usual?", anchor=False)
    settings = session.config().finops.anomalies
    found = session.read(unusual_spend, session.rules(), settings, days=14)
    if not found:
        st.markdown(
            ":material/check_circle: None of the last 14 days stands out, of those with at least "
            f"{settings.least_days} days before them."
        )
    for one in found[:20]:
        seen = one.anomaly
        name = "All spend" if one.name is None else f"{one.dimension.capitalize()} {one.name}"
        who = "; ".join(
            f"{row.name} {f.money(row.change, one.currency, signed=True)}"
            for row in one.contributors
        )
        cost = f"cost {f.money(seen.amount, one.currency)} on {seen.day}"
        usual = f"usually {f.money(seen.usual, one.currency)} (median of {seen.n} days)"
        st.markdown(
            f":material/trending_up: **{plain(name)}** {cost}, {usual}; since {seen.since}. "
            f"Against the day before: {plain(who) or 'nobody stands out'}."
        )
    frame.caption("The last 14 days; today as far as it is.", "costs")


def raised() -> None:
    st.subheader("Which alerts were raised?", anchor=False)
    found = session.read(list_alerts)
    if found:
        spend_grids.alert_grid(found)
    else:
        st.markdown(":material/check_circle: None in the last 90 days.")
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption("The last 90 days.", "alerts")
        cards.how(HOW)


menu.enter()
frame.lead("Will it last, and what stands out?", "alerts")
first, second, third = st.columns(3)
statuses = session.read(budget_statuses, session.config().finops.budgets, session.rules())
first.metric("Budgets", f.count(len(statuses)), border=True)
second.metric("Used up", f.count(sum(one.state == "critical" for one in statuses)), border=True)
third.metric("Alerts, last 90 days", f.count(len(session.read(list_alerts))), border=True)
budgets()
unusual()
raised()

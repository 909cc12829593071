"""How do other tools get the same numbers? FOCUS, CSV, metrics, a Grafana dashboard."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views import formatting as f
from lakehouse_core.views.bills import list_bills
from lakehouse_core.views.costs import (
    DEFAULT_BY,
    MOST_ROWS,
    CostFilters,
    CostReport,
    cost_report,
)
from lakehouse_core.views.downloads import dashboard_text, report_csv
from lakehouse_core.views.exports import FORMATS, VERSIONS, focus_file
from pages.parts import cards, frame, menu, session, spend_grids
from pages.parts.cells import counted, show, wide

HOW = """
One row per hour, charge and cause: a query template and user, idle time, or what could not be
allocated. The rows of a charge name it (`x_OriginChargeId`) and add up to it (`x_OriginCost`).
Engines without an invoice have a BilledCost of 0 and a modelled EffectiveCost; `x_CostBasis` says
which is which. The checker reads the file that was written: columns, nulls, formats, quantity times
price, sums. `lakehelm export check FILE` runs it on any file.
"""


def _ask() -> None:
    state = st.session_state
    state["focus_asked"] = (state["focus_version"], state["focus_format"])


def focus() -> None:
    st.subheader("FOCUS: the cost and usage of the window", anchor=False)
    left, right, button = st.columns([1, 1, 2], vertical_alignment="bottom")
    left.selectbox("Version", VERSIONS, key="focus_version")
    right.selectbox("Format", FORMATS, key="focus_format")
    button.button(
        "Export and check",
        type="primary",
        icon=":material/fact_check:",
        key="focus_export",
        on_click=_ask,
    )
    asked = st.session_state.get("focus_asked")
    if asked is not None:
        st.session_state["focus_asked"] = None
        version, file_format = asked
        st.session_state["focus_made"] = focus_file(
            session.store(),
            session.config(),
            session.bar().window,
            utc_now,
            version=version,
            file_format=file_format,
        )
    made = st.session_state.get("focus_made")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("`lakehelm export focus --out focus.parquet --json` writes the same file.")
        cards.how(HOW)
    if made is None:
        return
    found, content = made
    verdict = found.verdict
    first, second, third, fourth = st.columns(4)
    first.metric("Rows", f.count(verdict.rows), border=True)
    second.metric("Broken rules", f.count(verdict.broken), border=True)
    sums = ", ".join(f.money(cost, code) for code, cost in found.metered.items())
    third.metric("Metered", sums or f.UNKNOWN, border=True)
    off = ", ".join(f"{cost:f} {code}" for code, cost in found.differences.items())
    fourth.metric("Difference to the file", off or "0", border=True)
    if found.unpriced:
        st.caption(f"{f.count(found.unpriced)} charges without a price are left out, not zero.")
    if verdict.violations:
        show(
            [
                {"rule": one.rule, "column": one.column, "row": one.row, "value": one.value,
                 "message": one.message}
                for one in verdict.violations
            ],
            {"rule": "Rule", "column": "Column", "row": counted("Row"), "value": "Value",
             "message": wide("What is wrong")},
        )  # fmt: skip
    st.download_button(
        f"Download ({f.size(len(content))})",
        content,
        file_name=f"focus-{found.version}{found.path.suffix}",
        icon=":material/download:",
    )


def figures(report: CostReport) -> None:
    first, second, third = st.columns(3)
    first.metric(
        f"Spend, {report.window.label}", f.money(report.total.cost, report.currency), border=True
    )
    second.metric("Metered hours", f.count(report.basis.hours), border=True)
    off = report.reconciliation.difference
    third.metric("Rows less metered", f"{-off:f} {report.currency}", border=True)
    frame.caption("What the exports of this window hold.", "costs")


def others(report: CostReport) -> None:
    st.subheader("Other ways out", anchor=False)
    with st.container(horizontal=True):
        st.download_button(
            "Costs by engine and workload, CSV",
            report_csv(report),
            file_name="costs.csv",
            mime="text/csv",
            icon=":material/table:",
        )
        st.download_button(
            "Grafana dashboard",
            dashboard_text(),
            file_name="lakehelm-costs.json",
            mime="application/json",
            icon=":material/monitoring:",
        )
    gateway = session.config().gateway
    st.markdown(
        "Prometheus scrapes `lakehouse_cost_total{engine,workload,kind,basis,currency}` from "
        f"`http://{gateway.host}:{gateway.admin_port}/metrics`. Every table of these pages can be "
        "downloaded as CSV from its own menu."
    )


def bills() -> None:
    st.subheader("Bills that were imported", anchor=False)
    found = list_bills(session.store())
    if not found:
        st.caption("None yet: `lakehelm cost import FILE` takes CSV or Parquet, FOCUS or plain.")
        return
    spend_grids.bill_grid(found)
    frame.caption(
        "Of all time. A line that a later import replaced does not count any more; what is "
        "unallocated is part of the spend, and nobody's. `lakehelm cost bills` shows the same.",
        "costs",
    )


menu.enter()
frame.lead("How do other tools get the same numbers?", "costs")
bar = session.bar()
filters = CostFilters(window=bar.window, engine=bar.engine)
report = session.read(cost_report, filters, session.rules(), by=DEFAULT_BY, limit=MOST_ROWS)
figures(report)
focus()
bills()
others(report)

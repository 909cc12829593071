"""Who spends what, and why did it move? Any two dimensions, against the window before."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.cost_detail import FOLLOWED, dearest_queries, storage_costs, unit_costs
from lakehouse_core.views.costs import (
    DIMENSIONS,
    SHOWN_SERIES,
    CostFilters,
    CostReport,
    cost_report,
    cost_series,
)
from lakehouse_core.views.downloads import report_csv
from lakehouse_core.views.forecasts import spend_forecast
from lakehouse_core.views.savings import savings_ledger
from lakehouse_core.views.spend_words import not_applied
from pages.parts import cards, cost_grids, frame, menu, session, spend_grids
from pages.parts.cost_charts import spend_over_time, waterfall
from pages.parts.text import plain

ROWS = 200
DRILL = ("engine", "workload", "team", "cost_center", "user", "table", "template")
NEXT = {"engine": "workload", "workload": "user", "team": "workload", "user": "template"}
PARTS = ("Dearest queries", "Unit costs", "Storage per table", "Savings of maintenance")


def _widen(name: str) -> None:
    st.query_params.pop(f"only_{name}", None)


def own_filters() -> tuple[CostFilters, tuple[str, ...]]:
    """What to look at, and by which dimensions; all of it in the address."""
    first, second, narrowed = st.columns([1, 1, 3], vertical_alignment="bottom")
    words = {name: name.replace("_", " ").capitalize() for name in DIMENSIONS}
    by = first.selectbox(
        "By", DIMENSIONS, format_func=lambda n: words[n], key="by", bind="query-params"
    )
    rest = [name for name in DIMENSIONS if name != by]
    then = second.selectbox(
        "and by",
        rest,
        index=rest.index("workload" if by != "workload" else "user"),
        format_func=lambda n: words[n],
        key="then",
        bind="query-params",
    )
    bar = session.bar()
    given = {name: st.query_params.get(f"only_{name}") for name in DRILL if name != "engine"}
    with narrowed.container(horizontal=True, vertical_alignment="bottom"):
        for name, value in given.items():
            if value:
                label = f"{words[name]}: {plain(value)}"
                st.button(label, icon=":material/close:", on_click=_widen, args=(name,))
    filters = CostFilters(window=bar.window, engine=bar.engine, **given)
    return filters, (by, then)


def figures(report: CostReport, filters: CostFilters) -> None:
    total, code = report.total, report.currency
    first, second, third, fourth = st.columns(4)
    first.metric(
        f"Spend, {report.window.label}",
        f.money(total.cost, code),
        delta=f.change(float(total.cost), float(total.before)),
        delta_color="inverse",
        delta_description=f"before: {f.money(total.before, code)}",
        border=True,
        height="stretch",
    )
    second.metric(
        "Idle share",
        f.percent(report.share_of("idle")),
        delta=f"unallocated {f.percent(report.share_of('unallocated'))}",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )
    third.metric(
        "Per 1,000 queries",
        f.money(total.per_thousand, code),
        delta=f"{f.count(total.queries)} queries",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )
    ahead = session.read(spend_forecast, filters, session.rules())
    found = ahead.forecast
    fourth.metric(
        "Forecast to month end",
        f.money(found.expected, code) if found else f.UNKNOWN,
        delta=f"{f.money(found.low, code)} to {f.money(found.high, code)}"
        if found
        else ahead.reason,
        delta_color="off",
        delta_arrow="off",
        help=f"{found.method}; {found.n} days" if found else None,
        border=True,
        height="stretch",
    )


def drill(report: CostReport, filters: CostFilters) -> None:
    """The rows; a chosen one narrows the page to it and opens the next dimension."""
    ids = [row.first or "" for row in report.rows]
    # A grid per step: in the same one the row at the place of the last choice is chosen already.
    key = f"costs_grid {report.by} {filters}"

    def narrow() -> None:
        state = st.session_state.get(key) or {}
        chosen = state.get("selection", {}).get("rows", [])
        by = report.by[0]
        if not chosen or by not in DRILL or chosen[0] >= len(ids):
            return
        if by != "engine":
            st.query_params[f"only_{by}"] = ids[chosen[0]]
        elif ids[chosen[0]] in session.config().engines:  # not the storage of a catalog
            st.session_state["engine"] = ids[chosen[0]]  # the filter bar keeps the address
        st.session_state["by"] = NEXT.get(by, "template")

    cost_grids.report_grid(report, key, narrow)


def body(filters: CostFilters, by: tuple[str, ...]) -> None:
    rules = session.rules()
    report = session.read(cost_report, filters, rules, by=by, limit=ROWS)
    if not report.basis.hours and not report.total.before:
        frame.empty(
            "Nothing was metered",
            f"No engine was charged anything in {report.window.phrase}. Costs appear once queries "
            "ran and their hour was metered, within a minute; a longer window may have some.",
            "lakehelm agents run finops",
        )
        return
    figures(report, filters)
    shown = tuple(row.first for row in report.firsts[:SHOWN_SERIES] if row.first)
    window, step, series = session.read(cost_series, filters, rules, by=by[0], shown=shown)
    left, right = st.columns([3, 2])
    with left:
        st.markdown(f"**What does each {by[0].replace('_', ' ')} cost over time?**")
        spend_over_time(series, window, step, shown, session.colours(), report.currency)
    with right:
        st.markdown(f"**What moved spend against {report.window.previous().label}?**")
        waterfall(report)
    words = f"{report.window.phrase.capitalize()}. {cost_grids.basis_words(report)}"
    frame.caption(words, "costs")
    with st.container(horizontal=True):
        cards.how(cost_grids.HOW_COSTS)
        cards.how_of("forecast", cost_grids.HOW_FORECAST)
    drill(report, filters)
    cost_grids.reconciliation(report)
    st.download_button(
        "These rows as CSV",
        report_csv(report),
        file_name=f"costs-{'-'.join(by)}.csv",
        mime="text/csv",
        icon=":material/download:",
    )
    more(filters)


def more(filters: CostFilters) -> None:
    part = st.segmented_control("More", PARTS, key="costs_part")
    if part == PARTS[0]:
        code, queries = session.read(dearest_queries, filters, session.rules())
        cost_grids.query_grid(queries, code)
        frame.caption("The fifty dearest of each engine and hour are known here.", "costs")
    elif part == PARTS[1]:
        code, units = session.read(unit_costs, filters)
        cost_grids.unit_grid(units, code)
        words = f"Idle time included. {not_applied(filters, FOLLOWED['units'])}"
        frame.caption(words.strip(), "costs")
    elif part == PARTS[2]:
        code, tables = session.read(storage_costs, filters)
        cost_grids.storage_grid(tables, code)
        words = "A catalog's storage, divided by the bytes of its tables' files. "
        words += not_applied(filters, FOLLOWED["storage"])
        frame.caption(words.strip(), "costs")
    elif part == PARTS[3]:
        savings()


def savings() -> None:
    found = savings_ledger(session.store())
    saved = f.money(found.saved_usd_month, "USD")
    st.markdown(f"**{saved}** per month saved by {f.count(found.actions)} measured actions.")
    spend_grids.savings_grid(found.rows)
    words = "Runs of one template before and after an action, at the prices of its engine; of all "
    frame.caption(words + "time. Filters and window do not apply here.", "upkeep")


menu.enter()
frame.lead("Who spends what, and why did it move?", "costs")
filters, by = own_filters()
body(filters, by)

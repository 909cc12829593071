"""Which templates matter? What runs again and again, on which engines, how long, how much."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.costs import MOST_ROWS, CostFilters, CostReport, cost_report
from lakehouse_core.views.names import table_ids
from lakehouse_core.views.template_detail import TemplateDetail, show_template
from lakehouse_core.views.unparsed import list_unparsed
from lakehouse_core.views.workloads import ORDERS, WorkloadFilters, WorkloadPage, list_workloads
from pages.parts import cards, choice, frame, menu, session
from pages.parts.query_grids import usage_grid
from pages.parts.text import plain
from pages.parts.workload_grids import coverage, engine_grid, reason_grid, workload_grid

ROWS = 100
ORDER_WORDS = {"runs": "Runs", "time": "Time", "bytes": "Bytes scanned", "errors": "Errors"}
UNKNOWN_TEXT = "(text not known)"


def own_filters() -> tuple[WorkloadFilters, str]:
    """What to look at, and by what it is ordered."""
    user, table, by = st.columns([1, 2, 1])
    bar = session.bar()
    order = by.selectbox(
        "Largest first by",
        list(ORDERS),
        format_func=lambda name: ORDER_WORDS[name],
        key="order",
        bind="query-params",
    )
    own = WorkloadFilters(
        window=bar.window,
        engine=bar.engine,
        user=user.text_input("User", key="user", bind="query-params", placeholder="Exact name"),
        table=table.selectbox(
            "Table",
            session.read_now(table_ids),
            index=None,
            key="touches",
            bind="query-params",
            placeholder="Any table",
        ),
    )
    return own, order


def figures(page: WorkloadPage) -> None:
    runs = sum(row.runs for row in page.rows)
    failed = sum(row.failed for row in page.rows)
    ended = failed + sum(row.finished for row in page.rows)
    shown = "all" if page.total <= ROWS else f"the {ROWS} shown"
    first, second, third, fourth = st.columns(4)
    first.metric(f"Templates, {page.window.label}", f.count(page.total), border=True)
    second.metric(f"Runs of {shown}", f.count(runs), border=True)
    third.metric(
        "Share of the first 10",
        f.percent(sum(row.runs for row in page.rows[:10]) / runs if runs else None),
        border=True,
    )
    fourth.metric(
        f"Error rate of {shown}", f.percent(failed / ended if ended else None), border=True
    )


def spent(filters: WorkloadFilters, by: str = "template") -> CostReport:
    """What the same window cost, by template or engine."""
    asked = CostFilters(
        window=filters.window,
        engine=filters.engine,
        user=filters.user,
        table=filters.table,
        template=filters.template,
    )
    return session.read(cost_report, asked, session.rules(), by=(by,), limit=MOST_ROWS)


def listing(filters: WorkloadFilters, order: str) -> str | None:
    page = session.read(list_workloads, filters, order=order, limit=ROWS)
    if not page.rows:
        frame.empty(
            "No template ran",
            f"Nothing was submitted in {page.window.phrase} that passes these filters. Choose a "
            "longer window, clear a filter, or run some queries:",
            "lakehelm demo workload --minutes 5",
        )
        return None
    figures(page)
    ids = [row.template_id or "" for row in page.rows]
    on_select = choice.remember("workloads_grid", "template", ids)
    workload_grid(page.rows, "workloads_grid", on_select, spent(filters))
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption(
            f"{f.count(len(ids))} of {f.count(page.total)} templates of {page.window.phrase}. "
            f"{coverage(page.coverage)} Choose a row for its detail.",
            "queries",
        )
        cards.how(cards.HOW_WORKLOADS)
    return choice.chosen("workloads_grid", "template", ids)


def detail(template_id: str, filters: WorkloadFilters) -> None:
    st.subheader(f"Template {plain(template_id)}", anchor=False)
    try:
        seen = session.read(show_template, template_id, filters)
    except NotFoundError as error:
        st.info(plain(str(error)), icon=":material/search_off:")
        return
    total = seen.total
    st.page_link(
        "pages/query_history.py",
        label=f"Its {f.count(total.runs)} queries",
        icon=":material/history:",
        query_params={"template": template_id, "window": filters.window},
    )
    texts(seen)
    st.markdown("**How does it run on each engine?**")
    engine_grid(seen.engines, seen.total, spent(replace(filters, template=template_id), "engine"))
    frame.caption(f"Runs of {seen.window.phrase}. {coverage(seen.coverage)}", "queries")
    least = "at least " if total.users_is_least else ""
    cards.facts(
        [
            ("Statement", total.statement_kind or f.UNKNOWN),
            ("Users", f"{least}{f.count(total.users)}: {', '.join(total.user_names[:8])}"),
            ("Time in all", f.duration(total.elapsed_ms)),
            ("CPU in all", f.duration(total.cpu_ms)),
        ]
    )
    st.markdown("**Tables and columns it uses**")
    if seen.columns:
        usage_grid(seen.columns)
    else:
        st.caption("None is known: the text was not understood, or it names no table.")


def texts(seen: TemplateDetail) -> None:
    left, right = st.columns(2)
    with left:
        st.markdown("**Template (without literals)**")
        st.code(seen.total.template or UNKNOWN_TEXT, "sql", wrap_lines=True)
        if seen.total.parse_error:
            st.warning(
                f"It does not parse: {plain(seen.total.parse_error)}", icon=":material/code_off:"
            )
    with right:
        st.markdown("**Its newest query**")
        sample = seen.sample
        st.code((sample and sample.sql_text) or UNKNOWN_TEXT, "sql", wrap_lines=True)
        if sample is not None:
            st.caption(
                f"{plain(sample.status)} on {plain(sample.engine_id)} for "
                f"{plain(sample.user_name or f.UNKNOWN)}, {f.moment(sample.submitted_at)}"
            )


def not_understood() -> None:
    st.subheader("What was not understood?", anchor=False)
    seen = session.read(list_unparsed, session.bar(), limit=50)
    if not seen.reasons:
        st.markdown(":material/check_circle: Every statement with a text was understood.")
    else:
        reason_grid(seen.reasons)
    frame.caption(
        f"{f.share(seen.unparsed, seen.inspected)} inspected queries of {seen.window.phrase}; they "
        "are counted as runs, their columns are not guessed.",
        "queries",
    )
    if seen.unresolved:
        names = ", ".join(plain(one.column_name) for one in seen.unresolved[:20])
        st.caption(f"Columns that no collected table explains, not counted as use: {names}.")


menu.enter()
frame.lead("Which templates matter?", "queries")
filters, order = own_filters()
chosen = listing(filters, order) or st.query_params.get("template")
if chosen:
    detail(chosen, filters)
if st.toggle("Show what was not understood", key="workloads_unparsed"):
    not_understood()

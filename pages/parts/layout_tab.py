"""The layout of one table: who filters on what, what was tried, before and after, the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import pyarrow as pa
import streamlit as st

from lakehouse_core.views import formatting as f
from lakehouse_core.views.layout import show_layout
from pages.parts import cards, frame, session
from pages.parts.cells import counted, show
from pages.parts.charts import NAMES, draw
from pages.parts.layout_proof import layout_proof
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.views.layout import LayoutView

_SHOWN = 12


def layout_tab(table_id: str, sort_order: str | None) -> None:
    """Everything about the order of a table's rows."""
    seen = session.read_now(show_layout, table_id)
    if seen.failure is not None:
        when = f.moment(seen.failed_at)
        st.warning(plain(f"The look of {when} came to nothing: {seen.failure}"))
    if seen.reason is None:
        frame.empty(
            "Nobody has looked at the order of its rows yet",
            "The layout agent looks at the tables that cost most to read; you can ask for it.",
            f"lakehelm layout advise {table_id}",
        )
    else:
        _verdict(seen, sort_order)
        _columns(seen)
        _candidates(seen)
        _readers(seen)
    layout_proof(seen)


def _verdict(seen: LayoutView, sort_order: str | None) -> None:
    st.markdown(f"**{plain(seen.layout or 'Leave it as it is')}** — {plain(seen.reason or '')}")
    figures, runs = seen.prediction, max(1, seen.runs or 0)
    facts = [("Present order", sort_order or "none")]
    if figures is not None:
        low, high = figures["bytes_low"] / runs, figures["bytes_high"] / runs
        facts += [
            ("Read per run, now", f.size(figures["bytes_now"] / runs)),
            (
                "Read per run, then",
                f"{f.size(figures['bytes_then'] / runs)} ({f.size(low)} to {f.size(high)})",
            ),
            (
                "Files per run",
                f"{figures['files_now'] / runs:.1f} → {figures['files_then'] / runs:.1f}",
            ),
            ("Size of files", f.size(seen.target_bytes)),
        ]
    if seen.saved_usd_month is not None:
        facts.append(("Saves a month, modelled", f"{float(seen.saved_usd_month):,.4f} USD"))
    cards.facts(facts)
    for said in seen.partitioning:
        st.caption(plain(f"Worth a thought, not done by itself: {said}"))
    st.caption(
        plain(
            f"Advised {f.moment(seen.advised_at)} from {f.count(seen.sample_rows)} rows "
            f"({f.percent(seen.sample_share)}) and {f.count(seen.runs)} runs.{_unread(seen)}"
        )
    )
    if seen.proposal_id is not None:
        st.page_link(
            "pages/recommendations.py",
            label=f"Its proposal ({seen.proposal_state})",
            query_params={"action": seen.proposal_id},
        )


def _unread(seen: LayoutView) -> str:
    if not seen.unread_runs:
        return ""
    return (
        f" {f.count(seen.unread_runs)} runs are not counted: nobody has or understands their text."
    )


def _columns(seen: LayoutView) -> None:
    st.markdown("**Who filters on what, and how sorted are the files by it?**")
    overlap = {one["column"]: one["overlap"] for one in seen.overlaps}
    show(
        [
            {
                "column": one["column"],
                "cost": one["cost_share"],
                "spared": one["spared_share"],
                "overlap": overlap.get(one["column"]),
                "distinct": one["distinct"],
            }
            for one in seen.columns
        ],
        {
            "column": st.column_config.TextColumn("Column", pinned=True),
            "cost": st.column_config.NumberColumn("Share of scan cost", format="percent"),
            "spared": st.column_config.NumberColumn("Rows ruled out", format="percent"),
            "overlap": st.column_config.NumberColumn("Overlap of files", format="%.2f"),
            "distinct": counted("Distinct in sample"),
        },
    )
    if seen.filters:
        with st.expander("Which engine filters on what?"):
            show(
                [
                    {
                        "column": one.column_name,
                        "engine": one.engine_id,
                        "role": one.role.removeprefix("filter_"),
                        "runs": one.runs,
                        "bytes": f.size(one.bytes_scanned),
                    }
                    for one in seen.filters
                ],
                {
                    "column": st.column_config.TextColumn("Column", pinned=True),
                    "engine": "Engine",
                    "role": "Filters by",
                    "runs": counted("Runs"),
                    "bytes": "Scanned by them",
                },
            )
    if seen.unusable:
        with st.expander(f"{len(seen.unusable)} conditions cannot spare a file"):
            show(
                [
                    {k: one[k] for k in ("column", "operator", "runs", "reason")}
                    for one in seen.unusable
                ],
                {
                    "column": "Column",
                    "operator": "Operator",
                    "runs": counted("Runs"),
                    "reason": "Why",
                },
            )


def _candidates(seen: LayoutView) -> None:
    if not seen.candidates:
        return
    st.markdown("**What was tried?**")
    tried = [
        {"layout": one["layout"], "share": one["read_share"], "why": one["why"]}
        for one in seen.candidates[:_SHOWN]
    ]
    tried.append({"layout": "as it is", "share": 1.0, "why": "the present layout"})
    tried.sort(key=lambda one: one["share"])
    rows = pa.Table.from_pylist([one | {"place": place} for place, one in enumerate(tried)])
    chart = (
        alt.Chart(rows)
        .mark_bar(color="#0f9488")
        .encode(
            x=alt.X(
                "share:Q", title="cost of reading, as a share of now", axis=alt.Axis(format="%")
            ),
            y=alt.Y("layout:N", sort=alt.SortField("place"), title=None, axis=NAMES),
            tooltip=["layout:N", alt.Tooltip("share:Q", format=".1%"), "why:N"],
        )
    )
    draw(chart, "Bars: cost of reading under each layout, as a share of now")
    files = f.count(seen.candidates[0]["files"])
    st.caption(f"Compared in {files} files each; the verdict is of those the best one would have.")


def _readers(seen: LayoutView) -> None:
    st.markdown("**Who reads how much, now and then?**")
    show(
        [_reader(one) for one in seen.rows[:50]],
        {
            "engine": st.column_config.TextColumn("Engine", pinned=True),
            "runs": counted("Runs"),
            "now": "Bytes now",
            "then": "Bytes then",
            "template": st.column_config.TextColumn("Template", width="large"),
        },
    )


def _reader(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "engine": one["engine_id"],
        "runs": one["runs"],
        "now": f.size(one["bytes_now"]),
        "then": f.size(one["bytes_then"]),
        "template": one["template"],
    }

"""Figures in cards: a number with its unit, window and basis, and how it is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lakehouse_core.views import formatting as f
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.views.freshness import Freshness
    from lakehouse_core.views.health import StateCounts
    from lakehouse_core.views.red import Red
    from lakehouse_core.views.window import Window

HOW_QUERIES = """
- **Queries**: submitted within the window, whatever became of them; compared with the span of the
  same length right before it.
- **Duration**: from submission to the last row, as the engine reported it, of finished queries;
  percentiles, not averages. Exact up to two days; longer windows are read from hourly sums, where a
  percentile is off by 2.2 % at most.
- **Error rate**: failed out of finished and failed. Cancelled queries are in neither.
- **Worst lag**: time since the last successful run of the slowest collector.

Source: the histories of the engines, collected into the telemetry store; times are UTC.
"""
HOW_WORKLOADS = """
- **Template**: a statement without its literals, names of aliases, comments and spacing; statements
  that differ only in these are runs of one template.
- **Runs**: queries submitted within the window, from its first whole hour on, whatever became of
  them.
- **p50, p95**: of finished runs, from counts in classes of 2 % width.
- **Errors**: failed out of finished and failed.

Hours the pipeline has processed come from its tables (`lake.ops`), later ones from the history
itself. `lakehelm workloads --json` has the same numbers.
"""
HOW_USAGE = """
Each template is read once: its columns are resolved to their tables through aliases, subqueries and
common table expressions, and get the role they play. A query counts once per column and role.

- **filter eq / in / range**: the column is compared with a value, a list, or a range.
- **join, group, order**: it joins, groups or sorts.
- **project**: it is only read out.

Statements that were not understood are not guessed; the workloads page lists them.
`lakehelm usage TABLE --json` has the same numbers.
"""
HOW_HEALTH = """
A table starts with 100 points and loses some for every signal past its limit: small files, number
of files, snapshots and their age, delete files, manifests, skew between partitions. The state is
the worst signal's. What cannot be read is unknown, never zero. `lakehelm health TABLE` shows the
same contributors.
"""


def how(text: str) -> None:
    """A popover that says how the figures beside it are computed."""
    with st.popover("How is this computed?", type="tertiary", icon=":material/function:"):
        st.markdown(text)


def how_of(figure: str, text: str) -> None:
    """The same for one figure of several."""
    with st.popover(f"How is the {figure} computed?", type="tertiary", icon=":material/function:"):
        st.markdown(text)


def red_cards(now: Red, before: Red | None, window: Window) -> Any:
    """Queries, durations and errors of a window; returns the room for a fourth card."""
    queries, durations, errors, fourth = st.columns(4)
    queries.metric(
        f"Queries, {window.label}",
        f.count(now.queries),
        delta=f.change(now.queries, before.queries) if before else None,
        delta_color="off",
        delta_description=window.previous().label if before and before.queries else None,
        border=True,
        height="stretch",
    )
    durations.metric(
        f"Duration p50 / p95, {window.label}",
        f.UNKNOWN if now.p50_ms is None else f"{f.duration(now.p50_ms)} / {f.duration(now.p95_ms)}",
        delta=f.change(now.p95_ms, before.p95_ms) if before else None,
        delta_color="inverse",
        delta_description=f"p95, of {f.count(now.finished)} finished",
        border=True,
        height="stretch",
    )
    errors.metric(
        f"Error rate, {window.label}",
        f.percent(now.error_ratio),
        delta=_points(now, before),
        delta_color="inverse",
        delta_description=f"{f.count(now.failed)} of {f.count(now.ended)}",
        border=True,
        height="stretch",
    )
    return fourth


def _points(now: Red, before: Red | None) -> str | None:
    if before is None or now.error_ratio is None or before.error_ratio is None:
        return None
    return f"{(now.error_ratio - before.error_ratio) * 100:+.1f} points"


def scan_card(now: Red, window: Window) -> None:
    """How much was read."""
    st.metric(
        f"Scanned, {window.label}",
        f.size(now.bytes_scanned),
        delta="where engines say so",
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )


def lag_card(state: Freshness) -> None:
    """The slowest collector."""
    worst = state.worst
    label = "Worst lag, now"
    if worst is None:
        st.metric(label, f.UNKNOWN, border=True, height="stretch")
        return
    value = f.span(worst.age) if worst.age is not None else "never ran"
    st.metric(
        label,
        value,
        delta=f"{worst.job.agent}, every {f.span(worst.job.every)}",
        delta_color="inverse" if worst.is_stale else "off",
        delta_arrow="off",
        border=True,
        height="stretch",
    )


def state_cards(counts: StateCounts) -> None:
    """How many tables are in each state."""
    cards = (
        ("Critical", counts.critical, ":material/error:"),
        ("Warning", counts.warning, ":material/warning:"),
        ("Healthy", counts.healthy, ":material/check_circle:"),
        ("Unknown", counts.unknown, ":material/help:"),
    )
    for column, (label, number, icon) in zip(st.columns(4), cards, strict=True):
        column.metric(
            f"{label} tables",
            f.count(number),
            delta=f.share(number, counts.total) if counts.total else None,
            delta_color="off",
            delta_arrow="off",
            icon=icon,
            border=True,
        )


def facts(pairs: list[tuple[str, str]], columns: int = 4) -> None:
    """Small facts beside each other: a label over a value."""
    for start in range(0, len(pairs), columns):
        row = pairs[start : start + columns]
        for column, (label, value) in zip(st.columns(columns), row, strict=False):
            with column.container(gap=None):
                st.caption(label)
                st.markdown(plain(value))

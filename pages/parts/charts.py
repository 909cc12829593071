"""The charts: one look for all, times in UTC, engines in their own colours, bars from zero."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.views.queries import Phase
    from lakehouse_core.views.window import Window

_HEIGHT = 260
_POWERS = [10.0**power for power in range(-4, 7)]  # no lines between them
# Each name is shown: Vega leaves out those for which it sees little room.
NAMES = alt.Axis(labelLimit=260, labelOverlap=False)
PADDING = {"left": 0, "top": 0, "right": 6, "bottom": 0}
_PHASE_COLOURS = {
    "queued": "#d97706",
    "planning": "#4f74c9",
    "execution": "#0f9488",
    "other": "#6b7f94",
}
CATEGORIES = ("#4f74c9", "#0f9488", "#c33fa8", "#8a7a2e", "#6b7f94")


def times(window: Window) -> alt.X:
    """The time axis of a window, in UTC."""
    return alt.X(
        "bucket_at:T",
        title="UTC",
        scale=alt.Scale(
            type="utc",
            domain=[window.start.isoformat(), window.end.isoformat()],
        ),
        axis=alt.Axis(labelOverlap=True, tickCount=8, grid=False, format=_clock(window)),
    )


def _clock(window: Window) -> str:
    if window.length <= timedelta(hours=36):
        return "%H:%M"
    return "%a %d, %H:%M" if window.length <= timedelta(days=4) else "%b %d"


def ends(rows: pa.Table, window: Window) -> pa.Table:
    """The rows with the end of each bucket, so that a bar covers its time."""
    step = pa.scalar(window.step, pa.duration("us"))
    return rows.append_column("bucket_end", pc.add(rows["bucket_at"], step))


def engine_scale(rows: pa.Table, colours: dict[str, str]) -> alt.Color:
    """Each engine in its own colour, whichever others are there."""
    present = sorted(set(rows["engine_id"].to_pylist()))
    domain = [*(e for e in colours if e in present), *(e for e in present if e not in colours)]
    return alt.Color(
        "engine_id:N",
        title="engine",
        scale=alt.Scale(domain=domain, range=[colours.get(e, CATEGORIES[-1]) for e in domain]),
        legend=alt.Legend(orient="top", title=None),
    )


def draw(chart: Any, alternative: str) -> None:
    """Show a chart as wide as there is room; the alternative is read out by screen readers."""
    st.altair_chart(
        chart.properties(height=_HEIGHT, padding=PADDING), width="stretch", alt=alternative
    )


def stacked(rows: pa.Table, window: Window, height: str, by: alt.Color, more: list[Any]) -> Any:
    """Bars over time, as wide as their bucket and stacked; `height` names the column."""
    return (
        alt.Chart(ends(rows, window))
        .transform_stack(
            stack=height,
            groupby=["bucket_at"],
            as_=["bottom", "top"],
            sort=[alt.SortField(by.shorthand.partition(":")[0])],
        )
        .mark_bar(binSpacing=1)
        .encode(
            x=times(window),
            x2="bucket_end:T",
            y=alt.Y(
                "bottom:Q",
                title=f"{height} per {window.step_label}",
                axis=alt.Axis(tickMinStep=1),
            ),
            y2="top:Q",
            color=by,
            tooltip=[
                alt.Tooltip("utcyearmonthdatehoursminutes(bucket_at):T", title="from (UTC)"),
                *more,
            ],
        )
    )


def queries_over_time(rows: pa.Table, window: Window, colours: dict[str, str]) -> None:
    """How many queries each engine took, stacked."""
    tooltip = [
        alt.Tooltip("engine_id:N", title="engine"),
        alt.Tooltip("queries:Q", title="queries"),
        alt.Tooltip("failed:Q", title="of these failed"),
    ]
    chart = stacked(rows, window, "queries", engine_scale(rows, colours), tooltip)
    draw(chart, "Stacked bars: queries over time, by engine")


def durations_over_time(rows: pa.Table, window: Window, colours: dict[str, str]) -> None:
    """The 95th percentile of each engine's durations, on a logarithmic axis."""
    seconds = pc.divide(rows["p95_ms"], 1000.0)
    known = rows.append_column("p95_seconds", seconds).filter(pc.is_valid(rows["p95_ms"]))
    chart = (
        alt.Chart(known)
        .mark_line(point=alt.OverlayMarkDef(size=22), strokeWidth=1.6)
        .encode(
            x=times(window),
            y=alt.Y(
                "p95_seconds:Q",
                title="p95 duration, s (log)",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(values=_POWERS, format="~g"),
            ),
            color=engine_scale(known, colours),
            tooltip=[
                alt.Tooltip("utcyearmonthdatehoursminutes(bucket_at):T", title="from (UTC)"),
                alt.Tooltip("engine_id:N", title="engine"),
                alt.Tooltip("p95_seconds:Q", title="p95, s", format=".3~g"),
                alt.Tooltip("queries:Q", title="queries"),
            ],
        )
    )
    draw(chart, "Lines: p95 duration in seconds per engine over time")


def phases(parts: Sequence[Phase]) -> None:
    """Where a query's time went, as one bar."""
    names = [part.name for part in parts]
    total = sum(part.ms for part in parts)
    unit, scale = ("ms", 1) if total < 1_000 else ("s", 1_000)
    rows = pa.table(
        {
            "phase": names,
            "time": [part.ms / scale for part in parts],
            "order": list(range(len(parts))),
        }
    )
    chart = (
        alt.Chart(rows)
        .mark_bar(height=24)
        .encode(
            x=alt.X(
                "time:Q",
                title=unit,
                scale=alt.Scale(domain=[0, total / scale], nice=False),
                axis=alt.Axis(tickCount=8, grid=False),
            ),
            color=alt.Color(
                "phase:N",
                scale=alt.Scale(domain=names, range=[_PHASE_COLOURS[name] for name in names]),
                legend=alt.Legend(orient="top", title=None),
            ),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("phase:N", title="phase"),
                alt.Tooltip("time:Q", title=unit, format=".3~g"),
            ],
        )
        .properties(height=130, padding=PADDING)
    )
    st.altair_chart(chart, width="stretch", alt="Bar: time queued, planning, executing")

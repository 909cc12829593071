"""Charts of money: spend over time, what moved it, and how it is shown in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.views.costs import REST
from lakehouse_core.views.theme import OTHER_COLOURS, PALETTE
from pages.parts.charts import draw, times

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from lakehouse_core.views.costs import CostReport, CostRow
    from lakehouse_core.views.window import Window

_OWN = {"idle": "#7d8794", "unallocated": "#dc4a4a", "storage": "#0f9488", REST: "#a8b0bb"}
_MORE, _LESS, _WHOLE = "#dc4a4a", "#1f9d68", "#4f74c9"
_SLANTED = alt.Axis(labelAngle=-30, labelOverlap=False)
MOST_BARS = 8


def colour_scale(names: Sequence[str], engines: dict[str, str]) -> alt.Scale:
    """Engines in their colours, idle and the rest in theirs, others in turn."""
    others = iter([*OTHER_COLOURS, *PALETTE] * (len(names) // 3 + 1))
    known = {**engines, **_OWN}
    return alt.Scale(domain=list(names), range=[known.get(n) or next(others) for n in names])


def spend_over_time(
    rows: pa.Table,
    window: Window,
    step: timedelta,
    names: Sequence[str],
    engines: dict[str, str],
    currency: str,
) -> None:
    """Spend per step of time, stacked by name; floats are for the eye only."""
    shown = rows.set_column(2, "cost", pc.cast(rows["cost"], pa.float64()))
    ends = pc.add(shown["bucket_at"], pa.scalar(step, pa.duration("us")))
    present = [name for name in names if name in set(rows["name"].to_pylist())]
    if REST in rows["name"].to_pylist():
        present.append(REST)
    hours = step.total_seconds() / 3600
    word = "day" if hours == 24 else "hour" if hours == 1 else f"{hours:g} hours"
    chart = (
        alt.Chart(shown.append_column("bucket_end", ends))
        .transform_stack(
            stack="cost",
            groupby=["bucket_at"],
            as_=["bottom", "top"],
            sort=[alt.SortField("name")],
        )
        .mark_bar(binSpacing=1)
        .encode(
            x=times(window),
            x2="bucket_end:T",
            y=alt.Y("bottom:Q", title=f"{currency} per {word}"),
            y2="top:Q",
            color=alt.Color(
                "name:N",
                scale=colour_scale(present, engines),
                legend=alt.Legend(orient="top", title=None),
            ),
            tooltip=[
                alt.Tooltip("utcyearmonthdatehoursminutes(bucket_at):T", title="from (UTC)"),
                alt.Tooltip("name:N"),
                alt.Tooltip("cost:Q", title=currency, format=",.4f"),
            ],
        )
    )
    draw(chart, f"Stacked bars: spend in {currency} over time")


def waterfall(report: CostReport) -> None:
    """From the window before to this one: what moved the total, the largest first."""
    bars = waterfall_rows(report.firsts, report.total)
    chart = (
        alt.Chart(pa.Table.from_pylist(bars))
        .mark_bar()
        .encode(
            x=alt.X(
                "name:N",
                sort=[bar["name"] for bar in bars],  # else the colours' order
                title=None,
                axis=alt.Axis(labelAngle=-30, labelOverlap=False),
            ),
            y=alt.Y("low:Q", title=report.currency),
            y2="high:Q",
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=["total", "more", "less"], range=[_WHOLE, _MORE, _LESS]),
                legend=alt.Legend(orient="top", title=None),
            ),
            tooltip=[
                alt.Tooltip("name:N"),
                alt.Tooltip("change:Q", title=report.currency, format="+,.4f"),
            ],
        )
    )
    draw(chart, f"Waterfall: what moved spend in {report.currency}")


def waterfall_rows(firsts: Sequence[CostRow], total: CostRow) -> list[dict[str, Any]]:
    """The bars: before, each mover, all other movers, now."""
    movers = sorted(firsts, key=lambda row: abs(row.change), reverse=True)
    shown = [row for row in movers[:MOST_BARS] if row.change]
    at = total.before
    bars = [_bar("before", "total", at * 0, at)]
    for row in shown:
        bars.append(_bar(str(row.first), "more" if row.change > 0 else "less", at, at + row.change))
        at += row.change
    if at != total.cost:
        kind = "more" if total.cost > at else "less"
        bars.append(_bar(REST, kind, at, total.cost))
    bars.append(_bar("now", "total", total.cost * 0, total.cost))
    return bars


def _bar(name: str, kind: str, start: Any, end: Any) -> dict[str, Any]:
    low, high = sorted((float(start), float(end)))
    return {"name": name, "kind": kind, "low": low, "high": high, "change": float(end - start)}

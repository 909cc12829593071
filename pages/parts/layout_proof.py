"""What a rewrite of a table's rows brought, beside what was predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import pyarrow as pa
import streamlit as st

from lakehouse_core.views import formatting as f
from pages.parts.cells import counted, show
from pages.parts.charts import draw
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.views.layout import LayoutView


def layout_proof(seen: LayoutView) -> None:
    if not seen.proof:
        return
    st.markdown(f"**What did it bring?** {plain(seen.proof_title or '')}")
    total = max(1, sum(one.runs for one in seen.proof))
    rows = []
    for name, field in (
        ("before", "bytes_before"),
        ("predicted", "bytes_predicted"),
        ("after", "bytes_after"),
    ):
        values = [getattr(one, field) for one in seen.proof]
        if all(value is not None for value in values):
            weighted = sum(v * one.runs for v, one in zip(values, seen.proof, strict=True)) / total
            rows.append({"when": name, "bytes": weighted})
    chart = (
        alt.Chart(pa.Table.from_pylist(rows))
        .mark_bar(color="#0f9488")
        .encode(
            x=alt.X(
                "when:N",
                sort=["before", "predicted", "after"],
                title=None,
                axis=alt.Axis(labelAngle=0),
            ),
            y=alt.Y("bytes:Q", title="bytes planned per run"),
            tooltip=["when:N", alt.Tooltip("bytes:Q", format=",.0f")],
        )
    )
    draw(chart, "Bars: bytes planned per run before, as predicted, after")
    show(
        [
            {
                "engine": one.engine_id,
                "runs": one.runs,
                "before": f.size(one.bytes_before),
                "predicted": f.size(one.bytes_predicted),
                "after": f.size(one.bytes_after),
                "seen_before": f.size(one.seen_before),
                "seen": f.size(one.seen_after),
                "template": one.template or one.template_id,
            }
            for one in seen.proof[:50]
        ],
        {
            "engine": st.column_config.TextColumn("Engine", pinned=True),
            "runs": counted("Runs"),
            "before": "Planned before",
            "predicted": "Predicted",
            "after": "Planned after",
            "seen_before": "Scanned per run before",
            "seen": "Scanned per run since",
            "template": st.column_config.TextColumn("Template", width="large"),
        },
    )
    st.caption("Planned against the manifests of the snapshot before and after: exact.")

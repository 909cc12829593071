"""What can take work now? The registry: what we want of each engine beside what we see of it."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views import formatting as f
from lakehouse_core.views.engines import EngineView, list_engines
from pages.parts import cards, engine_switch, frame, menu, session
from pages.parts.text import coloured, plain


def registry() -> None:
    engine_switch.leave_fragment()
    every = session.config().agents.probe_every
    seen = session.read(list_engines, session.bar(), probe_every=every)
    frame.lead("What can take work now?", "engines", "queries")
    if not seen.engines:
        frame.empty(
            "No engine is registered yet",
            "The agents process registers the engines of the configuration and probes them. "
            "Either it has not started, or the filter above names an engine that is not there.",
            "lakehelm up",
        )
        return
    total = len(seen.engines)
    queued = sum(view.engine.queued_queries or 0 for view in seen.engines)
    for column, (label, number, icon) in zip(
        st.columns(4),
        (
            ("Healthy", seen.count("healthy"), "check_circle"),
            ("Unhealthy or starting", seen.count("unhealthy") + seen.count("pending"), "error"),
            ("Not known", seen.count("unknown"), "help"),
            ("Queued queries", queued, "schedule"),
        ),
        strict=True,
    ):
        is_share = label != "Queued queries"
        column.metric(
            f"{label}, now",
            f.count(number),
            delta=f"of {total} engines" if is_share else "over all engines",
            delta_color="off",
            delta_arrow="off",
            icon=f":material/{icon}:",
            border=True,
        )
    cards.how(cards.HOW_QUERIES)
    for view in seen.engines:
        card(view, seen.window.label)
    frame.caption(f"Service measured over {seen.window.phrase}.", "engines", "queries")


def card(view: EngineView, window: str) -> None:
    engine, served, now = view.engine, view.served, utc_now()
    colour = session.colours().get(engine.engine_id, "#6b7f94")
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"#### {coloured('■', colour)} {plain(engine.engine_id)}", width="content")
            st.caption(
                f"{plain(engine.engine_type)} {plain(engine.version or '')}", width="content"
            )
            st.caption("seen as", width="content")
            frame.badge(view.state)
            st.caption("wanted", width="content")
            frame.badge(engine.configured)
            st.space("stretch")
            if engine.url:
                st.link_button("Open engine UI", engine.url, icon=":material/open_in_new:")
            engine_switch.button(engine)
        engine_switch.tell(engine.engine_id)
        if engine.detail and view.state != "healthy":
            st.text(engine.detail)
        rate = f.count(served.queries_per_hour)
        durations = f"{f.duration(served.p50_ms)} / {f.duration(served.p95_ms)}"
        setter = engine.changed_by or f.UNKNOWN
        cards.facts(
            [
                ("Running / queued now", _pair(engine.running_queries, engine.queued_queries)),
                (f"Queries, {window}", f"{f.count(served.queries)}, {rate} per hour"),
                (f"Success rate, {window}", f.share(served.finished, served.ended)),
                (f"Duration p50 / p95, {window}", durations),
                ("Last probe", f.both(engine.probed_at, now)),
                ("Probe answered in", f.duration(engine.latency_ms)),
                ("State set by", f"{setter}, {f.ago(engine.changed_at, now)}"),
                ("Why", engine.reason or "no reason given"),
            ]
        )


def _pair(left: int | None, right: int | None) -> str:
    return f"{f.count(left)} / {f.count(right)}"


menu.enter()
engine_switch.dialog()
frame.live(registry)

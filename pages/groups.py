"""Whose spend is it? The workload rules in order, what each catches, and what others would move."""

from __future__ import annotations

import streamlit as st

from lakehouse_core.config.finops import groups_text
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.views import formatting as f
from lakehouse_core.views.costs import CostFilters
from lakehouse_core.views.groups import group_change, rule_hits, rules_of
from pages.parts import cards, frame, menu, session, spend_grids
from pages.parts.text import plain

EXAMPLE = """workload_groups:
  - name: etl
    when: {user: ["etl_*"], statement: [insert, merge, update, delete]}
    team: Platform
    cost_center: "4711"
  - name: dashboards
    when: {source: ["*bi*", "superset*"]}
    team: Analytics
"""
HOW = """
Rules are read from the top; the first that matches takes the query. Within a rule every key must
match, and any of its globs does (`*` any text, `?` one character, upper and lower case alike). What
no rule matches is in the default group, so that nothing is lost.

Rules are applied when costs are read: a changed rule regroups all history at once. The preview runs
the same statements with the rules you type; nothing is changed by it. `lakehelm cost groups
--preview FILE` shows the same.
"""


def present() -> None:
    bar = session.bar()
    code, hits = session.read(rule_hits, CostFilters(window=bar.window), session.rules())
    total = sum((hit.cost for hit in hits), hits[0].cost * 0)
    left = hits[-1]
    first, second, third = st.columns(3)
    first.metric("Rules", f.count(len(hits) - 1), border=True)
    second.metric("Spend of queries", f.money(total, code), border=True)
    third.metric(
        f"In the default group ({plain(left.workload)})",
        f.percent(float(left.cost / total) if total else None),
        border=True,
    )
    spend_grids.rule_grid(hits, code)
    with st.container(horizontal=True, vertical_alignment="center"):
        frame.caption("Rules in order; the last row is the default group.", "costs")
        cards.how(HOW)


def _ask() -> None:
    st.session_state["groups_asked"] = st.session_state["groups_text"]


def preview() -> None:
    st.subheader("What would other rules move?", anchor=False)
    settings = session.config()
    st.text_area(
        "Rules as YAML",
        groups_text(settings.workload_groups) if settings.workload_groups else EXAMPLE,
        height=280,
        key="groups_text",
    )
    st.button(
        "Preview", type="primary", icon=":material/preview:", key="groups_preview", on_click=_ask
    )
    asked = st.session_state.get("groups_asked")
    if asked is None:
        st.caption(
            "Nothing is changed by a preview. To keep rules, put them into the configuration file "
            "and run `lakehelm config validate`."
        )
        return
    try:
        rules = rules_of(settings, asked)
    except ConfigError as error:
        st.warning(plain(str(error)), icon=":material/rule:")
        return
    bar = session.bar()
    found = session.read(group_change, CostFilters(window=bar.window), session.rules(), rules)
    moves = [move for move in found.moves if move.is_moved]
    st.markdown(
        f"**{f.money(found.moved, found.currency)}** of {f.money(found.total, found.currency)} "
        f"of {found.window.phrase} would be in another group, team or cost center."
    )
    if moves:
        spend_grids.move_grid(moves, found.currency)
    else:
        st.markdown(":material/check_circle: Nothing would move.")


menu.enter()
frame.lead("Whose spend is it?", "costs")
present()
preview()

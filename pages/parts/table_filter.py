"""Which tables of the fleet are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.table import TableName, join_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.views.tables import TableView

_STATES = [state.value for state in HealthState]


def narrowed(seen: Sequence[TableView]) -> list[TableView]:
    """Those of the chosen states and namespaces whose name holds the text."""
    states = sorted({view.health.state for view in seen}, key=_STATES.index)
    spaces = sorted({_namespace(view) for view in seen})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Name holds", key="tables_text", width=240).strip().lower()
        kept_states = st.pills("State", states, selection_mode="multi", key="tables_states")
        kept_spaces = st.pills("Namespace", spaces, selection_mode="multi", key="tables_spaces")
    return [
        view
        for view in seen
        if text in view.structure.table_id.lower()
        and (not kept_states or view.health.state in kept_states)
        and (not kept_spaces or _namespace(view) in kept_spaces)
    ]


def _namespace(view: TableView) -> str:
    name = TableName.parse(view.structure.table_id)
    return join_name((name.catalog, *name.namespace))

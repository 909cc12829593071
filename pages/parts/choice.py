"""The row a visitor chose: kept in the page's address, so that a detail can be linked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def remember(grid: str, name: str, ids: Sequence[str]) -> Callable[[], None]:
    """What to do when a row is chosen or let go: the id, not the row number, is kept.

    Rows move when newer ones arrive; the id does not.
    """

    def on_select() -> None:
        chosen = selected(grid, ids)
        if chosen is None:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = chosen

    return on_select


def chosen(grid: str, name: str, ids: Sequence[str]) -> str | None:
    """The id in the address, else the one of the selected row."""
    return st.query_params.get(name) or selected(grid, ids)


def selected(grid: str, ids: Sequence[str]) -> str | None:
    """The id of the row that is selected in a grid."""
    state = st.session_state.get(grid) or {}
    rows = state.get("selection", {}).get("rows", [])
    return ids[rows[0]] if rows and rows[0] < len(ids) else None

"""How values stand in the cells of our tables: units, states as words, one look for all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import streamlit as st

from lakehouse_core.views.theme import look

if TYPE_CHECKING:
    from collections.abc import Callable

_MIB = 2**20
_TIME = "YYYY-MM-DD HH:mm:ss"
_SHORT_TIME = "MMM D, HH:mm:ss"


def number(label: str, unit: str, note: str | None = None) -> Any:
    """A column of numbers with their unit."""
    return st.column_config.NumberColumn(label, format=unit, help=note)


def counted(label: str, note: str | None = None) -> Any:
    """A column of counts."""
    return st.column_config.NumberColumn(label, format="localized", help=note)


def time_of(label: str) -> Any:
    """A column of times, in UTC."""
    return st.column_config.DatetimeColumn(f"{label} (UTC)", format=_TIME, timezone="UTC")


def short_time_of(label: str) -> Any:
    """A column of times of the last days, in UTC."""
    return st.column_config.DatetimeColumn(f"{label} (UTC)", format=_SHORT_TIME, timezone="UTC")


def wide(label: str, width: Literal["medium", "large"] = "large") -> Any:
    """A column of long texts."""
    return st.column_config.TextColumn(label, width=width)


def seconds(milliseconds: float | None) -> float | None:
    """Milliseconds as seconds; unknown stays unknown."""
    return None if milliseconds is None else milliseconds / 1000


def mebibytes(value: float | None) -> float | None:
    """Bytes as MiB; unknown stays unknown."""
    return None if value is None else value / _MIB


def percent(ratio: float | None) -> float | None:
    """A ratio as percent; unknown stays unknown."""
    return None if ratio is None else ratio * 100


def one_line(text: str | None) -> str | None:
    """A text without its line breaks."""
    return " ".join((text or "").split()) or None


def state_word(state: str) -> str:
    """A state as a sign and a word: readable without colour."""
    return f"{look(state).sign} {state}"


def show(
    rows: list[dict[str, Any]],
    columns: dict[str, Any],
    *,
    key: str | None = None,
    on_select: Callable[[], None] | None = None,
) -> Any:
    """Draw a table; with `on_select` a row can be chosen."""
    more: dict[str, Any] = {"key": key} if key else {}
    if on_select is not None:
        more |= {"on_select": on_select, "selection_mode": "single-row"}
    table = pa.Table.from_pylist(rows)
    return st.dataframe(
        table, hide_index=True, column_config=columns, width="stretch", placeholder="-", **more
    )

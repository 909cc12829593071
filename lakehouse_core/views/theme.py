"""Colours as data: one stable colour per engine on every page, in both themes.

All reach a contrast of 3:1 on the light and on the dark background, as WCAG asks of graphics.
A state is never told by its colour alone: it has an icon and a word too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

LIGHT_BACKGROUND = "#ffffff"
DARK_BACKGROUND = "#14181f"

# Known engine types keep their colour whatever else is configured.
ENGINE_COLOURS: dict[str, str] = {
    "duckdb": "#b58105",
    "spark": "#e2582c",
    "trino": "#c33fa8",
    "athena": "#7c63d8",
    "snowflake": "#1c8fcb",
    "flink": "#0f9488",
}
OTHER_COLOURS: tuple[str, ...] = ("#5f7f1f", "#a8644a", "#4f74c9", "#8a7a2e", "#6b7f94")
PALETTE: tuple[str, ...] = (*ENGINE_COLOURS.values(), *OTHER_COLOURS)


@dataclass(frozen=True, slots=True)
class StateLook:
    """How a state looks: a word beside an icon, in a colour that only repeats what they say."""

    icon: str  # name of a Material symbol
    sign: str  # the same as a character, for the cells of tables
    badge: Literal["green", "orange", "red", "gray", "blue"]  # a colour of the theme
    colour: str


STATES: dict[str, StateLook] = {
    "healthy": StateLook("check_circle", "✓", "green", "#1f9d68"),
    "warning": StateLook("warning", "▲", "orange", "#d97706"),
    "critical": StateLook("error", "✗", "red", "#dc4a4a"),
    "unknown": StateLook("help", "?", "gray", "#7d8794"),
    "unhealthy": StateLook("error", "✗", "red", "#dc4a4a"),
    "pending": StateLook("hourglass_top", "…", "blue", "#3b82c4"),
    "active": StateLook("toggle_on", "✓", "green", "#1f9d68"),
    "inactive": StateLook("toggle_off", "○", "gray", "#7d8794"),
    "maintenance": StateLook("build", "⚒", "orange", "#d97706"),
    "finished": StateLook("check_circle", "✓", "green", "#1f9d68"),
    "failed": StateLook("error", "✗", "red", "#dc4a4a"),
    "cancelled": StateLook("cancel", "⊘", "gray", "#7d8794"),
    "running": StateLook("play_circle", "▶", "blue", "#3b82c4"),
    "queued": StateLook("schedule", "◷", "blue", "#3b82c4"),
    "proposed": StateLook("lightbulb", "◇", "blue", "#3b82c4"),
    "snoozed": StateLook("bedtime", "☾", "gray", "#7d8794"),
    "approved": StateLook("thumb_up", "✓", "green", "#1f9d68"),
    "scheduled": StateLook("schedule", "◷", "blue", "#3b82c4"),
    "verifying": StateLook("fact_check", "▶", "blue", "#3b82c4"),
    "verified": StateLook("verified", "✓", "green", "#1f9d68"),
    "rejected": StateLook("thumb_down", "⊘", "gray", "#7d8794"),
    "expired": StateLook("hourglass_disabled", "○", "gray", "#7d8794"),
    "refused": StateLook("block", "⊘", "orange", "#d97706"),
    "trial": StateLook("science", "◷", "blue", "#3b82c4"),
    "adopted": StateLook("task_alt", "✓", "green", "#1f9d68"),
    "retreated": StateLook("undo", "↶", "orange", "#d97706"),
    "ok": StateLook("check_circle", "✓", "green", "#1f9d68"),
    "partial": StateLook("warning", "▲", "orange", "#d97706"),
    "late": StateLook("schedule", "◷", "orange", "#d97706"),
    "closed": StateLook("link", "✓", "green", "#1f9d68"),
    "half-open": StateLook("network_check", "◷", "orange", "#d97706"),
    "open": StateLook("link_off", "✗", "red", "#dc4a4a"),
    "never ran": StateLook("help", "?", "gray", "#7d8794"),
    "not scheduled": StateLook("toggle_off", "○", "gray", "#7d8794"),
}


def engine_colours(engines: Mapping[str, str]) -> dict[str, str]:
    """Colours of the engines (id to type): the first of a type has the type's, no two the same.

    An engine whose type is new to us, or the second of a type, takes the next free colour.
    """
    chosen: dict[str, str] = {}
    ordered = sorted(engines, key=lambda engine_id: (engine_id != engines[engine_id], engine_id))
    for engine_id in ordered:
        own = ENGINE_COLOURS.get(engines[engine_id])
        if own is not None and own not in chosen.values():
            chosen[engine_id] = own
    for engine_id in ordered:
        free = (c for c in (*OTHER_COLOURS, *PALETTE) if c not in chosen.values())
        chosen.setdefault(engine_id, next(free, OTHER_COLOURS[-1]))
    return chosen


def look(state: str) -> StateLook:
    """How a state looks; a word we do not know looks unknown."""
    return STATES.get(state, STATES["unknown"])

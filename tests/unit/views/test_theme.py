from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.engine import ConfiguredState, ObservedState
from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.maintenance import State
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.domain.trial import TrialState
from lakehouse_core.views.theme import (
    DARK_BACKGROUND,
    LIGHT_BACKGROUND,
    PALETTE,
    STATES,
    engine_colours,
    look,
)

if TYPE_CHECKING:
    from pathlib import Path


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("background", [LIGHT_BACKGROUND, DARK_BACKGROUND])
@pytest.mark.parametrize("colour", sorted({*PALETTE, *(s.colour for s in STATES.values())}))
def test_every_colour_is_visible_in_both_themes(colour: str, background: str) -> None:
    assert contrast(colour, background) >= 3


def test_streamlit_has_our_backgrounds_and_palette(repository: Path) -> None:
    theme = tomllib.loads((repository / ".streamlit" / "config.toml").read_text())["theme"]
    assert theme["light"]["backgroundColor"] == LIGHT_BACKGROUND
    assert theme["dark"]["backgroundColor"] == DARK_BACKGROUND
    assert tuple(theme["chartCategoricalColors"]) == PALETTE


def test_an_engine_keeps_its_colour_whatever_else_is_configured() -> None:
    alone = engine_colours({"trino": "trino"})
    among = engine_colours({"athena": "athena", "trino": "trino", "duckdb": "duckdb"})
    assert alone["trino"] == among["trino"]


def test_no_two_engines_share_a_colour() -> None:
    engines = {"trino": "trino", "trino_etl": "trino", "trino_bi": "trino", "new": "presto"}
    colours = engine_colours(engines)
    assert len(set(colours.values())) == len(engines)


def test_every_state_of_the_domain_has_a_look_of_its_own() -> None:
    observed = (*HealthState, *QueryStatus, *ObservedState)
    for state in (*observed, *ConfiguredState, *State, *TrialState):
        assert state in STATES
    assert look("nonsense") == STATES["unknown"]
    assert all(style.icon and style.sign for style in STATES.values())

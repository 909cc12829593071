"""Limits of a table: defaults and the best-fitting override."""

from __future__ import annotations

import pytest

from lakehouse_core.config.models import HealthConfig, HealthThresholds, Threshold
from lakehouse_core.domain.table import MIB
from lakehouse_core.health import thresholds_for


def with_small(small: int) -> HealthThresholds:
    return HealthThresholds(small_file_bytes=small)


CONFIG = HealthConfig(
    tables={
        "*": with_small(1),
        "lake.demo.*": with_small(2),
        "lake.demo.ev*": with_small(3),
        "lake.demo.events": with_small(4),
        "lake.*.events": with_small(5),
        "lake.demo.e?ents2": with_small(6),
        "lake.demo.e*ents2": with_small(7),
    }
)


@pytest.mark.parametrize(
    ("table_id", "chosen"),
    [
        ("lake.other.t", 1),
        ("lake.demo.orders", 2),
        ("lake.demo.eve", 3),
        ("lake.demo.events", 4),
        ("lake.tpch.events", 5),
        ("lake.a.b.events", 5),
        ("lake.demo.events2", 7),
    ],
)
def test_the_most_specific_pattern_wins(table_id: str, chosen: int) -> None:
    assert thresholds_for(CONFIG, table_id).small_file_bytes == chosen


def test_an_override_changes_only_what_it_names() -> None:
    config = HealthConfig(
        defaults=HealthThresholds(skew=Threshold(warning=4, critical=8)),
        tables={"lake.demo.*": HealthThresholds(min_files=3)},
    )
    found = thresholds_for(config, "lake.demo.t")
    assert (found.min_files, found.skew.warning) == (3, 4)
    assert found.small_file_bytes == 32 * MIB


def test_without_a_fitting_pattern_the_defaults_apply() -> None:
    config = HealthConfig(tables={"lake.demo.*": with_small(3)})
    assert thresholds_for(config, "lake.tpch.t") is config.defaults

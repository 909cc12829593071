from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.registry import build_source, collect_settings, source_names
from lakehouse_core.config.models import CollectConfig
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.views.freshness import jobs

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore
    from tests.conftest import DemoConfig


def test_the_demo_collects_from_every_engine_and_the_lake(demo_config: Config) -> None:
    assert set(source_names(demo_config)) == {"trino", "spark", "duckdb", "iceberg"}


def test_what_is_collected_is_what_the_pages_expect(demo_config: Config) -> None:
    expected = {job.agent for job in jobs(demo_config) if job.agent.startswith("collect:")}
    assert {f"collect:{name}" for name in source_names(demo_config)} == expected


def test_a_source_bears_its_engines_name(demo_config: Config, store: OwnerStore) -> None:
    for name in source_names(demo_config):
        assert build_source(name, demo_config, store).name == name


def test_what_is_switched_off_is_not_collected(
    load_demo_config: DemoConfig, tmp_path: Path
) -> None:
    config = load_demo_config(
        tmp_path,
        LAKEHELM__ENGINES__TRINO__ENABLED="false",
        LAKEHELM__COLLECT__SPARK__ENABLED="false",
    )
    assert set(source_names(config)) == {"duckdb", "iceberg"}


def test_an_engine_without_a_section_is_collected_by_the_defaults(demo_config: Config) -> None:
    bare = demo_config.model_copy(update={"collect": {}})
    assert collect_settings(bare, "trino") == CollectConfig()


def test_an_unknown_source_is_told_with_the_known_ones(
    demo_config: Config, store: OwnerStore
) -> None:
    with pytest.raises(ConfigError, match=r"snowflake.*trino.*iceberg"):
        build_source("snowflake", demo_config, store)

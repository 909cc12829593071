"""The source from the configuration, on the real store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.iceberg.config import IcebergSettings, iceberg_settings
from collectors.iceberg.source import iceberg_source
from lakehouse_core.config.models import HealthConfig, HealthThresholds, Threshold
from lakehouse_core.store.rows import to_arrow
from tests.stores import new_store
from tests.unit.catalog.lakes import Lake, append_files

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config


@pytest.mark.slow
def test_a_configured_source_fills_the_store_and_then_finds_nothing_new(
    demo_config: Config, tmp_path: Path
) -> None:
    lake = Lake(demo_config.catalogs["lake"].path.parent)
    append_files(lake.create("events"), 1, 2)
    lake.close()
    with new_store(tmp_path / "store") as store:
        source = iceberg_source(demo_config, store)
        watermark = None
        changed = []
        for _ in range(2):
            rows = 0
            for batch in source.pull(watermark):
                rows += sum(store.upsert(name, table) for name, table in batch.rows.items())
                if batch.watermark:
                    watermark = batch.watermark
                    store.upsert("watermark", to_arrow("watermark", [batch.watermark]))
            changed.append(rows)
        source.close()
        found = store.read("SELECT table_id, data_files FROM table_metrics").to_pylist()
    assert changed == [3, 0]
    assert found == [{"table_id": "lake.demo.events", "data_files": 2}]
    assert any((demo_config.home / "cache").rglob("*.arrow"))


def settings(tmp_path: Path, **health: object) -> IcebergSettings:
    return IcebergSettings(cache=tmp_path, health=HealthConfig(**health))


def test_small_follows_the_limits_of_the_table(tmp_path: Path) -> None:
    override = {"lake.demo.*": HealthThresholds(small_file_bytes=7)}
    found = settings(tmp_path, tables=override)
    assert found.small_file_bytes("lake.demo.t") == 7
    assert found.small_file_bytes("lake.tpch.t") == 32 * 2**20


def test_only_limits_that_change_the_measuring_change_the_fingerprint(tmp_path: Path) -> None:
    plain = settings(tmp_path).fingerprint()
    skew = HealthThresholds(skew=Threshold(warning=1, critical=2))
    small = HealthThresholds(small_file_bytes=5)
    assert settings(tmp_path, tables={"*": skew}).fingerprint() == plain
    assert settings(tmp_path, tables={"*": small}).fingerprint() != plain
    assert settings(tmp_path, defaults=small).fingerprint() != plain


def test_the_cache_lies_below_the_home(demo_config: Config) -> None:
    assert iceberg_settings(demo_config).cache.is_relative_to(demo_config.home)

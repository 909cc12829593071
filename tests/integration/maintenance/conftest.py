"""A lake and a store of their own; jobs are real Spark in a process of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.store.owner import OwnerStore
from tests.integration.maintenance.world import World, quick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import DemoConfig


@pytest.fixture
def world(load_demo_config: DemoConfig, tmp_path: Path, artifacts: list[Path]) -> Iterator[World]:
    del artifacts
    config = quick(load_demo_config(tmp_path / "home"))
    with OwnerStore.open(config.store) as store:
        made = World(config, store)
        yield made
        made.maintainer.close()

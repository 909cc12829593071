"""A yard with its own lake; the store is shared and empty for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.stores import emptied
from tests.unit.maintenance.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config.models import Config
    from lakehouse_core.store.owner import OwnerStore
    from tests.conftest import DemoConfig


@pytest.fixture
def yard_config(load_demo_config: DemoConfig, tmp_path: Path) -> Config:
    config = load_demo_config(tmp_path / "home")
    quick = {"quiet_period": "0s", "max_attempts": 3}
    settings = type(config.maintenance).model_validate(config.maintenance.model_dump() | quick)
    return config.model_copy(update={"maintenance": settings})


@pytest.fixture
def yard(yard_config: Config, shared_store: OwnerStore) -> Iterator[Yard]:
    made = Yard(yard_config, emptied(shared_store))
    yield made
    made.maintainer.close()

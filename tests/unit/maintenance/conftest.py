"""A yard with its own lake; the store is shared by a module and empty for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.store.owner import OwnerStore
from tests.unit.maintenance.stores import emptied
from tests.unit.maintenance.yard import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config.models import Config
    from tests.conftest import DemoConfig


@pytest.fixture(scope="module")
def yard_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerStore]:
    with OwnerStore.at(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.fixture
def yard_config(load_demo_config: DemoConfig, tmp_path: Path) -> Config:
    config = load_demo_config(tmp_path / "home")
    quick = {"quiet_period": "0s", "max_attempts": 3}
    settings = type(config.maintenance).model_validate(config.maintenance.model_dump() | quick)
    return config.model_copy(update={"maintenance": settings})


@pytest.fixture
def yard(yard_config: Config, yard_store: OwnerStore) -> Iterator[Yard]:
    yard_store.transact("query_event", ["DELETE FROM query_event"])
    made = Yard(yard_config, emptied(yard_store))
    yield made
    made.maintainer.close()

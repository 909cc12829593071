"""A small store of its own for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.config.models import StoreConfig
from tests.stores import new_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore


@pytest.fixture
def place(tmp_path: Path) -> StoreConfig:
    """Where this test's store is; nothing is there yet."""
    return StoreConfig(
        path=tmp_path / "telemetry.duckdb", spool=tmp_path / "spool", backups=tmp_path / "backups"
    )


@pytest.fixture
def store(place: StoreConfig) -> Iterator[OwnerStore]:
    """An opened store that is not served."""
    with new_store(place.path.parent) as opened:
        yield opened

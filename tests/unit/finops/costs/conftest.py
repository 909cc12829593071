"""A small store of its own for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.store.owner import OwnerStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OwnerStore]:
    """An opened store that is not served."""
    with OwnerStore.at(tmp_path / "store") as opened:
        yield opened

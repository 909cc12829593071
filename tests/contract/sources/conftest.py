"""A world per source, and one store that each test finds empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.sources.worlds import KINDS, WORLDS, World
from tests.stores import emptied

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The world of each source in turn."""
    made = WORLDS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    """The store, empty."""
    return emptied(shared_store)

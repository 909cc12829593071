"""A small store of its own for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.stores import emptied

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    """An empty store that is not served."""
    return emptied(shared_store)

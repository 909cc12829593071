"""One store for the agents' tests; each finds it empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.stores import emptied

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    """The store, empty."""
    return emptied(shared_store)

"""One store for the agents' tests; each finds it empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

EMPTYING = [f"DELETE FROM {name}" for name in TABLES]  # noqa: S608 names of our own tables


@pytest.fixture(scope="package")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerStore]:
    """A store, opened once."""
    with OwnerStore.at(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    """The store, empty."""
    shared_store.transact("query_event", EMPTYING)
    return shared_store

"""A world per source, and one store that each test finds empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.tables import TABLES
from tests.contract.sources.worlds import KINDS, WORLDS, World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The world of each source in turn."""
    made = WORLDS[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnerStore]:
    """A store, opened once for a module."""
    with OwnerStore.at(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    """The store, empty."""
    empty(shared_store)
    return shared_store


def empty(store: OwnerStore) -> None:
    """Drop every row."""
    for name in TABLES:
        store.transact(name, [f"DELETE FROM {name}"])  # noqa: S608 names of our own tables

"""Each test of the suite runs once per kind of catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.catalogs.worlds import rest_world, sqlite_world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.contract.catalogs.worlds import World


@pytest.fixture(params=["sqlite", pytest.param("rest", marks=pytest.mark.rest)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "sqlite":
        yield from sqlite_world(tmp_path)
    else:
        yield from rest_world(tmp_path, request.getfixturevalue("rest_server"))

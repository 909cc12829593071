"""A fresh lake for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.catalog.lakes import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path / "lake")
    yield lake
    lake.close()

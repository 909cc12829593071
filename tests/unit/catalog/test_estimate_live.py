"""Bounds of a lake that changes: what is new is read, what did not change is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.typedef import Record

from lakehouse_core.catalog.estimate_live import LakeBounds
from tests.unit.catalog.lakes import BY_REGION, Lake, append_files, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = str(name_of())


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path / "lake")
    append_files(lake.create(partition_spec=BY_REGION), 100, 200, partition=Record("eu"))
    yield lake
    lake.close()


@pytest.fixture
def bounds(lake: Lake, tmp_path: Path) -> Iterator[LakeBounds]:
    bounds = LakeBounds({"lake": lake.catalog}, tmp_path / "cache")
    yield bounds
    bounds.close()


def size(bounds: LakeBounds, table: str = TABLE) -> int | None:
    found = bounds.memory.get(table)
    return None if found is None else int(found.data.sizes.sum())


def test_a_table_is_read_again_when_it_has_changed(lake: Lake, bounds: LakeBounds) -> None:
    assert bounds.refresh().read == 1
    assert size(bounds) == 300
    assert bounds.refresh().read == 0
    append_files(lake.load(name_of()), 50, partition=Record("us"))
    assert bounds.refresh().read == 1
    assert size(bounds) == 350


def test_a_table_that_was_dropped_is_let_go(lake: Lake, bounds: LakeBounds) -> None:
    bounds.refresh()
    lake.iceberg.drop_table("demo.t")
    assert bounds.refresh().gone == 1
    assert size(bounds) is None


def test_a_table_that_gave_way_comes_back_when_it_is_asked_for(bounds: LakeBounds) -> None:
    bounds.refresh()
    bounds.memory.forget(TABLE)
    assert bounds.refresh().read == 0
    assert size(bounds) is None  # asked for in vain: the next look reads it
    assert bounds.refresh().read == 1
    assert size(bounds) == 300


def test_a_broken_table_is_told_and_shuts_out_no_other(lake: Lake, bounds: LakeBounds) -> None:
    append_files(lake.create("u", partition_spec=BY_REGION), 7, partition=Record("eu"))
    lake.execute(
        "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = 't'", "file:///gone"
    )
    looked = bounds.refresh()
    assert looked.read == 1
    assert list(looked.unreadable) == [TABLE]
    assert size(bounds, "lake.demo.u") == 7


def test_a_catalog_that_is_away_leaves_what_is_known(lake: Lake, bounds: LakeBounds) -> None:
    bounds.refresh()
    lake.close()
    kept = lake.path.rename(lake.path.with_suffix(".away"))
    assert "lake" in bounds.refresh().unreadable
    kept.rename(lake.path)
    assert size(bounds) == 300

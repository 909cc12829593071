"""What a statement would read, from the tables as they are this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.typedef import Record

from lakehouse_core.routing.facts import Facts
from lakehouse_core.routing.scan import FreshScanEstimator
from tests.unit.catalog.lakes import BY_REGION, Lake, append_files, name_of
from tests.unit.routing.conftest import statement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.routing.request import ScanEstimate


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path / "lake")
    table = lake.create(partition_spec=BY_REGION)
    append_files(table, 100, 200, partition=Record("eu"))
    append_files(table, 400, partition=Record("us"))
    yield lake
    lake.close()


def estimated(lake: Lake, sql: str, **request: str) -> ScanEstimate:
    asked = statement(sql, **request)
    return FreshScanEstimator({"lake": lake.catalog}).estimate(asked, Facts().of(asked))


def test_files_and_bytes_are_those_that_are_left_after_pruning(lake: Lake) -> None:
    everything = estimated(lake, "SELECT * FROM lake.demo.t")
    assert (everything.files, everything.bytes) == (3, 700)
    some = estimated(lake, "SELECT * FROM t WHERE region = 'eu'", catalog="lake", schema="demo")
    assert (some.files, some.bytes) == (2, 300)
    append_files(lake.load(name_of()), 50, partition=Record("eu"))
    more = estimated(lake, "SELECT * FROM lake.demo.t WHERE region = 'eu'")
    assert (more.files, more.bytes) == (3, 350)


@pytest.mark.parametrize(
    ("sql", "basis"),
    [
        ("SELECT 1", "it reads no table"),
        ("SELECT * FROM other.demo.t", "other.demo.t is in no catalog of ours"),
        ("SELECT * FROM t", "'t' is not <catalog>.<namespace>.<table>"),
        ("SELECT * FROM lake.demo.nothing", "lake.demo.nothing"),
    ],
)
def test_what_cannot_be_known_is_said(lake: Lake, sql: str, basis: str) -> None:
    found = estimated(lake, sql)
    assert found.bytes is None
    assert basis in found.basis

"""The partitions that matter most, named as people name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.typedef import Record

from lakehouse_core.catalog.partitions import MOST, shown
from lakehouse_core.domain.table import MIB
from tests.unit.catalog.lakes import (
    BY_REGION,
    BY_REGION_AND_DAY,
    File,
    HandMade,
    Lake,
    Manifest,
    append_files,
    measured,
    name_of,
)

if TYPE_CHECKING:
    from typing import Any


def test_figures_are_those_of_each_partition(lake: Lake) -> None:
    made = HandMade(lake, version=2, specs=(BY_REGION,))
    made.commit(
        Manifest((File(partition=("a",), rows=2), File(partition=("b",), size=40 * MIB, rows=3))),
        Manifest((File(content=1, partition=("a",), rows=1),), sequence_number=2),
    )
    found = measured(lake, made.table).largest_partitions
    assert [one.partition for one in found] == ["region=b", "region=a"]
    large, small = found
    assert (large.total_bytes, large.data_files, large.small_files) == (40 * MIB, 1, 0)
    assert (small.total_rows, small.small_files, small.delete_files) == (2, 1, 1)


@pytest.mark.slow
def test_of_many_the_largest_and_those_with_the_most_files_are_told(lake: Lake) -> None:
    table = lake.create(partition_spec=BY_REGION)
    for number in range(3 * MOST):
        append_files(table, (number + 1) * MIB, partition=Record(f"r{number:02}"))
    append_files(table, *[1] * 9, partition=Record("crumbs"))
    found = measured(lake, name_of()).largest_partitions
    assert found[0].partition == f"region=r{3 * MOST - 1:02}"
    assert {f"region=r{number:02}" for number in range(2 * MOST, 3 * MOST)} <= {
        one.partition for one in found
    }
    assert ("region=crumbs", 9) in {(one.partition, one.data_files) for one in found}
    assert [one.total_bytes for one in found] == sorted(
        (one.total_bytes for one in found), reverse=True
    )


def test_partitions_of_an_older_spec_have_their_own_names(lake: Lake) -> None:
    made = HandMade(lake, version=2, specs=(BY_REGION, BY_REGION_AND_DAY))
    made.commit(
        Manifest((File(partition=("a",)),), spec_id=0),
        Manifest((File(partition=("a", 20_773)),), spec_id=1),
    )
    names = {one.partition for one in measured(lake, made.table).largest_partitions}
    assert names == {"region=a", "region=a, at_day=2026-11-16"}


def test_a_small_file_alone_in_its_partition_is_told_apart(lake: Lake) -> None:
    table = lake.create(partition_spec=BY_REGION)
    append_files(table, 1, partition=Record("alone"))
    append_files(table, 40 * MIB, 2, partition=Record("alone beside a large one"))
    append_files(table, 1, 2, 3, partition=Record("three"))
    metrics = measured(lake, name_of())
    assert (metrics.small_files, metrics.lone_small_files) == (5, 2)


def test_a_table_without_partitions_has_none_to_tell(lake: Lake) -> None:
    append_files(lake.create(), 5)
    assert measured(lake, name_of()).largest_partitions == ()


@pytest.mark.parametrize(
    ("value", "transform", "said"),
    [
        (None, "day", "null"),
        (-1, "day", "1969-12-31"),
        (-1, "month", "1969-12"),
        (56, "year", "2026"),
        (498_564, "hour", "2026-11-16 12:00"),
        (10**12, "day", "1000000000000"),
        (7, "bucket[16]", "7"),
        ("it's", "identity", "it's"),
        (20_773, "identity", "20773"),
    ],
)
def test_values_are_shown_as_people_say_them(value: Any, transform: str, said: str) -> None:
    assert shown(value, transform) == said


def test_delete_files_of_one_data_file_or_partition_can_be_merged(lake: Lake) -> None:
    made = HandMade(lake, version=3, specs=(BY_REGION,))
    deletes = [
        File(content=1, partition=("a",), about="one"),
        File(content=1, partition=("a",), about="one"),
        File(content=1, partition=("a",), about="another"),
        *(File(content=1, partition=("b",)) for _ in range(3)),
        File(content=1, partition=("a",), format="PUFFIN", about="one"),
        *(File(content=2, partition=("a",)) for _ in range(2)),
    ]
    made.commit(
        Manifest((File(partition=("a",)), File(partition=("b",)))),
        Manifest(tuple(deletes), sequence_number=2),
    )
    metrics = measured(lake, made.table)
    assert metrics.position_delete_files == 6
    assert metrics.mergeable_delete_files == 1 + 2


def test_what_tags_keep_and_what_the_table_asks_for_is_told(lake: Lake) -> None:
    table = lake.create(properties={"write.target-file-size-bytes": "1048576"})
    for _ in range(3):
        append_files(table, 5)
    first, second, _ = table.snapshots()
    table.manage_snapshots().create_tag(first.snapshot_id, "month").commit()
    metrics = measured(lake, name_of())
    assert metrics.target_file_bytes == MIB
    assert metrics.ref_snapshot_ids == (first.snapshot_id,)
    assert metrics.oldest_free_snapshot_at is not None
    assert metrics.oldest_free_snapshot_at.timestamp() * 1000 == second.timestamp_ms

"""Every figure equals what pyiceberg's inspection gives for the same table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.typedef import Record

from lakehouse_core.domain.table import MIB
from tests.factories import unique
from tests.unit.catalog.lakes import (
    BY_REGION,
    BY_REGION_AND_DAY,
    File,
    HandMade,
    Lake,
    Manifest,
    append_files,
    assert_equal_to_pyiceberg,
    measured,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def rows(*ids: int) -> pa.Table:
    at = pa.array([one * 86_400_000_000 for one in ids], pa.timestamp("us"))
    regions = [f"r{one % 3}" for one in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "region": regions, "at": at})


def check(lake: Lake, name: str = "t") -> None:
    table = name_of(name)
    assert_equal_to_pyiceberg(measured(lake, table), lake.load(table))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1", "2"])
def test_appends_deletes_overwrites_and_new_partitioning_written_by_pyiceberg(
    lake: Lake, version: str
) -> None:
    table = lake.create(partition_spec=BY_REGION, properties={"format-version": version})
    table.append(rows(*range(9)))
    table.append(rows(*range(9, 14)))
    check(lake)
    table.delete(EqualTo("region", "r1"))
    table.delete(EqualTo("id", 3))
    check(lake)
    with table.update_spec() as spec:
        spec.add_identity("id")
    table.append(rows(20, 21, 22, 23))
    check(lake)
    table.overwrite(rows(40, 41))
    check(lake)


def test_a_table_without_snapshots(lake: Lake) -> None:
    lake.create()
    metrics = measured(lake, name_of())
    assert (metrics.snapshot_id, metrics.data_files, metrics.partitions) == (0, 0, 0)
    assert (metrics.skew, metrics.delete_ratio, metrics.oldest_snapshot_at) == (None, None, None)
    check(lake)


def test_a_table_emptied_again(lake: Lake) -> None:
    table = lake.create()
    table.append(rows(1, 2))
    table.delete()
    assert measured(lake, name_of()).data_files == 0
    check(lake)


def test_a_table_that_has_a_branch_only(lake: Lake) -> None:
    made = HandMade(lake)
    made.commit(Manifest((File(),)), branch="dev")
    metrics = measured(lake, made.table)
    assert (metrics.snapshot_id, metrics.snapshots, metrics.data_files) == (0, 1, 0)
    check(lake)


def test_files_of_a_branch_do_not_count_on_main(lake: Lake) -> None:
    made = HandMade(lake)
    made.commit(Manifest((File(size=10),)))
    made.commit(Manifest((File(size=10), File(size=20))), branch="dev")
    metrics = measured(lake, made.table)
    assert (metrics.data_files, metrics.snapshots) == (1, 2)
    check(lake)


def test_position_and_equality_deletes_and_deletion_vectors(lake: Lake) -> None:
    made = HandMade(lake, version=3, specs=(BY_REGION,))
    made.commit(
        Manifest((File(partition=("a",)), File(partition=("b",), size=40 * MIB))),
        Manifest(
            (
                File(content=1, partition=("a",), rows=3),
                File(content=1, partition=("a",), rows=4, format="PUFFIN"),
                File(content=1, partition=("b",), rows=4, format="puffin"),
                File(content=2, partition=("c",), rows=5),
            ),
            sequence_number=2,
        ),
    )
    metrics = measured(lake, made.table)
    assert metrics.position_delete_files == 1
    assert metrics.deletion_vectors == 2
    assert metrics.equality_delete_files == 1
    assert metrics.deleted_rows == 16
    assert metrics.delete_ratio == 2.0
    assert metrics.partitions == 3
    assert metrics.data_files == 2
    assert metrics.small_files == 1


def test_entries_of_removed_files_are_not_counted(lake: Lake) -> None:
    made = HandMade(lake)
    made.commit(Manifest((File(status=0), File(status=1), File(status=2), File(status=2))))
    assert measured(lake, made.table).data_files == 2
    check(lake)


def test_the_same_partition_written_under_two_specs_that_name_it_alike(lake: Lake) -> None:
    again = PartitionSpec(*BY_REGION.fields, spec_id=1)
    made = HandMade(lake, specs=(BY_REGION, again))
    made.commit(
        Manifest((File(partition=("a",)),)),
        Manifest((File(partition=("a",)), File(partition=(None,))), spec_id=1),
    )
    assert measured(lake, made.table).partitions == 2
    check(lake)


@pytest.mark.slow
def test_a_partition_value_that_looks_like_another_type_or_like_null(lake: Lake) -> None:
    table = lake.create(partition_spec=BY_REGION)
    for value in ("null", None, "", '"', "\\", '\\"', ",", "a,b", 'a","b', "1", "ü"):
        append_files(table, 5, partition=Record(value))
    assert measured(lake, name_of()).partitions == 11
    check(lake)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "bzip2"])
def test_every_codec_that_pyiceberg_writes(lake: Lake, codec: str) -> None:
    made = HandMade(lake, codec=codec)
    made.commit(Manifest((File(size=7), File(size=9))), Manifest((File(size=11),)))
    assert measured(lake, made.table).total_bytes == 27
    check(lake)


def test_histogram_mean_and_median_of_file_sizes(lake: Lake) -> None:
    table = lake.create()
    append_files(table, 0, MIB - 1, MIB, 8 * MIB, 32 * MIB, 128 * MIB, 512 * MIB, 700 * MIB)
    metrics = measured(lake, name_of())
    assert metrics.file_size_histogram == (2, 1, 1, 1, 1, 2)
    assert metrics.median_file_bytes == 20 * MIB
    assert metrics.avg_file_bytes == metrics.total_bytes / 8
    check(lake)


data_files = st.builds(
    File,
    size=st.integers(0, 200 * MIB),
    rows=st.integers(0, 1000),
    partition=st.tuples(st.sampled_from(["a", "b", "c", None])),
    status=st.sampled_from([0, 1, 2]),
)
delete_files = st.builds(
    File,
    size=st.integers(0, MIB),
    rows=st.integers(0, 50),
    partition=st.tuples(st.sampled_from(["a", "b", "d"])),
    content=st.just(1),
    format=st.sampled_from(["PARQUET", "PUFFIN"]),
) | st.builds(
    File,
    rows=st.integers(0, 50),
    partition=st.tuples(st.sampled_from(["a", "b", "d"])),
    content=st.just(2),
)


def with_day(file: File) -> File:
    return File(**{**vars(file), "partition": (*file.partition, file.rows % 3)})


def manifests(files: st.SearchStrategy[File]) -> st.SearchStrategy[Manifest]:
    def build(found: list[File], spec_id: int, sequence_number: int) -> Manifest:
        placed = [with_day(one) for one in found] if spec_id else found
        return Manifest(tuple(placed), spec_id, sequence_number)

    many = st.lists(files, min_size=1, max_size=6)
    return st.builds(build, many, st.sampled_from([0, 1]), st.integers(1, 4))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    lake = Lake(tmp_path_factory.mktemp("shared"))
    yield lake
    lake.close()


# Data first: pyiceberg cannot inspect a snapshot without any manifest.
@pytest.mark.slow
@settings(max_examples=30)
@given(
    version=st.sampled_from([1, 2, 3]),
    data=st.lists(manifests(data_files), min_size=1, max_size=4),
    deletes=st.lists(manifests(delete_files), max_size=3),
)
def test_any_mix_of_manifests(
    shared: Lake, version: int, data: list[Manifest], deletes: list[Manifest]
) -> None:
    specs = (BY_REGION, BY_REGION_AND_DAY)
    made = HandMade(shared, name=unique("mix"), version=version, specs=specs)
    made.commit(*data, *(deletes if version > 1 else []))
    check(shared, made.name)

"""The manifest cache: each manifest is read once, by whichever process, within bounds."""

from __future__ import annotations

import multiprocessing
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import LongType

from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.cache import ManifestCache
from lakehouse_core.catalog.entries import ENTRY_SCHEMA
from lakehouse_core.catalog.manifest_list import Manifest as Line
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.catalog.segments import Run, SegmentStore
from lakehouse_core.catalog.sqlite import SqliteLake
from tests.unit.catalog.lakes import (
    AVRO,
    File,
    HandMade,
    Manifest,
    append_files,
    manifest_paths,
    measured,
    name_of,
)

if TYPE_CHECKING:
    from tests.unit.catalog.lakes import Lake


def overwrite_keeping_size(path: Path) -> None:
    """Make a manifest unreadable in a way that only reading it again would notice."""
    path.write_bytes(b"?" * path.stat().st_size)


@pytest.mark.parametrize("is_new_process", [False, True])
def test_only_new_manifests_are_read(lake: Lake, is_new_process: bool) -> None:
    table = lake.create()
    append_files(table, 1, 2)
    append_files(table, 3)
    reader = lake.reader()
    measured(lake, name_of(), reader)
    for path in manifest_paths(lake, name_of()):
        overwrite_keeping_size(path)
    append_files(table, 4)
    used = lake.reader() if is_new_process else reader
    assert measured(lake, name_of(), used).total_bytes == 10


def test_a_manifest_that_changed_its_size_is_read_again(lake: Lake) -> None:
    made = HandMade(lake)
    made.commit(Manifest((File(size=1),)))
    reader = lake.reader()
    measured(lake, made.table, reader)
    path = next(made.folder.rglob("*-m0.avro"))
    other = made.write_manifest(Manifest(tuple(File(size=100) for _ in range(9))), 1)
    Path(other["manifest_path"].removeprefix("file://")).replace(path)
    for one in (reader, lake.reader()):
        assert measured(lake, made.table, one).total_bytes == 900


def test_losing_the_cache_folder_at_any_moment_costs_nothing_but_time(lake: Lake) -> None:
    table = lake.create()
    append_files(table, 1)
    reader = lake.reader()
    measured(lake, name_of(), reader)
    shutil.rmtree(lake.root / "cache")
    append_files(table, 2)
    assert measured(lake, name_of(), reader).total_bytes == 3
    assert measured(lake, name_of()).total_bytes == 3


@pytest.mark.parametrize("harm", ["cut", "garbage", "empty"])
def test_a_broken_segment_is_dropped_and_its_manifests_read_again(lake: Lake, harm: str) -> None:
    append_files(lake.create(), 1, 2)
    expected = measured(lake, name_of())
    segment = next((lake.root / "cache").rglob("*.arrow"))
    data = segment.read_bytes()
    segment.write_bytes({"cut": data[:-50], "garbage": b"?" * len(data), "empty": b""}[harm])
    assert measured(lake, name_of()) == expected
    assert not segment.exists() or segment.read_bytes() == data


def test_a_cache_that_cannot_be_written_does_not_stop_the_reading(lake: Lake) -> None:
    append_files(lake.create(), 1, 2)
    (lake.root / "file").write_text("in the way")
    assert measured(lake, name_of(), lake.reader("file/cache")).total_bytes == 3


def test_an_unfinished_segment_of_a_killed_process_is_not_read(lake: Lake) -> None:
    append_files(lake.create(), 1, 2)
    expected = measured(lake, name_of())
    segment = next((lake.root / "cache").rglob("*.arrow"))
    segment.rename(segment.with_suffix(".part"))
    assert measured(lake, name_of()) == expected


@pytest.mark.slow
def test_segments_of_a_busy_table_are_merged(lake: Lake) -> None:
    table = lake.create()
    for commits in range(1, 41):
        append_files(table, 10)
        assert measured(lake, name_of()).total_bytes == 10 * commits
    assert len(list((lake.root / "cache").rglob("*.arrow"))) <= 17


def test_merging_keeps_live_manifests_only(tmp_path: Path) -> None:
    store = SegmentStore(tmp_path, max_bytes=10**9)
    for number in range(30):
        store.write("t", [Run(f"m{number}", 5, 1)], entries(1))
    live = {f"m{number}": 5 for number in range(0, 30, 10)}
    store.tidy("t", live)
    found = {run.path for run, _ in store.read("t", {f"m{n}": 5 for n in range(30)}, None)}
    assert found == set(live)
    assert len(list(tmp_path.rglob("*.arrow"))) == 1


@pytest.mark.parametrize(("live_rows", "is_rewritten"), [(9_000, False), (3_000, True)])
def test_a_large_segment_is_rewritten_only_when_mostly_dead(
    tmp_path: Path, live_rows: int, is_rewritten: bool
) -> None:
    store = SegmentStore(tmp_path, max_bytes=10**9)
    runs = [Run("live", 5, live_rows), Run("dead", 5, 12_000 - live_rows)]
    noise = pa.array([secrets.token_hex(200) for _ in range(12_000)])
    wide = entries(12_000).set_column(1, "file_path", noise)
    store.write("t", runs, wide)
    large = next(tmp_path.rglob("*.arrow"))
    for number in range(20):
        store.write("t", [Run(f"m{number}", 5, 1)], entries(1))
    live = {"live": 5, **{f"m{number}": 5 for number in range(20)}}
    store.tidy("t", live)
    assert large.exists() != is_rewritten
    found = {run.path: rows.num_rows for run, rows in store.read("t", live, None)}
    assert found == {"live": live_rows, **{f"m{number}": 1 for number in range(20)}}


def test_two_processes_that_wrote_the_same_manifest_do_not_double_it(tmp_path: Path) -> None:
    store = SegmentStore(tmp_path, max_bytes=10**9)
    for _ in range(20):
        store.write("t", [Run("m", 5, 3)], entries(3))
    assert sum(run.rows for run, _ in store.read("t", {"m": 5}, None)) == 3
    store.tidy("t", {"m": 5})
    assert sum(run.rows for run, _ in store.read("t", {"m": 5}, None)) == 3


@pytest.mark.slow
def test_the_folder_stays_within_its_bound(tmp_path: Path) -> None:
    store = SegmentStore(tmp_path, max_bytes=20_000)
    for number in range(300):
        store.write(f"table {number}", [Run("m", 5, 10)], entries(10))
    used = sum(path.stat().st_size for path in tmp_path.rglob("*.arrow"))
    one = next(tmp_path.rglob("*.arrow")).stat().st_size
    assert used <= 20_000 + 64 * one


def test_the_uuid_of_a_table_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    store = SegmentStore(tmp_path / "inside", max_bytes=10**9)
    store.write("../../escape", [Run("m", 5, 1)], entries(1))
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert list(store.read("../../escape", {"m": 5}, None))


def test_entries_beyond_the_memory_bound_are_not_held(lake: Lake) -> None:
    made = HandMade(lake)
    line = made.write_manifest(Manifest(tuple(File() for _ in range(50))), 1)
    manifest = Line(path=line["manifest_path"], length=1, spec_id=0)
    cache = ManifestCache(AVRO, lake.root / "bounded", memory_bytes=1)
    for _ in range(2):
        rows, counts = cache.entries("uuid", [manifest], None)
        assert (rows.num_rows, counts) == (50, [50])
    shutil.rmtree(lake.root / "bounded")
    overwrite_keeping_size(Path(line["manifest_path"].removeprefix("file://")))
    with pytest.raises(Exception, match="not an Avro file"):
        cache.entries("uuid", [manifest], None)


def test_a_new_sort_order_uses_bounds_that_are_known_already(lake: Lake) -> None:
    made = HandMade(lake)
    low, high = to_bytes(LongType(), 1), to_bytes(LongType(), 5)
    made.commit(Manifest((File(bounds=(low, low)), File(bounds=(high, high)))))
    reader = lake.reader()
    assert measured(lake, made.table, reader).sort_overlap is None
    overwrite_keeping_size(next(made.folder.rglob("*-m0.avro")))
    key = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}
    made.sort_order = {"order-id": 1, "fields": [key]}
    made.publish()
    metrics = measured(lake, made.table, reader)
    assert (metrics.sort_overlap, metrics.unsorted_share) == (0.0, 1.0)
    assert metrics.sort_order == "id ASC NULLS LAST"


def read_in_child(root: Path, start: Any, answers: Any) -> None:
    catalog = SqliteLake("lake", root / "catalog.db", root / "warehouse")
    reader = TableReader(catalog, root / "cache", AvroReader())
    start.wait()
    answers.put([len(reader.read(name_of()).files.sizes) for _ in range(5)])


@pytest.mark.slow
def test_several_processes_share_the_folder(lake: Lake) -> None:
    table = lake.create()
    for _ in range(20):
        append_files(table, 1)
    context = multiprocessing.get_context("spawn")
    start, answers = context.Event(), context.Queue()
    children = [
        context.Process(target=read_in_child, args=(lake.root, start, answers)) for _ in range(2)
    ]
    for child in children:
        child.start()
    start.set()
    found = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join(timeout=60)
    assert found == [[20] * 5] * 2
    assert not list((lake.root / "cache").rglob("*.part"))


def entries(count: int) -> Any:
    row = {
        "content": 0,
        "file_path": "x",
        "file_format": "PARQUET",
        "partition": "[]",
        "record_count": 1,
        "file_size_in_bytes": 1,
    }
    return pa.Table.from_pylist([row] * count, schema=ENTRY_SCHEMA)

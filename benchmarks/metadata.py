"""Metadata collection of a large table against pyiceberg's `inspect.files()`, numbers equal.

    python benchmarks/metadata.py --json

Figures: reading the whole table, reading it after one append, and looking at it unchanged. Both
sides run in turns in one warm process; the best round of each counts. Nothing is kept between
rounds of the whole reading: folder, reader and memory are new each time. Last, the peak memory of a
process that does nothing but collect a table of ten times as many files.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.entries import read_entries
from lakehouse_core.catalog.measure import measure
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.table import MIB, TableMetrics, TableName

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

TABLE = TableName("lake", ("demo",), "big")
SMALL = 32 * MIB
LIMITS = {"full_ratio": 0.15, "after_append_ratio": 0.05, "unchanged_ms": 3.0, "peak_mib": 1024.0}
PER_FILE = (
    "content",
    "record_count",
    "file_size_in_bytes",
    "sort_order_id",
    "value_counts",
    "null_value_counts",
    "lower_bounds",
    "upper_bounds",
)
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "at", TimestampType()),
    NestedField(3, "region", StringType()),
    *(
        NestedField(number, f"c{number}", DoubleType() if number % 2 else StringType())
        for number in range(4, 17)
    ),
)
BY_REGION = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "region"))


def data_file(table: Table, number: int) -> DataFile:
    """A file that exists in the metadata only, with statistics of all columns."""
    values: dict[type, Any] = {
        LongType: number,
        TimestampType: number * 10**9,
        StringType: f"v{number}",
        DoubleType: float(number),
    }
    bounds = {
        one.field_id: to_bytes(one.field_type, values[type(one.field_type)])
        for one in SCHEMA.fields
    }
    counts = {one.field_id: number % 97 for one in SCHEMA.fields}
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/data/{uuid.uuid4()}-{number}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(f"r{number % 50}"),
        record_count=1_000 + number,
        file_size_in_bytes=7_919 * number + 7,
        column_sizes=counts,
        value_counts=counts,
        null_value_counts=counts,
        nan_value_counts={},
        lower_bounds=bounds,
        upper_bounds=bounds,
        split_offsets=[4],
        sort_order_id=0,
    )
    file.spec_id = table.spec().spec_id
    return file


def append(table: Table, numbers: range) -> None:
    with table.transaction() as change, change.update_snapshot().fast_append() as files:
        for number in numbers:
            files.append_data_file(data_file(table, number))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def cpu_seconds(call: Callable[[], Any]) -> float:
    """What a call costs on any machine, however busy: all threads together."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measured(reader: TableReader) -> TableMetrics:
    return measure(reader.read(TABLE), small_file_bytes=SMALL, collected_at=utc_now())


def assert_equal(metrics: TableMetrics, table: Table) -> None:
    """Every figure of the table, against pyiceberg's inspection."""
    files = table.inspect.files().to_pylist()
    sizes = [row["file_size_in_bytes"] for row in files]
    held = table.inspect.partitions().column("total_data_file_size_in_bytes").to_pylist()
    assert metrics.data_files == len(files)
    assert metrics.total_bytes == sum(sizes)
    assert metrics.total_rows == sum(row["record_count"] for row in files)
    assert metrics.small_files == sum(size < SMALL for size in sizes)
    assert metrics.delete_files == table.inspect.delete_files().num_rows
    assert metrics.manifests == table.inspect.manifests().num_rows
    assert metrics.snapshots == table.inspect.snapshots().num_rows
    assert metrics.partitions == len(held)
    assert metrics.skew == max(held) / (sum(held) / len(held))


def assert_files_equal(table: Table, avro: AvroReader) -> int:
    """Every number of every file, against pyiceberg's inspection; gives how many there are."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    paths = [one.manifest_path for one in snapshot.manifests(table.io)]
    ours = [row for _, rows in read_entries(avro, paths) for row in rows.to_pylist()]
    theirs = {row["file_path"]: row for row in table.inspect.files().to_pylist()}
    numbers = 0
    for row in ours:
        other = theirs.pop(row["file_path"])
        for name in PER_FILE:
            assert row[name] == other[name], (name, row, other)
            numbers += len(row[name]) if isinstance(row[name], list) else 1
    assert not theirs
    return numbers


def build(lake: SqliteLake, files: int, manifests: int) -> Table:
    iceberg = lake.iceberg()
    iceberg.create_namespace("demo")
    table = iceberg.create_table("demo.big", SCHEMA, partition_spec=BY_REGION)
    step = -(-files // manifests)
    for start in range(0, files, step):
        append(table, range(start, min(start + step, files)))
    return table


def read_whole(lake: SqliteLake, table: Table, avro: AvroReader, folder: Path, rounds: int) -> Any:
    """Both sides in turns, ours with a new cache each time; then what each costs in CPU."""
    inspect, full = [], []
    for number in range(rounds):
        inspect.append(timed(table.inspect.files)[0])
        reader = TableReader(lake, folder / f"cache-{number}", avro)
        seconds, metrics = timed(lambda reader=reader: measured(reader))
        full.append(seconds)
        assert_equal(metrics, table)
    cold = TableReader(lake, folder / "cache-cpu", avro)
    return {
        "inspect_seconds": inspect,
        "full_seconds": full,
        "inspect_cpu_seconds": cpu_seconds(table.inspect.files),
        "full_cpu_seconds": cpu_seconds(lambda: measured(cold)),
    }


def read_changes(
    lake: SqliteLake, table: Table, avro: AvroReader, folder: Path, rounds: int
) -> dict[str, list[float]]:
    """After one append: by a reader that saw the table before, and by a new process."""
    reader = TableReader(lake, folder / "cache-0", avro)
    measured(reader)
    after: list[float] = []
    restarted: list[float] = []
    for _ in range(rounds):
        for seen, times in ((True, after), (False, restarted)):
            append(table, range(1))
            used = reader if seen else TableReader(lake, folder / "cache-0", avro)
            seconds, metrics = timed(lambda used=used: measured(used))
            times.append(seconds)
            assert_equal(metrics, table)
        measured(reader)
    return {"after_append_seconds": after, "after_append_new_process_seconds": restarted}


def look_at_unchanged(lake: SqliteLake, avro: AvroReader, folder: Path) -> list[float]:
    reader = TableReader(lake, folder / "cache-0", avro)
    times = []
    for _ in range(200):
        seconds, is_intact = timed(lambda: reader.is_intact(TABLE, lake.metadata_location(TABLE)))
        assert is_intact
        times.append(seconds)
    return times


def collect_alone(folder: Path, answer: Any) -> None:
    """In a process of its own: collect the table, tell what that took."""
    lake = SqliteLake("lake", folder / "catalog.db", folder / "warehouse")
    reader = TableReader(lake, folder / "cache", AvroReader())
    seconds, metrics = timed(lambda: measured(reader))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answer.put({"many_files": metrics.data_files, "many_seconds": seconds, "peak_mib": peak})


def collect_many(folder: Path, files: int) -> dict[str, float]:
    """Peak memory of collecting a table of many files."""
    folder.mkdir()
    build(SqliteLake("lake", folder / "catalog.db", folder / "warehouse"), files, files // 5_000)
    spawn = multiprocessing.get_context("spawn")
    answer = spawn.Queue()
    process = spawn.Process(target=collect_alone, args=(folder, answer))
    process.start()
    found: dict[str, float] = answer.get(timeout=600)
    process.join()
    return found


def run(folder: Path, files: int, manifests: int, rounds: int) -> dict[str, Any]:
    lake = SqliteLake("lake", folder / "catalog.db", folder / "warehouse")
    table = build(lake, files, manifests)
    avro = AvroReader()
    warm_up(lake, folder, avro)
    times = read_whole(lake, table, avro, folder, rounds)
    per_file = assert_files_equal(table, avro)
    times |= read_changes(lake, table, avro, folder, rounds)
    unchanged = sorted(look_at_unchanged(lake, avro, folder))
    avro.close()
    many = collect_many(folder / "many", 10 * files)
    best = min(times["inspect_seconds"])
    figures = {
        "full_ratio": min(times["full_seconds"]) / best,
        "after_append_ratio": min(times["after_append_seconds"]) / best,
        "unchanged_ms": unchanged[len(unchanged) // 2] * 1_000,
        "peak_mib": many["peak_mib"],
    }
    return {
        "benchmark": "metadata",
        "data_files": files,
        "manifests": manifests,
        "columns": len(SCHEMA.fields),
        **times,
        **many,
        "per_file_numbers_equal": per_file,
        "load_average": os.getloadavg()[0],
        "figures": figures,
        "limits": LIMITS,
        "ok": all(figures[name] <= limit for name, limit in LIMITS.items()),
    }


def warm_up(lake: SqliteLake, folder: Path, avro: AvroReader) -> None:
    """Open DuckDB and import what both sides need, on a table of one file."""
    table = lake.iceberg().create_table("demo.small", SCHEMA, partition_spec=BY_REGION)
    append(table, range(1))
    table.inspect.files()
    reading = TableReader(lake, folder / "cache-warm", avro).read(
        TableName("lake", ("demo",), "small")
    )
    measure(reading, small_file_bytes=SMALL, collected_at=utc_now())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--manifests", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one line instead of an indented text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), given.files, given.manifests, given.rounds)
    print(json.dumps(result, indent=None if given.json else 2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())

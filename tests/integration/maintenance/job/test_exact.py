"""The Arrow way is exact: types, schemas that changed, properties, metrics; else Spark does it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, LongType, NestedField, UUIDType

from lakehouse_core.domain.table import TableName
from tests.integration.maintenance.job.lakes import Lake, ok

if TYPE_CHECKING:
    from spark_jobs.maintenance.report import ActionReport

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
EVERYTHING = """
  id BIGINT NOT NULL, yes BOOLEAN, small INT, price FLOAT, amount DOUBLE, d9 DECIMAL(9,2),
  d18 DECIMAL(18,4), d38 DECIMAL(38,10), day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, name STRING,
  raw BINARY, place STRUCT<lat: DOUBLE, more: STRUCT<note: STRING, n: INT>>,
  tags ARRAY<STRING>, parts ARRAY<STRUCT<a: INT, b: DOUBLE>>, facts MAP<STRING, ARRAY<INT>>
"""
ROWS = """
  SELECT id, id % 3 = 0, CAST(id AS INT), CAST(id AS FLOAT) / 3,
    CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN double('-Infinity') END,
    CAST(id / 7 AS DECIMAL(9,2)), CAST(-id / 9 AS DECIMAL(18,4)),
    CAST(id * 1234567890123 / 7 AS DECIMAL(38,10)), date_add(DATE '1969-12-30', CAST(id AS INT)),
    timestamp_micros(id * 86399999999 - 5), CAST(timestamp_micros(-id * 777) AS TIMESTAMP_NTZ),
    CASE WHEN id % 5 = 0 THEN NULL WHEN id % 5 = 1 THEN '' ELSE concat('ü—😀', id) END,
    CAST(concat('x', id) AS BINARY),
    CASE WHEN id % 2 = 0 THEN named_struct('lat', CAST(id AS DOUBLE), 'more', IF(id % 4 = 0, NULL,
      named_struct('note', concat('n', id), 'n', CAST(id AS INT)))) END,
    CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN array() ELSE array('a', NULL, concat('t', id)) END,
    array(named_struct('a', CAST(id AS INT), 'b', double('NaN')), NULL),
    CASE WHEN id % 3 = 0 THEN NULL ELSE map('k', array(1, NULL), concat('k', id), NULL) END
  FROM range({first}, {last})
"""


def filled(lake: Lake, columns: str = EVERYTHING, files: int = 3, **properties: str) -> TableName:
    table = lake.table(columns, **properties)
    for number in range(files):
        values = ROWS.format(first=number * 12, last=number * 12 + 12)
        lake.sql(f"INSERT INTO {{t}} {values}", table)
    return table


def by_arrow(report: ActionReport) -> bool:
    facts = ok(report).stages[1].facts
    return bool(facts["arrow_groups"] == facts["groups"])


def bounds(found: dict[int, bytearray]) -> dict[int, bytes]:
    """Bounds by field id; Parquet's footers have zeros with the sign that excludes nothing."""
    minus_zero = {bytes(3) + b"\x80": bytes(4), bytes(7) + b"\x80": bytes(8)}
    return {one: minus_zero.get(bytes(bound), bytes(bound)) for one, bound in found.items()}


def copy_of(lake: Lake, table: TableName) -> TableName:
    metadata = lake.open(table).java.operations().current().metadataFileLocation()
    copy = TableName("lake", table.namespace, f"{table.name}_copy")
    lake.spark.sql(
        "CALL lake.system.register_table(table => :name, metadata_file => :file)",
        args={"name": f"{copy.namespace[0]}.{copy.name}", "file": metadata},
    ).collect()
    return copy


@pytest.mark.parametrize("version", ["1", "2"])
def test_every_type_and_its_metrics_are_as_spark_writes_them(lake: Lake, version: str) -> None:
    table = filled(lake, **{"format-version": version})
    copy, rows = copy_of(lake, table), lake.rows(table)
    lake.spark.sql(
        "CALL lake.system.rewrite_data_files(table => :name, "
        "options => map('min-input-files', '2'))",
        args={"name": lake.name(copy)},
    ).collect()

    assert by_arrow(lake.compact(table))

    assert lake.rows(table) == rows
    ours, theirs = lake.files(table)[0], lake.files(copy)[0]
    for column in ("value_counts", "null_value_counts", "nan_value_counts", "sort_order_id"):
        assert ours[column] == theirs[column], column
    for column in ("lower_bounds", "upper_bounds"):
        assert bounds(ours[column]) == bounds(theirs[column]), column
    assert ours.record_count == theirs.record_count
    written = pq.ParquetFile(ours.file_path.removeprefix("file:"))
    reference = pq.ParquetFile(theirs.file_path.removeprefix("file:"))
    assert written.schema_arrow.remove_metadata().equals(
        reference.schema_arrow.remove_metadata(), check_metadata=True
    )
    # A delete by condition asks the metrics: NaN is not below anything.
    lake.sql("DELETE FROM {t} WHERE amount < 100", table)
    assert len(lake.sql("SELECT id FROM {t}", table)) == 36 - 18


def test_files_from_before_a_schema_change_are_read_as_the_table_says(lake: Lake) -> None:
    table = lake.table("id INT, old STRING, price FLOAT, d DECIMAL(9,2), gone STRING")
    lake.sql("INSERT INTO {t} VALUES (1, 'a', 0.5, 1.25, 'x'), (2, NULL, 1.5, NULL, 'y')", table)
    for change in (
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN price TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(20,2)",
        "RENAME COLUMN old TO new",
        "ADD COLUMN extra MAP<STRING, INT>",
        "DROP COLUMN gone",
        "ADD COLUMN gone INT",
        "ALTER COLUMN price FIRST",
    ):
        lake.sql(f"ALTER TABLE {{t}} {change}", table)
    lake.sql("INSERT INTO {t} VALUES (2.5, 3, 'c', 12345678901.50, map('k', 1), 9)", table)
    rows = lake.rows(table)

    assert by_arrow(lake.compact(table))
    assert lake.rows(table) == rows


@pytest.mark.parametrize(
    ("change", "properties", "reason"),
    [
        ("", {"format-version": "3"}, "row ids"),
        ("", {"write.parquet.bloom-filter-enabled.column.id": "true"}, "bloom filters"),
        ("", {"write.format.default": "orc"}, "another format"),
        ("WRITE ORDERED BY id", {}, "sorted"),
        ("ADD PARTITION FIELD day", {}, "older partition spec"),
        ("ADD COLUMN place.extra INT", {}, "has place as"),
    ],
)
def test_what_arrow_cannot_write_exactly_is_written_by_spark(
    lake: Lake, change: str, properties: dict[str, str], reason: str
) -> None:
    table = filled(lake, files=2, **properties)
    if change:
        lake.sql(f"ALTER TABLE {{t}} {change}", table)
    rows = lake.rows(table)

    report = ok(lake.compact(table))

    facts = report.stages[1].facts
    assert (facts["arrow_groups"], len(report.commits)) == (0, 1)
    assert reason in facts["by_spark_because"]
    assert lake.rows(table) == rows


def test_row_ids_of_version_3_survive(lake: Lake) -> None:
    table = lake.events(3, **{"format-version": "3"})
    ids = "SELECT id, _row_id, _last_updated_sequence_number FROM {t} ORDER BY id"
    before = lake.sql(ids, table)

    ok(lake.compact(table))

    assert lake.sql(ids, table) == before


def test_files_are_written_as_the_properties_say(lake: Lake) -> None:
    properties = {
        "write.parquet.compression-codec": "gzip",
        "write.parquet.row-group-size-bytes": "65536",
        "write.metadata.metrics.column.kind": "none",
        "write.object-storage.enabled": "true",
    }
    table = lake.table(partition="day", **properties)
    for number in range(3):
        lake.append(table, number, rows=4_000)

    assert by_arrow(lake.compact(table))

    for row in lake.files(table):
        footer = pq.read_metadata(row.file_path.removeprefix("file:"))
        assert footer.row_group(0).column(0).compression == "GZIP"
        assert footer.num_row_groups > 1
        assert row.split_offsets == [
            min(
                footer.row_group(n).column(0).dictionary_page_offset or 1 << 60,
                footer.row_group(n).column(0).data_page_offset,
            )
            for n in range(footer.num_row_groups)
        ]
        assert 3 not in row.value_counts


def test_large_output_is_split_at_the_target_size(lake: Lake) -> None:
    table = lake.table()
    for number in range(4):
        lake.append(table, number, rows=5_000)
    size = sum(row.file_size_in_bytes for row in lake.files(table))
    rows = lake.rows(table)

    assert by_arrow(lake.compact(table, options={"target-file-size-bytes": str(size // 2)}))

    assert len(lake.files(table)) == 2
    assert lake.rows(table) == rows


def test_partial_progress_commits_more_than_once_only_when_asked(lake: Lake) -> None:
    table = lake.events(2, partition="day")
    report = ok(
        lake.compact(
            table,
            options={"partial-progress.enabled": "true", "partial-progress.max-commits": "2"},
        )
    )
    assert len(report.commits) == 2


def test_uuid_and_fixed_stay_what_they_are(lake: Lake) -> None:
    catalog = lake.config.catalogs["lake"]
    name = TableName("lake", (lake.namespace,), "typed")
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "key", UUIDType(), required=False),
        NestedField(3, "code", FixedType(4), required=False),
    )
    opened = SqlCatalog(
        "lake", uri=f"sqlite:///{catalog.path}", warehouse=f"file://{catalog.warehouse}"
    )
    try:
        table = opened.create_table((lake.namespace, name.name), schema)
        for number in range(3):
            table.append(
                pa.table(
                    {"id": [number], "key": [uuid.UUID(int=number).bytes], "code": [b"abcd"]},
                    schema=table.schema().as_arrow(),
                )
            )
    finally:
        opened.engine.dispose()
    rows = lake.rows(name)

    assert by_arrow(lake.compact(name))

    assert lake.rows(name) == rows
    path = Path(lake.files(name)[0].file_path.removeprefix("file:").removeprefix("//"))
    assert pq.ParquetFile(path).schema_arrow.field("key").type == pa.uuid()

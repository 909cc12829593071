"""The estimate against pyiceberg's own planning on tables with every kind of partition."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from lakehouse_core.catalog.estimate import pruned
from lakehouse_core.sql import Inspector
from tests.unit.catalog.lakes import name_of

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from tests.unit.catalog.lakes import Lake

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "region", StringType()),
    NestedField(3, "at", TimestampType()),
)
SPECS: dict[str, tuple[PartitionField, ...]] = {
    "none": (),
    "identity": (PartitionField(2, 1000, IdentityTransform(), "region"),),
    "day": (PartitionField(3, 1000, DayTransform(), "at_day"),),
    "month": (PartitionField(3, 1000, MonthTransform(), "at_month"),),
    "year": (PartitionField(3, 1000, YearTransform(), "at_year"),),
    "bucket": (PartitionField(1, 1000, BucketTransform(8), "id_bucket"),),
    "truncate": (PartitionField(2, 1000, TruncateTransform(2), "region_cut"),),
    "truncate_number": (PartitionField(1, 1000, TruncateTransform(50), "id_cut"),),
    "void": (PartitionField(1, 1000, VoidTransform(), "nothing"),),
    "two": (
        PartitionField(2, 1000, IdentityTransform(), "region"),
        PartitionField(3, 1001, DayTransform(), "at_day"),
    ),
}
REGIONS = ("ap-1", "eu-1", "eu-2", "us", "us-west")
# SQL, and the same for pyiceberg's parser.
FILTERS = (
    ("id = 120", "id == 120"),
    ("id IN (3, 250, 251)", "id in (3, 250, 251)"),
    ("id >= 100 AND id < 180", "id >= 100 and id < 180"),
    ("id < 40 OR region = 'us'", "id < 40 or region == 'us'"),
    ("region = 'eu-1'", "region == 'eu-1'"),
    ("region LIKE 'eu%'", "region like 'eu%'"),
    ("region IN ('us', 'ap-1')", "region in ('us', 'ap-1')"),
    ("NOT (region = 'eu-1' OR id > 150)", "not (region == 'eu-1' or id > 150)"),
    ("region IS NULL", "region is null"),
    ("region IS NOT NULL AND id = 7", "region is not null and id == 7"),
    ("at >= TIMESTAMP '2026-02-10 00:00:00'", "at >= '2026-02-10T00:00:00'"),
    (
        "at >= TIMESTAMP '2026-01-31 12:00:00' AND at < TIMESTAMP '2026-02-02 00:00:00'",
        "at >= '2026-01-31T12:00:00' and at < '2026-02-02T00:00:00'",
    ),
    ("region <> 'us'", "region != 'us'"),
)


def fill(table: Table, files: int, rng: np.random.Generator, *, with_bounds: bool) -> None:
    spec = table.spec()
    kinds = {field.field_id: field.field_type for field in SCHEMA.fields}
    with (
        table.transaction() as transaction,
        transaction.update_snapshot().fast_append() as append,
    ):
        for _ in range(files):
            number = int(rng.integers(0, 300))
            region = None if rng.random() < 0.1 else str(rng.choice(REGIONS))
            moment = datetime(2026, int(rng.integers(1, 4)), int(rng.integers(1, 28)), 6)  # noqa: DTZ001 as the column
            values: dict[int, Any] = {1: number, 2: region, 3: moment}
            parts = [
                None
                if values[field.source_id] is None
                else field.transform.transform(kinds[field.source_id])(
                    _internal(values[field.source_id])
                )
                for field in spec.fields
            ]
            bounds = {
                place: to_bytes(kinds[place], value)
                for place, value in values.items()
                if value is not None and with_bounds
            }
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{table.location()}/data/{uuid.uuid4()}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(*parts),
                record_count=5,
                file_size_in_bytes=int(rng.integers(1, 1000)),
                column_sizes={},
                value_counts=dict.fromkeys(values, 5),
                null_value_counts={
                    place: 5 if value is None else 0 for place, value in values.items()
                },
                nan_value_counts={},
                lower_bounds=bounds,
                upper_bounds=bounds,
            )
            file.spec_id = spec.spec_id
            append.append_data_file(file)


def _internal(value: Any) -> Any:
    if isinstance(value, datetime):
        return int((value - datetime(1970, 1, 1)).total_seconds()) * 1_000_000  # noqa: DTZ001 as above
    return value


@pytest.mark.slow
@pytest.mark.parametrize("spec", list(SPECS))
def test_the_estimate_equals_the_plan(lake: Lake, spec: str) -> None:
    rng = np.random.default_rng(7)
    table = lake.iceberg.create_table(
        ("demo", "t"), SCHEMA, partition_spec=PartitionSpec(*SPECS[spec])
    )
    fill(table, 60, rng, with_bounds=spec != "identity")
    fill(table, 20, rng, with_bounds=False)
    reader = lake.reader()
    bounds = reader.bounds(reader.read(name_of()))
    inspector = Inspector()
    schema = {"lake.demo.t": ["id", "region", "at"]}
    for sql, expression in FILTERS:
        scans = inspector.scans(f"SELECT * FROM lake.demo.t WHERE {sql}", "trino", schema=schema)  # noqa: S608 a test's
        assert scans is not None
        found = pruned(bounds.data, scans[0].condition)
        planned = [task.file for task in table.scan(row_filter=_parsed(expression)).plan_files()]
        assert (found.files, found.bytes) == (
            len(planned),
            sum(file.file_size_in_bytes for file in planned),
        ), sql


def _parsed(expression: str) -> Any:
    from pyiceberg.expressions import StartsWith  # noqa: PLC0415 beside its parser
    from pyiceberg.expressions.parser import parse  # noqa: PLC0415 slow to import

    if " like " in expression:
        column, pattern = expression.split(" like ")
        return StartsWith(column, pattern.strip("'").rstrip("%"))
    return parse(expression)


@pytest.mark.slow
def test_files_of_an_older_partitioning_are_kept_apart(lake: Lake) -> None:
    table = lake.iceberg.create_table(("demo", "t"), SCHEMA)
    rng = np.random.default_rng(1)
    fill(table, 10, rng, with_bounds=False)
    with table.update_spec() as update:
        update.add_identity("region")
    table = lake.load(name_of())
    fill(table, 10, rng, with_bounds=False)
    reader = lake.reader()
    bounds = reader.bounds(reader.read(name_of()), columns=())
    scans = Inspector().scans("SELECT * FROM t WHERE region = 'us'", "trino")
    assert scans is not None
    planned = list(table.scan(row_filter="region == 'us'").plan_files())
    assert pruned(bounds.data, scans[0].condition).files == len(planned) > 10

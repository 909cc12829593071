"""Small lakes for tests: real SQLite catalogs, real metadata files, data files only in name.

`Lake` is written through pyiceberg. `HandMade` writes manifests, lists and metadata itself, so that
a test can have what pyiceberg cannot write: v3, delete files, deletion vectors, odd statuses.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, StructType, TimestampType

from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.measure import measure
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.catalog.sqlite import SqliteLake
from lakehouse_core.domain.table import MIB, TableMetrics, TableName
from tests.factories import NOW

if TYPE_CHECKING:
    from pyiceberg.table import Table

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "region", StringType()),
    NestedField(3, "at", TimestampType()),
)
BY_REGION = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"))
BY_REGION_AND_DAY = PartitionSpec(
    *BY_REGION.fields, PartitionField(3, 1001, DayTransform(), "at_day"), spec_id=1
)
SMALL = 32 * MIB
AVRO = AvroReader()  # opens DuckDB once for all tests
FIRST_COMMIT_MS = int(NOW.timestamp() * 1000) - 86_400_000


class Lake:
    """A catalog on SQLite below a folder, for pyiceberg and for us."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.path = root / "catalog.db"
        self.catalog = SqliteLake("lake", self.path, root / "warehouse")
        iceberg = self.catalog.iceberg()
        assert isinstance(iceberg, SqlCatalog)
        self.iceberg = iceberg
        self.iceberg.create_namespace("demo")

    def close(self) -> None:
        self.iceberg.engine.dispose()

    def create(self, name: str = "t", **options: Any) -> Table:
        return self.iceberg.create_table(("demo", name), SCHEMA, **options)

    def reader(self, cache: str = "cache") -> TableReader:
        return TableReader(self.catalog, self.root / cache, AVRO)

    def load(self, table: TableName) -> Table:
        return self.iceberg.load_table((*table.namespace, table.name))

    def execute(self, sql: str, *values: object) -> None:
        with sqlite3.connect(self.path) as connection:
            connection.execute(sql, values)
        connection.close()


def name_of(table: str = "t") -> TableName:
    return TableName("lake", ("demo",), table)


def append_files(
    table: Table, *sizes: int, partition: Record | None = None, rows: int = 10
) -> None:
    """One commit of data files that exist in the metadata only."""
    with (
        table.transaction() as transaction,
        transaction.update_snapshot().fast_append() as append,
    ):
        for size in sizes:
            append.append_data_file(_data_file(table, size, partition or Record(), rows))


def _data_file(table: Table, size: int, partition: Record, rows: int) -> DataFile:
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location()}/data/{uuid.uuid4()}.parquet",
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=rows,
        file_size_in_bytes=size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
    )
    file.spec_id = table.spec().spec_id
    return file


def measured(lake: Lake, table: TableName, reader: TableReader | None = None) -> TableMetrics:
    """Our metrics of a table."""
    reading = (reader or lake.reader()).read(table)
    return measure(reading, small_file_bytes=SMALL, collected_at=NOW)


def inspected(table: Table) -> dict[str, object]:
    """The same figures from pyiceberg's own inspection."""
    inspect = table.inspect
    data, deletes = inspect.data_files().to_pylist(), inspect.delete_files().to_pylist()
    manifests, snapshots = inspect.manifests().to_pylist(), inspect.snapshots().to_pylist()
    partitions = inspect.partitions().to_pylist() if table.current_snapshot() else []
    sizes = [row["total_data_file_size_in_bytes"] for row in partitions]
    has_bytes = bool(sizes) and sum(sizes) > 0
    equality = [row for row in deletes if row["content"] == DataFileContent.EQUALITY_DELETES]
    vectors = [row for row in deletes if row["file_format"] == "PUFFIN"]
    return {
        "data_files": len(data),
        "total_bytes": sum(row["file_size_in_bytes"] for row in data),
        "total_rows": sum(row["record_count"] for row in data),
        "small_files": sum(row["file_size_in_bytes"] < SMALL for row in data),
        "delete_files": len(deletes),
        "equality_delete_files": len(equality),
        "deletion_vectors": len(vectors),
        "position_delete_files": len(deletes) - len(equality) - len(vectors),
        "deleted_rows": sum(row["record_count"] for row in deletes),
        "manifests": len(manifests),
        "manifest_bytes": sum(row["length"] for row in manifests),
        "snapshots": len(snapshots),
        "partitions": len(partitions),
        "skew": max(sizes) / (sum(sizes) / len(sizes)) if has_bytes else None,
    }


def assert_equal_to_pyiceberg(metrics: TableMetrics, table: Table) -> None:
    expected = inspected(table)
    assert {name: getattr(metrics, name) for name in expected} == expected


@dataclass(frozen=True)
class File:
    """One manifest entry to be written."""

    size: int = 100
    rows: int = 10
    partition: tuple[object, ...] = ()
    content: int = 0
    format: str = "PARQUET"
    status: int = 1
    sort_order_id: int | None = None
    bounds: tuple[bytes, bytes] | None = None  # of column 1
    about: str | None = None  # the data file whose rows it deletes, from version 3 on


@dataclass(frozen=True)
class Manifest:
    """One manifest to be written."""

    files: tuple[File, ...]
    spec_id: int = 0
    sequence_number: int = 1

    @property
    def content(self) -> int:
        return 1 if any(file.content for file in self.files) else 0


@dataclass
class HandMade:
    """A table written without any library's opinion on what a table may be."""

    lake: Lake
    name: str = "t"
    version: int = 2
    specs: tuple[PartitionSpec, ...] = (PartitionSpec(),)
    codec: str = "deflate"
    blocks: int = 1  # Avro blocks per file
    optional_sizes: bool = False  # as no specification allows
    sort_order: dict[str, Any] | None = None
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    current: int | None = None
    table_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def table(self) -> TableName:
        return name_of(self.name)

    @property
    def folder(self) -> Path:
        return self.lake.root / "warehouse" / "demo" / self.name

    def commit(self, *manifests: Manifest, branch: str | None = None) -> Path:
        """A snapshot of exactly these manifests; gives the manifest list."""
        number = next(self._numbers)
        written = [self.write_manifest(one, number) for one in manifests]
        return self.commit_written(written, number, branch)

    def commit_written(
        self, written: list[dict[str, Any]], number: int, branch: str | None = None
    ) -> Path:
        schema = MANIFEST_LIST_FILE_SCHEMAS[self.version]  # type: ignore[index]
        path = self.folder / "metadata" / f"snap-{number}.avro"
        records = [_record(schema.fields, one) for one in written]
        self._write_avro(path, schema, "manifest_file", records)
        self.snapshots.append(
            {
                "snapshot-id": number,
                "sequence-number": number,
                "timestamp-ms": FIRST_COMMIT_MS + number * 1000,
                "manifest-list": f"file://{path}",
                "summary": {"operation": "append"},
                "schema-id": 0,
            }
        )
        if branch is None:
            self.current = number
        self.publish()
        return path

    def publish(self) -> Path:
        """Write the metadata file and make it the current one."""
        path = self.folder / "metadata" / f"{next(self._numbers):05d}-{uuid.uuid4()}.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.metadata()))
        self.lake.execute(
            "INSERT OR REPLACE INTO iceberg_tables VALUES ('lake', 'demo', ?, ?, NULL, 'TABLE')",
            self.name,
            f"file://{path}",
        )
        return path

    def metadata(self) -> dict[str, Any]:
        refs = {}
        if self.current is not None:
            refs["main"] = {"snapshot-id": self.current, "type": "branch"}
        return {
            "format-version": self.version,
            "table-uuid": self.table_uuid,
            "location": f"file://{self.folder}",
            "last-sequence-number": len(self.snapshots),
            "last-updated-ms": FIRST_COMMIT_MS + 10**6,
            "last-column-id": 3,
            "current-schema-id": 0,
            "schemas": [SCHEMA.model_dump()],
            "schema": SCHEMA.model_dump(),
            "default-spec-id": self.specs[-1].spec_id,
            "partition-specs": [spec.model_dump() for spec in self.specs],
            "partition-spec": [one.model_dump() for one in self.specs[0].fields],
            "last-partition-id": 1001,
            "default-sort-order-id": 1 if self.sort_order else 0,
            "sort-orders": [self.sort_order or {"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": self.current if self.current is not None else -1,
            "next-row-id": 0,
            "refs": refs,
            "snapshots": self.snapshots,
        }

    def write_manifest(self, manifest: Manifest, snapshot_id: int) -> dict[str, Any]:
        """Write one manifest; gives its line for a manifest list."""
        spec = self.specs[manifest.spec_id]
        partition_type = spec.partition_type(SCHEMA)
        data_file = data_file_with_partition(partition_type, self.version)  # type: ignore[arg-type]
        schema = manifest_entry_schema_with_data_file(self.version, data_file)  # type: ignore[arg-type]
        if self.optional_sizes:
            fields = [
                one.model_copy(update={"required": one.required and "size" not in one.name})
                for one in data_file.fields
            ]
            data_file = StructType(*fields)
            schema = manifest_entry_schema_with_data_file(self.version, data_file)  # type: ignore[arg-type]
        path = self.folder / "metadata" / f"{uuid.uuid4()}-m0.avro"
        entries = [self._entry(schema, data_file.fields, file) for file in manifest.files]
        self._write_avro(path, schema, "manifest_entry", entries)
        return {
            "manifest_path": f"file://{path}",
            "manifest_length": path.stat().st_size,
            "partition_spec_id": spec.spec_id,
            "content": manifest.content,
            "sequence_number": manifest.sequence_number,
            "min_sequence_number": manifest.sequence_number,
            "added_snapshot_id": snapshot_id,
            "added_files_count": len(manifest.files),
            "existing_files_count": 0,
            "deleted_files_count": 0,
            "added_rows_count": sum(file.rows for file in manifest.files),
            "existing_rows_count": 0,
            "deleted_rows_count": 0,
        }

    def _entry(self, schema: Schema, fields: Any, file: File) -> Record:
        values: dict[str, Any] = {
            "content": file.content,
            "file_path": f"file://{self.folder}/data/{uuid.uuid4()}.{file.format.lower()}",
            "file_format": file.format,
            "partition": Record(*file.partition),
            "record_count": file.rows,
            "file_size_in_bytes": file.size,
            "block_size_in_bytes": 0,
            "sort_order_id": file.sort_order_id,
            "column_sizes": {},
        }
        if file.about:
            values["referenced_data_file"] = file.about
        if file.bounds:
            values |= {"lower_bounds": {1: file.bounds[0]}, "upper_bounds": {1: file.bounds[1]}}
        entry = {"status": file.status, "snapshot_id": 1, "data_file": _record(fields, values)}
        return _record(schema.fields, entry)

    def _write_avro(self, path: Path, schema: Schema, name: str, records: list[Record]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        output = PyArrowFileIO().new_output(f"file://{path}")
        metadata = {"avro.codec": self.codec, "format-version": str(self.version)}
        with AvroOutputFile[Record](output, schema, name, metadata=metadata) as writer:
            size = -(-len(records) // self.blocks) or 1
            for start in range(0, len(records), size):
                writer.write_block(records[start : start + size])


def _record(fields: Any, values: dict[str, Any]) -> Record:
    return Record(*(values.get(one.name) for one in fields))


def manifest_paths(lake: Lake, table: TableName) -> list[Path]:
    """The manifests of the current snapshot."""
    loaded = lake.load(table)
    snapshot = loaded.current_snapshot()
    assert snapshot is not None
    found = snapshot.manifests(loaded.io)
    return [Path(one.manifest_path.removeprefix("file://")) for one in found]

"""Live entries of manifests as Arrow rows, the same columns whoever wrote them.

v1, v2 and v3 manifests differ in fields, partition specs differ in the partition struct; entries
of status DELETED tell what a commit removed and are not part of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.catalog.location import unreadable
from lakehouse_core.catalog.partition_key import partition_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse_core.catalog.avro_reader import AvroReader, AvroRows

_DELETED = 2
_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())

# Column → Arrow type; all but `partition` are named as in the manifest's `data_file`.
ENTRY_SCHEMA = pa.schema(
    [
        (
            "content",
            pa.int8(),
        ),  # 0 data, 1 position deletes and deletion vectors, 2 equality deletes
        ("file_path", pa.string()),
        ("file_format", pa.string()),
        ("partition", pa.string()),  # see partition_key
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("sort_order_id", pa.int32()),
        ("value_counts", _COUNTS),
        ("null_value_counts", _COUNTS),
        ("lower_bounds", _BOUNDS),
        ("upper_bounds", _BOUNDS),
        ("equality_ids", pa.list_(pa.int32())),
        ("referenced_data_file", pa.string()),
    ]
)

_REQUIRED = ("content", "file_format", "record_count", "file_size_in_bytes")


def read_entries(
    reader: AvroReader, locations: Sequence[str]
) -> Iterator[tuple[list[tuple[str, int]], pa.Table]]:
    """Read manifests in bulk.

    Yields:
        Manifests with their number of live entries, and these entries (`ENTRY_SCHEMA`) manifest
        after manifest in that order.

    Raises:
        MetadataUnreadableError: a manifest is missing or broken; names it.
    """
    for part in reader.read(locations):
        try:
            found = _live(part)
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            reason = f"not a manifest, {type(error).__name__}: {error}"
            raise unreadable(part.locations[0], reason) from error
        yield found


def _live(part: AvroRows) -> tuple[list[tuple[str, int]], pa.Table]:
    if not part.rows.num_rows:
        return [(location, 0) for location in part.locations], ENTRY_SCHEMA.empty_table()
    is_live = pc.not_equal(part.rows.column("status"), _DELETED).combine_chunks()
    runs = []
    start = 0
    for location, count in zip(part.locations, part.counts, strict=True):
        runs.append((location, is_live.slice(start, count).true_count))
        start += count
    rows = part.rows
    if is_live.true_count < rows.num_rows:
        rows = rows.filter(is_live)
    # Chunk by chunk: joining them first would copy all bounds of all columns.
    batches = [_entries(chunk) for chunk in rows.column("data_file").chunks]
    return runs, pa.Table.from_batches(batches, ENTRY_SCHEMA)


def _entries(files: pa.StructArray) -> pa.RecordBatch:
    columns = [_column(files, field) for field in ENTRY_SCHEMA]
    for name in _REQUIRED:
        if columns[ENTRY_SCHEMA.get_field_index(name)].null_count:
            raise ValueError(f"an entry has no {name}")
    return pa.RecordBatch.from_arrays(columns, schema=ENTRY_SCHEMA)


def _column(files: pa.StructArray, field: pa.Field) -> pa.Array:
    present = files.type.get_field_index(field.name)
    if field.name == "partition":
        return partition_keys(pc.struct_field(files, present))
    if field.name == "content" and present < 0:  # v1 knows data files only
        return pa.array([0] * len(files), field.type)
    if present < 0:
        return pa.nulls(len(files), field.type)
    return pc.struct_field(files, present).cast(field.type)

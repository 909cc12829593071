"""Live files of a snapshot as plain arrays: what metrics are computed from.

About 100 bytes per file, so a table of a million files is held in some 100 MB while it is
measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from lakehouse_core.catalog.manifest_list import Manifest

POSITION_DELETES, EQUALITY_DELETES = 1, 2  # what a file holds; 0 is data

# Columns of ENTRY_SCHEMA that every measurement needs, and the two bounds of one column.
PLAIN_COLUMNS = (
    "content",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "sort_order_id",
    "referenced_data_file",
)
BOUND_COLUMNS = ("lower_bounds", "upper_bounds")


def slim(entries: pa.Table, sort_field: int | None) -> pa.Table:
    """The narrow form of entries: plain columns, and lower and upper bound of one column."""
    chosen = {name: entries.column(name) for name in PLAIN_COLUMNS}
    chosen["file_format"] = pc.equal(pc.utf8_upper(chosen["file_format"]), "PUFFIN")
    for name in BOUND_COLUMNS:
        if sort_field is None:
            chosen[name] = pa.nulls(entries.num_rows, pa.binary())
        else:
            key = pa.scalar(sort_field, pa.int32())
            chosen[name] = pc.map_lookup(entries.column(name), key, "first")
    return pa.table(chosen)


def detached(rows: pa.Table) -> pa.Table:
    """A copy with buffers of its own: DuckDB hands out all columns of a chunk or none."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFiles:
    """One element per live file of the current snapshot, in every array."""

    content: NDArray[np.int8]
    is_puffin: NDArray[np.bool_]
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    partition: NDArray[np.int64]  # number of the partition the file belongs to
    partition_key: pa.ChunkedArray  # its values (partition_key.py)
    sort_order_id: NDArray[np.int32]  # -1 when the file does not say
    manifest: NDArray[np.int64]  # index into the manifest list
    lower: pa.ChunkedArray  # bounds of the leading sort column as stored, null where unknown
    upper: pa.ChunkedArray
    referenced: pa.ChunkedArray | None = None  # the one data file a delete file is about, if so

    @property
    def is_data(self) -> NDArray[np.bool_]:
        """Which files hold data, the others hold deletes."""
        return np.equal(self.content, 0)


def live_files(
    rows: pa.Table,
    counts: Sequence[int],
    manifests: Sequence[Manifest],
    partition_names: Mapping[int, tuple[str, ...]],
) -> LiveFiles:
    """Arrays from the narrow entries of all manifests.

    Args:
        rows: what `slim` gives, manifest after manifest.
        counts: live entries per manifest.
        manifests: the manifests, in the same order.
        partition_names: names of the partition fields per spec id.
    """
    manifest = np.repeat(np.arange(len(manifests)), counts)
    return LiveFiles(
        content=_array(rows, "content"),
        is_puffin=_array(rows, "file_format"),
        rows=_array(rows, "record_count"),
        sizes=_array(rows, "file_size_in_bytes"),
        partition=_partition_numbers(rows, manifest, manifests, partition_names),
        partition_key=rows.column("partition"),
        sort_order_id=_array(rows, "sort_order_id", missing=-1),
        manifest=manifest,
        lower=rows.column("lower_bounds"),
        upper=rows.column("upper_bounds"),
        referenced=rows.column("referenced_data_file"),
    )


def _array(rows: pa.Table, name: str, missing: int | None = None) -> Any:
    column = rows.column(name)
    if missing is not None:
        column = pc.fill_null(column, missing)
    return column.to_numpy()


def _partition_numbers(
    rows: pa.Table,
    manifest: NDArray[np.int64],
    manifests: Sequence[Manifest],
    partition_names: Mapping[int, tuple[str, ...]],
) -> NDArray[np.int64]:
    """Equal numbers for equal names and values: a spec that came back is the same partitioning."""
    encoded = rows.column("partition").combine_chunks().dictionary_encode()
    values: NDArray[np.int64] = encoded.indices.to_numpy().astype(np.int64)
    shapes: dict[tuple[str, ...], int] = {}
    shape_of = [
        shapes.setdefault(partition_names.get(one.spec_id, ()), len(shapes)) for one in manifests
    ]
    if len(shapes) <= 1:
        return values
    shape: NDArray[np.int64] = np.asarray(shape_of, np.int64)[manifest]
    return shape * len(encoded.dictionary) + values

"""Bounds of tables in memory, so that a scan is estimated without touching a disk.

    bounds = BoundsMemory(max_bytes=256 * MIB)
    bounds.keep("lake.demo.events", load_bounds(cache, reading, columns))
    bounds.get("lake.demo.events")

A table is held as of one snapshot; whoever learns of a newer one loads it again. Columns that are
not loaded rule out no file, so a table is never underestimated for lack of memory.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.catalog.estimate import FileBounds
from lakehouse_core.catalog.estimate_axis import axis_of_bounds
from lakehouse_core.catalog.estimate_partition import partition_telling

if TYPE_CHECKING:
    from collections.abc import Collection

    from lakehouse_core.catalog.cache import ManifestCache
    from lakehouse_core.catalog.estimate_axis import Axis
    from lakehouse_core.catalog.measure import Reading
    from lakehouse_core.catalog.schema import Field

MIB = 2**20
_MOST_MISSED = 1_000
_STATISTICS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True, slots=True)
class TableBounds:
    """The files of one snapshot as an estimate needs them.

    Attributes:
        snapshot_id: which one; 0 for a table without any.
        metadata_location: the metadata file it was read from.
        data: the data files.
        names: all columns of the table.
        columns: those whose bounds are loaded, in lower case.
        delete_files: files of deletes; every reading may need them.
        delete_bytes: their size.
    """

    snapshot_id: int
    metadata_location: str
    data: FileBounds
    names: tuple[str, ...]
    columns: frozenset[str]
    delete_files: int = 0
    delete_bytes: int = 0

    @property
    def schema_key(self) -> int:
        """Changes with the columns."""
        return hash(self.names)

    @property
    def nbytes(self) -> int:
        """Memory it takes, about."""
        several = (*self.data.axes.values(), *self.data.partition_axes.values())
        held = sum(axis.lower.nbytes * 3 + len(axis.keys) * 64 for axes in several for axis in axes)
        return int(held + self.data.sizes.nbytes * 2)


def load_bounds(
    cache: ManifestCache, reading: Reading, columns: Collection[str] | None = None
) -> TableBounds:
    """Read the bounds of a table's columns from its manifests, or their copy on disk.

    Args:
        cache: where the manifests' entries are.
        reading: the table as it was just read.
        columns: the columns wanted; None: all that have an order.

    Raises:
        MetadataUnreadableError: a manifest is missing or broken; names it.
    """
    metadata, manifests, files = reading.metadata, reading.manifests, reading.files
    entries, _ = cache.columns(metadata.table_uuid, manifests, _STATISTICS)
    is_data = files.is_data
    wanted = None if columns is None else {name.lower() for name in columns}
    axes: dict[str, tuple[Axis, ...]] = {}
    data = entries.filter(pa.array(is_data)).combine_chunks()
    for field in metadata.fields:
        name = field.name.lower()
        if not field.is_column or (wanted is not None and name not in wanted):
            continue
        axis = _axis(data, field)
        if axis is not None:
            axes[name] = (axis,)
    spec_of = np.array([one.spec_id for one in manifests], np.int64)
    spec_ids = spec_of[files.manifest[is_data]] if len(spec_of) else np.zeros(0, np.int64)
    told = partition_telling(metadata, files.partition_key.filter(pa.array(is_data)), spec_ids)
    return TableBounds(
        snapshot_id=metadata.current.snapshot_id if metadata.current else 0,
        metadata_location=metadata.location,
        data=FileBounds(files.sizes[is_data], files.rows[is_data], axes, told.axes, told.buckets),
        names=tuple(field.name for field in metadata.fields if field.is_column),
        columns=frozenset((*axes, *told.axes, *told.buckets)),
        delete_files=int((~is_data).sum()),
        delete_bytes=int(files.sizes[~is_data].sum()),
    )


def _axis(entries: pa.Table, field: Field) -> Axis | None:
    """The axis of one column; None when no file has statistics of it, or it has no order."""
    key = pa.scalar(field.field_id, pa.int32())
    values, nulls, lower, upper = (
        pc.map_lookup(entries.column(name), key, "first").combine_chunks() for name in _STATISTICS
    )
    if all(len(one) == one.null_count for one in (nulls, lower, upper)):
        return None
    return axis_of_bounds(field.type, lower, upper, nulls, values)


class BoundsMemory:
    """Bounds of the tables used last, within a limit; for any number of threads."""

    def __init__(self, *, max_bytes: int = 256 * MIB) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, TableBounds] = OrderedDict()
        self._missed: set[str] = set()
        self._lock = Lock()

    def get(self, table_id: str) -> TableBounds | None:
        """What is held of a table; never waits for a disk."""
        found = self._held.get(table_id)
        if found is None and len(self._missed) < _MOST_MISSED:
            self._missed.add(table_id)
        return found

    def take_missed(self) -> frozenset[str]:
        """Tables asked for in vain since the last time."""
        missed, self._missed = self._missed, set()
        return frozenset(missed)

    def keep(self, table_id: str, bounds: TableBounds) -> None:
        """Hold a table; those kept longest ago give way."""
        with self._lock:
            self._held.pop(table_id, None)
            self._held[table_id] = bounds
            total = sum(one.nbytes for one in self._held.values())
            while total > self._max_bytes and len(self._held) > 1:
                _, oldest = self._held.popitem(last=False)
                total -= oldest.nbytes

    def forget(self, table_id: str) -> None:
        """Let a table go that was dropped."""
        with self._lock:
            self._held.pop(table_id, None)

"""The partitions of a table that matter most: the largest, and those with the most files."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakehouse_core.catalog.files import POSITION_DELETES
from lakehouse_core.domain.table import PartitionMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lakehouse_core.catalog.files import LiveFiles
    from lakehouse_core.catalog.manifest_list import Manifest
    from lakehouse_core.catalog.metadata import TableMetadata

MOST = 20  # of each kind
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def largest_partitions(
    metadata: TableMetadata,
    manifests: Sequence[Manifest],
    files: LiveFiles,
    *,
    small_file_bytes: int,
) -> tuple[PartitionMetrics, ...]:
    """Figures of the largest partitions and of those with the most files, largest first.

    None when the table is not partitioned: it would say of one what is known of the whole.
    """
    if not len(files.partition) or not any(metadata.partition_names.values()):
        return ()
    _, first, number = np.unique(files.partition, return_index=True, return_inverse=True)
    is_data = files.is_data

    def added(chosen: NDArray[np.bool_], values: NDArray[np.int64] | None = None) -> Any:
        weights = None if values is None else values[chosen]
        sums = np.bincount(number[chosen], weights=weights, minlength=len(first))
        return sums.astype(np.int64)

    sizes, counts = added(is_data, files.sizes), added(is_data)
    rows, deletes = added(is_data, files.rows), added(~is_data)
    small = added(is_data & (files.sizes < small_file_bytes))
    chosen = {*np.argsort(-sizes, kind="stable")[:MOST], *np.argsort(-counts, kind="stable")[:MOST]}
    return tuple(
        PartitionMetrics(
            partition=_name(metadata, manifests, files, int(first[one])),
            data_files=int(counts[one]),
            total_bytes=int(sizes[one]),
            total_rows=int(rows[one]),
            small_files=int(small[one]),
            delete_files=int(deletes[one]),
        )
        for one in sorted(chosen, key=lambda one: (-int(sizes[one]), int(one)))
    )


def lone_small_files(files: LiveFiles, *, small_file_bytes: int) -> int:
    """How many small files are alone in their partition: nothing can be put together with them."""
    is_small = files.is_data & (files.sizes < small_file_bytes)
    _, counts = np.unique(files.partition[is_small], return_counts=True)
    return int((counts == 1).sum())


def mergeable_delete_files(files: LiveFiles) -> int:
    """How many position delete files fewer there are after a merge.

    Those of one data file become one, and so do those of one partition that are about several. A
    delete file per data file, as Spark writes them, is as few as there can be.
    """
    chosen = np.equal(files.content, POSITION_DELETES) & ~files.is_puffin
    if not chosen.any():
        return 0
    partitions = files.partition[chosen]
    if files.referenced is None:
        return len(partitions) - len(np.unique(partitions))
    about = files.referenced.filter(pa.array(chosen)).combine_chunks().dictionary_encode()
    numbers = about.indices.fill_null(-1).to_numpy()
    return len(partitions) - len(np.unique(np.stack([partitions, numbers]), axis=1).T)


def _name(
    metadata: TableMetadata, manifests: Sequence[Manifest], files: LiveFiles, file: int
) -> str:
    """`region=eu, ts_day=2026-11-16` of the partition a file is in."""
    spec = manifests[int(files.manifest[file])].spec_id
    names = metadata.partition_names.get(spec, ())
    transforms = metadata.partition_transforms.get(spec, ())
    values = json.loads(files.partition_key[file].as_py(), strict=False)
    said = [
        f"{name}={shown(value, transform)}"
        for name, value, transform in zip(names, values, transforms, strict=False)
    ]
    return ", ".join(said) or "not partitioned"


def shown(value: Any, transform: str) -> str:
    """A partition value as people say it; times are stored as numbers since 1970.

    >>> shown(20773, "day"), shown(None, "identity")
    ('2026-11-16', 'null')
    """
    if value is None:
        return "null"
    if not isinstance(value, int) or transform not in _TIMES:
        return str(value)
    try:
        return _TIMES[transform](value)
    except OverflowError:  # a time beyond the calendar: the number stays
        return str(value)


_TIMES: dict[str, Callable[[int], str]] = {
    "year": lambda value: str(1970 + value),
    "month": lambda value: f"{1970 + value // 12}-{value % 12 + 1:02}",
    "day": lambda value: f"{_EPOCH + timedelta(days=value):%Y-%m-%d}",
    "hour": lambda value: f"{_EPOCH + timedelta(hours=value):%Y-%m-%d %H:00}",
}

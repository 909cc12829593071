"""Advice on partitions: said, never carried out by itself, for it changes the table for writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.layout.space import base_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.layout.candidates import ColumnWorth
    from lakehouse_core.layout.sample import Sample

_LEAST_SHARE = 0.6  # of the scan cost that tests the column
_MOST_PARTITIONS = 1_000
_TIMES = {"date": 1, "timestamp": 86_400_000_000, "timestamptz": 86_400_000_000}
_GRAINS = (("day", 1), ("month", 30), ("year", 365))


def partition_advice(
    sample: Sample, worths: Sequence[ColumnWorth], least_bytes: int
) -> tuple[str, ...]:
    """Partition transforms that most readers would use, with partitions that are large enough."""
    if len(sample.partition_bytes) > 1:
        return ()
    found = []
    for one in worths:
        if one.cost_share < _LEAST_SHARE or one.spared_share < _LEAST_SHARE:
            continue
        said = _of_column(sample, one, least_bytes)
        if said is not None:
            found.append(said)
    return tuple(found[:2])


def _of_column(sample: Sample, worth: ColumnWorth, least_bytes: int) -> str | None:
    space = sample.spaces[worth.column]
    share = f"{worth.cost_share:.0%} of the scan cost filters on {worth.column}"
    unit = _TIMES.get(base_type(space.type))
    if unit is not None and len(space.keys) > 1:
        days = (int(space.keys[-1]) - int(space.keys[0])) / unit + 1
        for name, length in _GRAINS:
            count = max(1, round(days / length))
            if (
                count <= _MOST_PARTITIONS
                and sample.table_bytes / count >= least_bytes
                and count > 1
            ):
                return f"partition by {name}({worth.column}): {share}; {count:,} partitions"
        return None
    if 1 < space.distinct <= _MOST_PARTITIONS and sample.fraction > 0:
        smallest = int(space.counts.min()) / sample.rows.num_rows * sample.table_bytes
        if smallest >= least_bytes:
            return f"partition by {worth.column}: {share}; {space.distinct:,} partitions"
    return None

"""Rows along a Hilbert curve: neighbours on the curve are neighbours in every column.

Iceberg knows z-order only. Values become ranks first, by the quantiles of a sample, so that skewed
columns use the whole curve; NULL comes before everything.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by
from pyspark.sql import types as T  # noqa: N812 as above

from spark_jobs.maintenance.compact import batches, chosen_groups, commit_batch
from spark_jobs.maintenance.outcome import RefusedError
from spark_jobs.maintenance.spark_rewrite import rewrite_group
from spark_jobs.maintenance.table import identifier
from spark_jobs.maintenance.work import StageResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.groups import Group
    from spark_jobs.maintenance.table import LakeTable
    from spark_jobs.maintenance.work import Work

KEY = "lakehelm_curve_key"
SAMPLE_ROWS = 20_000
MOST_BITS = 10  # 1,024 ranks: more than a sample of this size can tell
PREFIX = "hilbert("


def hilbert_columns(table: LakeTable, order: str | None) -> list[str]:
    """The columns of an order `hilbert(a, b)`; none when it is another one."""
    if order is None or not order.strip().lower().startswith(PREFIX):
        return []
    same = "zorder(" + order.strip()[len(PREFIX) :]
    fields = table.parsed_order(same)
    return [str(ref.name()) for one in fields for ref in one.term().refs()]


def rewrite_along_curve(work: Work, stage: Stage, columns: Sequence[str]) -> StageResult:
    """Rewrite the groups of a plan, each ordered by the curve through the columns."""
    return work.retried(partial(_attempt, work, stage.arguments, columns))


def _attempt(work: Work, arguments: Mapping[str, Any], columns: Sequence[str]) -> StageResult:
    metadata = work.pin()
    if work.is_stage_done(metadata):
        return StageResult(is_changed=True, facts={"found_done": True})
    missing = [name for name in columns if work.table.java.schema().findField(name) is None]
    if missing:
        raise RefusedError(f"Table {work.table.name} has no column {', '.join(missing)}")
    snapshot_id = metadata.current_snapshot_id
    options = {key: str(value) for key, value in arguments.get("options", {}).items()}
    groups = [] if snapshot_id is None else chosen_groups(work, snapshot_id, arguments, options)
    if snapshot_id is None or not groups:
        return StageResult(is_changed=False, facts={"reason": "no files to order"})
    facts: dict[str, Any] = {
        "groups": len(groups),
        "input_files": sum(len(group.files) for group in groups),
        "input_bytes": sum(group.input_bytes for group in groups),
        "output_files": 0,
        "write_seconds": 0.0,
        "commit_seconds": 0.0,
    }

    def write(batch: list[Group]) -> None:
        for group in batch:
            work.stop.check()
            wanted = max(1, int(group.java.expectedOutputFiles()))
            rows = sum(one["record-count"] for one in group.files)
            share = min(1.0, SAMPLE_ROWS / max(1, rows))
            arrange = partial(along_curve, columns=columns, files=wanted, share=share)
            facts["output_files"] += rewrite_group(work, group, arrange)

    for batch in batches(groups, options):
        work.stop.check()
        commit_batch(work, snapshot_id, batch, partial(write, batch), facts)
    return StageResult(is_changed=True, facts=facts)


def along_curve(
    rows: DataFrame, columns: Sequence[str], files: int, share: float = 1.0
) -> DataFrame:
    """The rows in the order of the curve.

    Args:
        rows: what to order.
        columns: what the curve goes through.
        files: how many partitions come of it.
        share: of the rows that the ranks of values are taken from.
    """
    values = [_comparable(rows, name).alias(f"c{n}") for n, name in enumerate(columns)]
    bounds = _bounds(rows.select(*values).sample(share, seed=7))
    bits = min(MOST_BITS, 62 // len(columns))

    def key(*arrays: pa.Array) -> pa.Array:
        ranks = [_ranks(one, bound, bits) for one, bound in zip(arrays, bounds, strict=True)]
        return pa.array(hilbert_index(np.stack(ranks), bits))

    functions: Any = F  # its published types do not know this one yet
    keyed = rows.withColumn(KEY, functions.arrow_udf(key, T.LongType())(*values))
    return keyed.repartitionByRange(files, KEY).sortWithinPartitions(KEY).drop(KEY)


def _comparable(rows: DataFrame, name: str) -> Column:
    """A column as a number or a text, in the order of its values."""
    path = [name] if name in rows.columns else name.split(".")
    column = F.col(".".join(identifier(part) for part in path))
    kind = rows.select(column).schema[0].dataType
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return F.unix_micros(column.cast("timestamp")).cast("double")
    if isinstance(kind, T.DateType):
        return F.unix_date(column).cast("double")
    if isinstance(kind, T.NumericType):
        return column.cast("double")
    if isinstance(kind, T.BooleanType):
        return column.cast("int").cast("double")
    if isinstance(kind, T.StringType):
        return column
    raise RefusedError(f"Rows cannot be ordered along {name}: it is {kind.simpleString()}")


def _bounds(values: DataFrame) -> list[list[Any]]:
    """The distinct values of a sample, in order, per column."""
    sample = values.collect()
    return [
        sorted({row[n] for row in sample if row[n] is not None and row[n] == row[n]})
        for n in range(len(values.columns))
    ]


def _ranks(values: pa.Array, bounds: list[Any], bits: int) -> NDArray[np.int64]:
    """Ranks of values among those of the sample, spread over the bits; NULL is 0, NaN the last."""
    last = (1 << bits) - 1
    found = np.zeros(len(values), dtype=np.int64)
    for place, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        if value != value:  # noqa: PLR0124 NaN is not itself
            found[place] = last
            continue
        share = bisect_right(bounds, value) / max(1, len(bounds))
        found[place] = min(last, 1 + int(share * (last - 1)))
    return found


def hilbert_index(ranks: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Where points lie on the Hilbert curve.

    The transformation of axes to transposed index by Skilling ("Programming the Hilbert curve",
    2004), over whole columns at a time.

    Args:
        ranks: one row per dimension, one column per point, each below 2**bits.
        bits: of each dimension.
    """
    axes = [row.copy() for row in ranks]
    level = 1 << (bits - 1)
    while level > 1:
        mask = level - 1
        for axis in axes:
            is_set = (axis & level) != 0
            exchanged = np.where(is_set, 0, (axes[0] ^ axis) & mask)
            axes[0] ^= np.where(is_set, mask, exchanged)
            if axis is not axes[0]:
                axis ^= exchanged  # noqa: PLW2901 the array itself is changed
        level >>= 1
    for place in range(1, len(axes)):
        axes[place] ^= axes[place - 1]
    flips = np.zeros_like(axes[0])
    level = 1 << (bits - 1)
    while level > 1:
        flips ^= np.where((axes[-1] & level) != 0, level - 1, 0)
        level >>= 1
    index: NDArray[np.int64] = np.zeros_like(axes[0])
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            index = (index << 1) | (((axis ^ flips) >> bit) & 1)
    return index

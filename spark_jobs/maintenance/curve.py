"""Rows along a Hilbert curve: neighbours on the curve are neighbours in every column.

Iceberg knows z-order only. Values become ranks first, by the quantiles of a sample, so that skewed
columns use the whole curve; NULL comes before everything.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 the name everybody knows it by
from pyspark.sql import types as T  # noqa: N812 as above

from lakehouse_core.domain.curve import SAMPLE_ROWS, hilbert_bits, hilbert_index, spread
from spark_jobs.maintenance.compact import batches, chosen_groups, commit_batch
from spark_jobs.maintenance.outcome import RefusedError
from spark_jobs.maintenance.spark_rewrite import rewrite_group
from spark_jobs.maintenance.table import identifier
from spark_jobs.maintenance.work import StageResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from pyspark.sql import Column, DataFrame

    from lakehouse_core.domain.maintenance import Stage
    from spark_jobs.maintenance.groups import Group
    from spark_jobs.maintenance.table import LakeTable
    from spark_jobs.maintenance.work import Work

KEY = "lakehelm_curve_key"
_CURVE = re.compile(r"(?is)^(?P<first>.*,)?\s*hilbert\s*(?P<inner>\(.*\))\s*$")


@dataclass(frozen=True, slots=True)
class Curve:
    """An order `a, hilbert(b, c)`: by first columns, then along the curve through the others."""

    primary: tuple[str, ...]
    columns: tuple[str, ...]


def hilbert_order(table: LakeTable, order: str | None) -> Curve | None:
    """The parts of an order along a Hilbert curve; None when it is another one."""
    found = _CURVE.match(order or "")
    if found is None:
        return None
    first, inner = (found["first"] or "").rstrip().rstrip(","), f"zorder{found['inner']}"

    def names(text: str) -> tuple[str, ...]:
        fields = table.parsed_order(text)
        return tuple(str(ref.name()) for one in fields for ref in one.term().refs())

    return Curve(names(first) if first.strip() else (), names(inner))


def rewrite_along_curve(work: Work, stage: Stage, curve: Curve) -> StageResult:
    """Rewrite the groups of a plan, each ordered by the curve."""
    return work.retried(partial(_attempt, work, stage.arguments, curve))


def _attempt(work: Work, arguments: Mapping[str, Any], curve: Curve) -> StageResult:
    metadata = work.pin()
    if work.is_stage_done(metadata):
        return StageResult(is_changed=True, facts={"found_done": True})
    columns = (*curve.primary, *curve.columns)
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
            arrange = partial(along_curve, curve=curve, files=wanted, share=share)
            facts["output_files"] += rewrite_group(work, group, arrange)

    for batch in batches(groups, options):
        work.stop.check()
        commit_batch(work, snapshot_id, batch, partial(write, batch), facts)
    return StageResult(is_changed=True, facts=facts)


def along_curve(rows: DataFrame, curve: Curve, files: int, share: float = 1.0) -> DataFrame:
    """The rows in the order of the curve.

    Args:
        rows: what to order.
        curve: what they are ordered by.
        files: how many partitions come of it.
        share: of the rows that the ranks of values are taken from.
    """
    columns = curve.columns
    values = [_comparable(rows, name).alias(f"c{n}") for n, name in enumerate(columns)]
    bounds = _bounds(rows.select(*values).sample(share, seed=7))
    bits = hilbert_bits(len(columns))

    def key(*arrays: pa.Array) -> pa.Array:
        ranks = [_ranks(one, bound, bits) for one, bound in zip(arrays, bounds, strict=True)]
        return pa.array(hilbert_index(np.stack(ranks), bits))

    functions: Any = F  # its published types do not know this one yet
    keyed = rows.withColumn(KEY, functions.arrow_udf(key, T.LongType())(*values))
    order = [*(_column(rows, name).asc_nulls_first() for name in curve.primary), F.col(KEY).asc()]
    return keyed.repartitionByRange(files, *order).sortWithinPartitions(*order).drop(KEY)


def _comparable(rows: DataFrame, name: str) -> Column:
    """A column as a number or a text, in the order of its values."""
    column = _column(rows, name)
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


def _column(rows: DataFrame, name: str) -> Column:
    path = [name] if name in rows.columns else name.split(".")
    return F.col(".".join(identifier(part) for part in path))


def _bounds(values: DataFrame) -> list[list[Any]]:
    """The distinct values of a sample, in order, per column."""
    sample = values.collect()
    return [
        sorted({row[n] for row in sample if row[n] is not None and row[n] == row[n]})
        for n in range(len(values.columns))
    ]


def _ranks(values: pa.Array, bounds: list[Any], bits: int) -> NDArray[np.int64]:
    """Ranks of values among those of the sample, spread over the bits; NULL is 0, NaN the last."""
    found = np.zeros(len(values), dtype=np.int64)
    known = pc.is_valid(values).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        numbers = values.drop_null().to_numpy()
        places = np.searchsorted(np.asarray(bounds, np.float64), numbers, side="right")
        ranks = spread(places, len(bounds), bits)
        ranks[np.isnan(numbers)] = (1 << bits) - 1
    else:
        # Each distinct text of the batch is looked up once.
        texts = values.drop_null().dictionary_encode()
        distinct = [bisect_right(bounds, one) for one in texts.dictionary.to_pylist()]
        ranks = spread(np.asarray(distinct, np.int64), len(bounds), bits)[
            texts.indices.to_numpy(zero_copy_only=False)
        ]
    found[known] = ranks
    return found

"""Small tables and workloads that a layout is tried on."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakehouse_core.layout.advise import Setting
from lakehouse_core.layout.arrange import ROLL_SHARE, arrange, output_files
from lakehouse_core.layout.decision import ScanPrice
from lakehouse_core.layout.encoding import rows_until_closed
from lakehouse_core.layout.sample import Sample
from lakehouse_core.layout.simulate import file_bounds
from lakehouse_core.layout.workload import Pattern, Reader, Scan, Workload
from lakehouse_core.sql.condition import ColumnTest, Condition, Every

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.domain.layout import Layout

ROW_BYTES = 100.0
TYPES = {
    pa.int64(): "long",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.bool_(): "boolean",
}


def whole(columns: dict[str, Any], partition: Any = None) -> Sample:
    """A table as a sample of all its rows."""
    rows = pa.table(columns)
    count = rows.num_rows
    numbers = np.zeros(count, np.int64) if partition is None else np.asarray(partition)
    sizes = np.bincount(numbers) * ROW_BYTES
    return Sample(
        rows=rows,
        types={field.name: TYPES[field.type] for field in rows.schema},
        truncations={},
        partition=numbers,
        partition_bytes=sizes.astype(np.float64),
        table_rows=count,
    )


def thinned(table: Sample, share: float, seed: int = 1) -> Sample:
    """An even sample of a table."""
    rng = np.random.default_rng(seed)
    chosen = np.flatnonzero(rng.random(table.rows.num_rows) < share)
    return Sample(
        rows=table.rows.take(chosen),
        types=table.types,
        truncations=table.truncations,
        partition=table.partition[chosen],
        partition_bytes=table.partition_bytes,
        table_rows=table.table_rows,
    )


def laid_out(table: Sample, layout: Layout, target: float, conditions: Sequence[Condition]) -> Any:
    """The files of a whole table under a layout, exactly."""
    wanted = [output_files(size, target) for size in table.partition_bytes]
    most = rows_until_closed(ROLL_SHARE * target, ROW_BYTES, table.plain_row_bytes)
    arranged = arrange(layout, table.spaces, table.partition, wanted, most)
    return file_bounds(table, arranged, conditions)


def where(column: str, operator: Any, *values: Any) -> ColumnTest:
    return ColumnTest(
        column, operator, tuple(Decimal(v) if isinstance(v, int) else v for v in values)
    )


def workload(*patterns: tuple[str, int, list[Condition]]) -> Workload:
    """Templates: engine, runs, and the conditions of their texts, each as often as the others."""
    return Workload(
        table_id="lake.demo.t",
        patterns=tuple(
            Pattern(
                template_id=f"t{place}",
                template=f"template {place}",
                readers=(Reader(engine_id=engine, template_id=f"t{place}", runs=runs),),
                scans=tuple(Scan(one, 1 / len(conditions)) for one in conditions),
            )
            for place, (engine, runs, conditions) in enumerate(patterns)
        ),
        observed_days=30.0,
    )


def setting(**changes: Any) -> Setting:
    given: dict[str, Any] = {
        "prices": {"trino": ScanPrice(per_byte=Decimal("0.000001"))},
        "target_bytes": 30_000,
        "least_bytes": 15_000,
        "rewrite_usd": Decimal("0.01"),
    }
    return Setting(**given | changes)


EVERYTHING = Every()

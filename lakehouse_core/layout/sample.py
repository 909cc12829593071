"""A sample of a table's rows, as a layout is tried on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lakehouse_core.layout.encoding import plain_row_bytes
from lakehouse_core.layout.space import ORDERED_TYPES, base_type, column_space

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from lakehouse_core.catalog.estimate_partition import PartitionTelling
    from lakehouse_core.layout.space import ColumnSpace


@dataclass(frozen=True)
class Sample:
    """Rows chosen evenly from a table, in the order in which its files have them.

    Attributes:
        rows: all columns.
        types: Iceberg's types of the columns that have an order and of which files keep bounds.
        truncations: how much of a text bounds keep, by column.
        partition: the partition of each row, numbered from 0.
        partition_bytes: how large each partition is, in data files.
        table_rows: how many rows the table has.
        telling: what each partition says of its columns; None: nothing beyond the files' bounds.
    """

    rows: pa.Table
    types: Mapping[str, str]
    truncations: Mapping[str, int | None]
    partition: NDArray[np.int64]
    partition_bytes: NDArray[np.float64]
    table_rows: int
    telling: PartitionTelling | None = None

    @property
    def fraction(self) -> float:
        """The share of the table's rows that are in the sample."""
        return float(min(1.0, self.rows.num_rows / max(1, self.table_rows)))

    @property
    def table_bytes(self) -> float:
        """Bytes of all data files."""
        return float(self.partition_bytes.sum())

    @cached_property
    def spaces(self) -> Mapping[str, ColumnSpace]:
        """The columns with an order, as ranks."""
        return {
            name: column_space(self.rows.column(name), kind, self.truncations.get(name, 16))
            for name, kind in self.types.items()
            if base_type(kind) in ORDERED_TYPES and name in self.rows.column_names
        }

    @cached_property
    def plain_row_bytes(self) -> float:
        """Bytes of a row before it is packed."""
        return plain_row_bytes(self.rows)

    def part(self, number: int, parts: int) -> Sample:
        """Every so-manieth row; ranks are made anew when they are asked for."""
        chosen = np.arange(number, self.rows.num_rows, parts)
        return replace(self, rows=self.rows.take(chosen), partition=self.partition[chosen])

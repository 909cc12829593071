"""Bytes of a row under an order: files are made up, written, and compared."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakehouse_core.layout.packing.column import column_of
from lakehouse_core.layout.packing.parquet import written_bytes
from lakehouse_core.layout.packing.paths import Paths
from lakehouse_core.layout.packing.told import told_columns

if TYPE_CHECKING:
    from lakehouse_core.layout.packing.arrays import Floats, Places

_MOST_ROWS = 200_000  # of the sample; of larger ones every second row, or every third
_FILE_ROWS, _MADE_ROWS, _MOST_FILES = 80_000, 200_000, 10
_LEAST_ROWS, _THIN = 2_000, 0.5  # sample and fraction of the table that are made more of
_MOST_GAINED = 0.97  # nothing packs to nothing


class Packing:
    """Bytes of a row in Parquet under other orders than the present one.

    Args:
        rows: the sample, in its present order.
        fraction: of the table's rows that are in it.
        row_bytes: of a row as the table is now.
        file_rows: how many rows a file has; of larger ones a part is made up.
    """

    def __init__(
        self, rows: pa.Table, fraction: float, row_bytes: float, *, file_rows: float
    ) -> None:
        self._every = max(1, math.ceil(rows.num_rows / _MOST_ROWS))
        self._rows = rows.take(np.arange(0, rows.num_rows, self._every))
        count = self._rows.num_rows
        self._fraction = min(1.0, fraction / self._every)
        is_whole = self._fraction > _THIN or count < _LEAST_ROWS
        self._file_rows = int(max(1, min(file_rows, _FILE_ROWS, count / (self._fraction or 1))))
        columns = [None if is_whole else column_of(one) for one in self._rows.columns]
        self._columns = [one for one in columns if one is not None]
        # Values that cannot be made up are written as the sample has them.
        self._opaque = [number for number, one in enumerate(columns) if one is None]
        self._now = self._bytes(np.arange(count))
        # Codecs and small files make a table larger than what is written here: then shares count.
        # It is smaller where more rows share a dictionary: then bytes do.
        self._row_bytes = min(row_bytes, self._now) or self._now

    def share(self, order: Places) -> float:
        """Bytes of a row when the whole table is in this order, over what they are now.

        Args:
            order: the sample's rows in the order of a layout.
        """
        if not self._row_bytes:
            return 1.0
        gained = self._now - self._bytes(order[order % self._every == 0] // self._every)
        return max(1 - gained / self._row_bytes, 1 - _MOST_GAINED)

    def _bytes(self, order: Places) -> float:
        if not len(order):
            return 0.0
        total = written_bytes(self._rows.select(self._opaque).take(order)) / len(order)
        if self._columns:
            for number, path in enumerate(self._paths.under(order)):
                total += self._by_lot[number] if path is None else self._made(number, path)
        return total

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self._columns, told_columns(self._columns), self._at)

    @cached_property
    def _by_lot(self) -> list[float]:
        """Bytes of a row by column, when the order has nothing to do with it."""
        lots = np.random.default_rng(0).random(len(self._at))
        return [self._made(number, lots) for number in range(len(self._columns))]

    def _made(self, number: int, path: Floats) -> float:
        made = pa.table({"made": self._columns[number].axis.values(path)})
        return written_bytes(made, self._file_rows) / len(path)

    @cached_property
    def _at(self) -> Floats:
        """Where the made rows stand among the sampled ones, file by file.

        1.5 is halfway from the second sampled row to the third.
        """
        files = max(1, min(_MADE_ROWS // self._file_rows, _MOST_FILES))
        last = self._rows.num_rows - 1.0
        span = min(self._file_rows * self._fraction, last)
        starts = (np.arange(files) + 0.5) / files * (last - span)
        # By lot, not evenly: gaps that are all alike would pack too well.
        lots = np.random.default_rng(3).random((files, self._file_rows))
        at: Floats = (starts[:, None] + np.sort(lots, axis=1) * span).ravel()
        return at

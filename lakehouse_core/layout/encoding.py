"""How large rows are under a layout: neighbours that are alike pack better.

The sample is written as Parquet in its present order and in the new one. A sample is thinner than
the table, so that its neighbours are less alike; what each halving of the sample costs is taken to
be gained by each doubling on the way to the whole table.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ROWS = 200_000
PAGE_ROWS, CHECKED_ROWS = 20_000, 1_000  # Iceberg ends a page, and looks at a file's size
_LEAST_SHARE = 0.35  # of what the sample takes: beyond that extrapolating is guessing
_LEAST_ROWS = 2_000
_LONG_DIGITS = 18


def bytes_per_row(rows: pa.Table, fraction: float, order: NDArray[np.int64] | None = None) -> float:
    """Bytes of a row in Parquet when the whole table is in this order.

    Args:
        rows: the sample.
        fraction: of the table's rows that are in it.
        order: rows in the order of a layout; None: as they are.
    """
    places = np.arange(rows.num_rows) if order is None else order
    every = max(1, math.ceil(len(places) / MOST_ROWS))
    places = places[::every]
    share = fraction / every
    full = _encoded(rows, places)
    if share >= 1 or len(places) < 4 * _LEAST_ROWS:
        return full
    thin = _encoded(rows, places[::4])
    per_doubling = max(0.0, (thin - full) / 2)
    return max(full - per_doubling * math.log2(1 / share), full * _LEAST_SHARE)


def _encoded(rows: pa.Table, places: NDArray[np.int64]) -> float:
    if not len(places):
        return 0.0
    sink = pa.BufferOutputStream()
    pq.write_table(rows.take(places), sink, compression="zstd", write_statistics=False)
    return float(sink.getvalue().size / len(places))


def plain_row_bytes(rows: pa.Table) -> float:
    """Bytes of a row before a page is packed: fixed widths, texts with their length."""
    if not rows.num_rows:
        return 1.0
    total = 0.0
    for column in rows.columns:
        kind = column.type
        known = rows.num_rows - column.null_count
        if pa.types.is_decimal(kind):
            total += 8.0 * known if kind.precision <= _LONG_DIGITS else 16.0 * known
        elif pa.types.is_primitive(kind):
            total += kind.bit_width / 8 * known
        else:
            total += column.nbytes
    return float(max(1.0, total / rows.num_rows))


def rows_until_closed(most_bytes: float, packed: float, plain: float) -> int:
    """After how many rows Iceberg closes a file that would become larger than asked for.

    The page it is writing counts as it is, the pages before as they are packed: small files are
    closed long before they have the size that was asked for.

    Args:
        most_bytes: the size.
        packed: bytes of a row in a finished page.
        plain: bytes of a row in the page that is written.
    """
    page = PAGE_ROWS * (
        packed if packed > 0 else plain
    )  # of rows that pack to nothing none are known
    pages = max(0, math.ceil((most_bytes - PAGE_ROWS * plain) / page))
    left = max((most_bytes - pages * page) / plain, 0.0)
    return max(1, math.ceil((pages * PAGE_ROWS + left) / CHECKED_ROWS)) * CHECKED_ROWS

"""How rows become pages and files: how large they are before they are packed, when a file ends.

How well they pack is told in `packing`.
"""

from __future__ import annotations

import math

import pyarrow as pa

PAGE_ROWS, CHECKED_ROWS = 20_000, 1_000  # Iceberg ends a page, and looks at a file's size
_LONG_DIGITS = 18  # of a decimal in 8 bytes


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

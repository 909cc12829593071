"""What Parquet takes, written as Spark with Iceberg writes it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_core.layout.encoding import PAGE_ROWS
from lakehouse_core.layout.packing.read import is_text

_DICTIONARY_BYTES = 2 << 20  # Iceberg's write.parquet.dict-size-bytes
_ZSTD_LEVEL = 3  # Spark's
_NESTED_BITS = 64


def written_bytes(rows: pa.Table, file_rows: int | None = None) -> float:
    """Bytes of the rows as Parquet.

    Args:
        rows: what is written.
        file_rows: how many share a dictionary, that is go to one file; None: all of them.
    """
    if not rows.num_columns:
        return 0.0
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        row_group_size=file_rows or max(1, rows.num_rows),
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        use_dictionary=[name for name in rows.column_names if has_dictionary(rows[name])],
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        store_decimal_as_integer=True,
        write_statistics=False,
    )
    return float(sink.getvalue().size)


def has_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether Spark keeps it: when it makes the first page smaller (`FallbackValuesWriter`)."""
    page = column.slice(0, PAGE_ROWS).drop_null().combine_chunks()
    if pa.types.is_boolean(page.type):
        return False
    if pa.types.is_nested(page.type) or not len(page):
        return True
    encoded = page if pa.types.is_dictionary(page.type) else page.dictionary_encode()
    places = encoded.indices.to_numpy()
    bits = max(1, (len(encoded.dictionary) - 1).bit_length())
    runs = 1 + np.count_nonzero(places[1:] != places[:-1])
    # Places are packed bit by bit, or as runs: a length of a byte, then the place.
    packed = min(len(places) * bits / 8, float(runs) * (1 + math.ceil(bits / 8)))
    return bool(packed + _plain_bytes(encoded.dictionary) < _plain_bytes(page))


def _plain_bytes(values: pa.Array) -> float:
    """Without a dictionary: fixed widths, texts with four bytes of length."""
    if is_text(values.type):
        return 4.0 * len(values) + float(np.sum(pc.binary_length(values).to_numpy()))
    bits: int = values.type.bit_width if pa.types.is_primitive(values.type) else _NESTED_BITS
    return bits / 8 * len(values)

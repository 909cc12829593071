"""Partition values of files as text that is equal exactly when the values are.

`["r1",19000]` stands for region r1 on day 19000, whoever wrote it: some writers mark days as dates
and others leave them numbers, some widen int to long when the column was.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

_NO_VALUES = "[]"


def partition_keys(partition: pa.Array) -> pa.Array:
    """One JSON array of values per file.

    Args:
        partition: the `partition` struct of the manifest entries; DuckDB has no empty structs and
            shows an unpartitioned table's as a column of nulls.
    """
    if not pa.types.is_struct(partition.type):
        return pa.array([_NO_VALUES] * len(partition), pa.string())
    values = [_text(child) for child in partition.flatten()]
    inner = pc.binary_join_element_wise(*values, ",")
    return pc.binary_join_element_wise(pa.scalar("["), inner, pa.scalar("]"), "")


def _text(values: pa.Array) -> pa.Array:
    return pc.fill_null(_not_null_text(values), "null")


def _not_null_text(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_date32(kind):
        return values.cast(pa.int32()).cast(pa.string())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_string(kind):
        return _quoted(values)
    if pa.types.is_binary(kind):
        texts = [None if one is None else json.dumps(one.hex()) for one in values.to_pylist()]
        return pa.array(texts, pa.string())
    return values.cast(pa.string())


def _quoted(values: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise(pa.scalar('"'), escaped, pa.scalar('"'), "")

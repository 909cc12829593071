"""A batch before it is written: checked against the table, cast to its types, one row per key.

Both sides of the wire prepare batches here, so a batch that was spooled cannot turn out to be wrong
when it is replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.store.schema import schema_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.store.tables import StoreTable

ROW_NUMBER = "_row"

# Rows merged in one transaction: bounds memory, and how long a page waits behind a writer. Whole
# row groups of DuckDB go straight into the file; smaller pieces would pass through its log first.
SLICE_ROWS = 2 * 122_880


def conform(table: str, rows: pa.Table) -> pa.Table:
    """The rows with exactly the table's columns and types.

    Raises:
        StoreError: unknown table or column, missing or null key, missing value of a NOT NULL
            column, a value that does not fit; names what is wrong.
    """
    schema = schema_of(table)
    rows = _with_blanks(spec_of(table), rows)
    _check_columns(spec_of(table), schema, rows)
    arrays = [_column(table, field, rows) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def prepare(table: str, rows: pa.Table) -> pa.Table:
    """The batch as the merge wants it: the table's columns and `_row`, each key once.

    Of rows with one key the highest revision wins, and of those the last. A table that folds
    takes all of them.

    Raises:
        StoreError: as `conform`; nothing was written.
    """
    spec = spec_of(table)
    batch = conform(table, rows)
    if spec.fold is None:
        batch = _one_per_key(spec, batch)
    return batch.append_column(ROW_NUMBER, pa.array(range(batch.num_rows), pa.int64()))


def slices(batch: pa.Table) -> Iterator[pa.Table]:
    """A prepared batch in pieces of at most `SLICE_ROWS` rows."""
    for start in range(0, batch.num_rows, SLICE_ROWS):
        yield batch.slice(start, SLICE_ROWS)


def _with_blanks(spec: StoreTable, rows: pa.Table) -> pa.Table:
    """The rows with empty texts where they have no value of a column that allows it."""
    for name in spec.blank:
        at = rows.schema.get_field_index(name)
        if at < 0:
            empty = pa.repeat(pa.scalar("", pa.string()), rows.num_rows)
            rows = rows.append_column(name, empty)
        elif rows.column(at).null_count:
            rows = rows.set_column(at, name, pc.fill_null(rows.column(at).cast(pa.string()), ""))
    return rows


def _check_columns(spec: StoreTable, schema: pa.Schema, rows: pa.Table) -> None:
    names = rows.column_names
    unknown = sorted(set(names).difference(schema.names))
    if unknown:
        raise StoreError(f"Table {spec.name} has no column {', '.join(unknown)}")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise StoreError(f"A batch for {spec.name} has column {', '.join(doubled)} more than once")
    required = [field.name for field in schema if not field.nullable]
    missing = [name for name in (*spec.key, *required) if name not in names]
    if missing:
        wanted = ", ".join(dict.fromkeys(missing))
        raise StoreError(f"A batch for {spec.name} lacks column {wanted}: every row needs it")


def _column(table: str, field: pa.Field, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    if field.name not in rows.column_names:
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(field.name)
    if not field.nullable and column.null_count:
        raise StoreError(
            f"Column {table}.{field.name} must have a value in every row; "
            f"{column.null_count} of {rows.num_rows} rows have none"
        )
    if pa.types.is_timestamp(field.type) and getattr(column.type, "tz", "") is None:
        raise StoreError(f"Column {table}.{field.name} has times without a zone; store UTC times")
    try:
        # Engines that report nanoseconds are cut to the microseconds of the store.
        options = pc.CastOptions(target_type=field.type, allow_time_truncate=True)
        return column.cast(options=options)
    except pa.ArrowException as error:
        raise StoreError(
            f"Column {table}.{field.name} is {field.type}; a batch with {column.type} "
            f"does not fit: {error}"
        ) from error


def _one_per_key(spec: StoreTable, batch: pa.Table) -> pa.Table:
    keys = list(spec.key)
    if batch.select(keys).group_by(keys).aggregate([]).num_rows == batch.num_rows:
        return batch
    wanted = [*keys, spec.revision] if spec.revision else keys
    order = batch.select(wanted).append_column(
        ROW_NUMBER, pa.array(range(batch.num_rows), pa.int64())
    )
    if spec.revision:
        order = order.sort_by([(spec.revision, "ascending"), (ROW_NUMBER, "ascending")])
    # One thread: "last" depends on the order of the rows.
    winners = order.group_by(keys, use_threads=False).aggregate([(ROW_NUMBER, "last")])
    return batch.take(winners.column(f"{ROW_NUMBER}_last").combine_chunks().sort())

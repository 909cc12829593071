"""Rows of Trino's client as Arrow."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pyarrow as pa

from lakehouse_core.engines.trino.arrow import to_batch


def test_values_keep_their_types() -> None:
    east = timezone(timedelta(hours=9))
    columns = [
        ("n", "bigint"),
        ("price", "decimal(12,2)"),
        ("day", "date"),
        ("at", "timestamp(6) with time zone"),
        ("name", "varchar(10)"),
        ("raw", "varbinary"),
        ("ok", "boolean"),
    ]
    at = datetime(2026, 1, 1, 9, 0, 0, 7, tzinfo=east)
    batch = to_batch(
        columns,
        [[1, Decimal("1.50"), date(2026, 1, 1), at, "Zoë", b"\xff", True], [None] * 7],
    )

    assert batch.schema.types == [
        pa.int64(),
        pa.decimal128(12, 2),
        pa.date32(),
        pa.timestamp("us", tz="UTC"),
        pa.string(),
        pa.binary(),
        pa.bool_(),
    ]
    assert batch.to_pylist()[0]["at"] == datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=UTC)
    assert set(batch.to_pylist()[1].values()) == {None}


def test_nested_values_keep_their_shape() -> None:
    columns = [
        ("tags", "array(varchar)"),
        ("counts", "map(varchar, bigint)"),
        ("who", "row(name varchar, ids array(bigint))"),
        ("id", "uuid"),
    ]
    uuid = UUID(int=7)

    (row,) = to_batch(columns, [[["a", None], {"x": 1}, ("ana", [1, 2]), uuid]]).to_pylist()

    assert row == {
        "tags": ["a", None],
        "counts": [("x", 1)],
        "who": {"name": "ana", "ids": [1, 2]},
        "id": str(uuid),
    }


def test_columns_of_one_name_and_no_rows_are_fine() -> None:
    batch = to_batch([("x", "bigint"), ("x", "varchar")], [])

    assert (batch.num_rows, batch.schema.names) == (0, ["x", "x"])

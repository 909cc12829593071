"""Rows as DataRow messages: text and binary, nulls, and types PostgreSQL has no word for."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.gateway.postgres import types as t
from lakehouse_core.gateway.postgres.messages import Reader
from lakehouse_core.gateway.postgres.numeric import numeric_bytes, numeric_value

MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123456)  # noqa: DTZ001 a plain timestamp


def read(data: memoryview) -> list[list[bytes | None]]:
    """The values of DataRow messages, read as a client reads them."""
    raw, rows = bytes(data), []
    while raw:
        assert raw[:1] == b"D"
        length = struct.unpack("!i", raw[1:5])[0]
        reader, raw = Reader(raw[5 : 1 + length]), raw[1 + length :]
        row: list[bytes | None] = []
        for _ in range(reader.short()):
            size = reader.long()
            row.append(None if size < 0 else reader.take(size))
        rows.append(row)
    return rows


def encoded(values: pa.Array, *, is_binary: bool = False) -> list[bytes | None]:
    batch = pa.record_batch([values], names=["v"])
    column = t.column_of(batch.schema[0], is_binary=is_binary)
    return [row[0] for row in read(t.encode_rows(batch, [column]))]


@pytest.mark.parametrize(
    ("values", "oid", "expected"),
    [
        (pa.array([True, False, None]), t.BOOL, [b"t", b"f", None]),
        (pa.array([1, -2, None], pa.int16()), t.INT2, [b"1", b"-2", None]),
        (pa.array([2**40]), t.INT8, [b"1099511627776"]),
        (pa.array([2**64 - 1], pa.uint64()), t.NUMERIC, [b"18446744073709551615"]),
        (pa.array([0.1, float("nan"), float("-inf")]), t.FLOAT8, [b"0.1", b"NaN", b"-Infinity"]),
        (pa.array([Decimal("-0.010")], pa.decimal128(9, 3)), t.NUMERIC, [b"-0.010"]),
        (pa.array(["", "ä", None]), t.VARCHAR, [b"", "ä".encode(), None]),
        (pa.array([b"\x00\xff"]), t.BYTEA, [b"\\x00ff"]),
        (pa.array([date(2024, 2, 29)]), t.DATE, [b"2024-02-29"]),
        (pa.array([time(1, 2, 3)], pa.time64("us")), t.TIME, [b"01:02:03.000000"]),
        (pa.array([MOMENT], pa.timestamp("us")), t.TIMESTAMP, [b"2024-02-29 23:59:59.123456"]),
        (
            pa.array([MOMENT.replace(tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin")),
            t.TIMESTAMPTZ,
            [b"2024-02-29 23:59:59.123456+00"],
        ),
        (pa.array([[1, None]]), t.JSON, [b"[1, null]"]),
        (pa.array([{"a": date(2024, 1, 1)}]), t.JSON, [b'{"a": "2024-01-01"}']),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), t.JSON, [b'{"k": 1}']),
        (pa.array(["x", "x"]).dictionary_encode(), t.VARCHAR, [b"x", b"x"]),
        (pa.nulls(2), t.TEXT, [None, None]),
    ],
)
def test_a_value_is_written_as_postgresql_writes_it(
    values: pa.Array, oid: int, expected: list[bytes | None]
) -> None:
    assert t.column_of(pa.field("v", values.type)).oid == oid
    assert encoded(values) == expected


@pytest.mark.parametrize(
    ("values", "shape", "expected"),
    [
        (pa.array([True, None]), "!b", [1, None]),
        (pa.array([-5, None], pa.int32()), "!i", [-5, None]),
        (pa.array([1.5]), "!d", [1.5]),
        (pa.array([date(2000, 1, 2), date(1999, 12, 31)]), "!i", [1, -1]),
        (pa.array([datetime(2000, 1, 1, 0, 0, 1)], pa.timestamp("us")), "!q", [1_000_000]),  # noqa: DTZ001
        (pa.array([time(0, 0, 1)], pa.time64("us")), "!q", [1_000_000]),
    ],
)
def test_a_number_is_sent_in_network_order(
    values: pa.Array, shape: str, expected: list[Any]
) -> None:
    found = encoded(values, is_binary=True)
    assert [None if one is None else struct.unpack(shape, one)[0] for one in found] == expected


def test_columns_of_different_formats_stand_side_by_side() -> None:
    batch = pa.record_batch({"a": [1, None], "b": ["x", ""], "c": [None, 2.5]})
    columns = [t.column_of(batch.schema[index], is_binary=index == 2) for index in range(3)]
    assert read(t.encode_rows(batch, columns)) == [
        [b"1", b"x", None],
        [None, b"", struct.pack("!d", 2.5)],
    ]


def test_a_part_of_a_batch_is_that_part() -> None:
    batch = pa.record_batch({"a": list(range(10))}).slice(3, 2)
    assert read(t.encode_rows(batch, [t.column_of(batch.schema[0])])) == [[b"3"], [b"4"]]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
def test_an_exact_number_survives_its_binary_form(value: Decimal) -> None:
    if abs(value.adjusted()) > 100:
        value = value.scaleb(-value.adjusted())
    assert numeric_value(numeric_bytes(value)) == value


@given(st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8"))), max_size=20))
def test_any_text_survives(values: list[str | None]) -> None:
    found = encoded(pa.array(values, pa.string()))
    assert [None if one is None else one.decode() for one in found] == values


def test_a_decimal_tells_its_precision_and_scale() -> None:
    assert t.column_of(pa.field("d", pa.decimal128(12, 2))).modifier == (12 << 16 | 2) + 4
    assert t.column_of(pa.field("n", pa.int64())).modifier == -1

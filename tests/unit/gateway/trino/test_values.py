"""Arrow columns as Trino's clients get them: types and values."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.gateway.trino.types import columns_of, type_of
from lakehouse_core.gateway.trino.values import encode_rows

AT = datetime(2026, 3, 29, 2, 30, 0, 1)  # noqa: DTZ001 a local time on purpose
MOMENT = datetime(2026, 11, 1, 23, 59, 59, 999_999, tzinfo=UTC)


def encoded(value: Any, kind: pa.DataType, *, parametric: bool = True) -> Any:
    batch = pa.record_batch([pa.array([value, None], kind)], names=["x"])
    rows = json.loads(encode_rows(batch, parametric=parametric))
    assert rows[1] == [None]
    return rows[0][0]


@pytest.mark.parametrize(
    ("kind", "name", "value", "expected"),
    [
        (pa.bool_(), "boolean", True, True),
        (pa.int8(), "tinyint", -128, -128),
        (pa.int64(), "bigint", -(2**63), -(2**63)),
        (pa.uint64(), "decimal(20,0)", 2**64 - 1, str(2**64 - 1)),
        (pa.float32(), "real", 0.1, 0.1),
        (pa.float64(), "double", -1.5e300, -1.5e300),
        (pa.float64(), "double", math.inf, "Infinity"),
        (pa.decimal128(38, 2), "decimal(38,2)", Decimal("-0.01"), "-0.01"),
        (pa.string(), "varchar", 'a"\\\n🌊', 'a"\\\n🌊'),
        (pa.binary(), "varbinary", b"\xff\x00", "/wA="),
        (pa.date32(), "date", date(1969, 12, 31), "1969-12-31"),
        (pa.time64("us"), "time(6)", time(1, 2, 3, 4), "01:02:03.000004"),
        (pa.timestamp("us"), "timestamp(6)", AT, "2026-03-29 02:30:00.000001"),
        (pa.timestamp("ms"), "timestamp(3)", AT.replace(microsecond=0), "2026-03-29 02:30:00.000"),
        (
            pa.timestamp("us", tz="Europe/Berlin"),
            "timestamp(6) with time zone",
            MOMENT,
            "2026-11-01 23:59:59.999999 UTC",
        ),
        (pa.duration("us"), "interval day to second", timedelta(1, 2.5), "1 00:00:02.500"),
        (pa.list_(pa.int32()), "array(integer)", [1, None], [1, None]),
        (pa.map_(pa.string(), pa.int64()), "map(varchar,bigint)", [("a", 1)], {"a": 1}),
        (pa.map_(pa.int64(), pa.bool_()), "map(bigint,boolean)", [(7, None)], {"7": None}),
        (
            pa.struct([("a", pa.int32()), ("B c", pa.list_(pa.string()))]),
            'row(a integer, "B c" array(varchar))',
            {"a": 1, "B c": ["x"]},
            [1, ["x"]],
        ),
        (pa.dictionary(pa.int8(), pa.string()), "varchar", "x", "x"),
        (pa.null(), "unknown", None, None),
    ],
)  # fmt: skip
def test_each_type_has_trinos_name_and_form(
    kind: pa.DataType, name: str, value: Any, expected: Any
) -> None:
    assert type_of(kind).text == name
    assert encoded(value, kind) == expected


def test_signatures_are_those_that_clients_read() -> None:
    schema = pa.schema(
        [("d", pa.decimal128(12, 2)), ("s", pa.string()), ("r", pa.struct([("a", pa.int64())]))]
    )
    decimal, text, row = (column["typeSignature"] for column in columns_of(schema))
    assert decimal == {
        "rawType": "decimal",
        "arguments": [{"kind": "LONG", "value": 12}, {"kind": "LONG", "value": 2}],
    }
    assert text["arguments"] == [{"kind": "LONG", "value": 2_147_483_647}]
    assert row["arguments"][0]["value"]["fieldName"] == {"name": "a"}


def test_old_clients_get_milliseconds_rounded_as_trino_does() -> None:
    assert type_of(pa.timestamp("us"), parametric=False).text == "timestamp"
    at = AT.replace(microsecond=999_500)
    assert encoded(at, pa.timestamp("us"), parametric=False) == "2026-03-29 02:30:01.000"
    assert encoded(time(23, 59, 59, 999_900), pa.time64("us"), parametric=False) == "00:00:00.000"


SCALARS = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))),
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.text())),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans())),
    st.tuples(
        st.just(pa.float64()),
        st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    ),
)


@given(SCALARS, st.integers(0, 3))
def test_values_survive_also_in_slices_and_lists(
    column: tuple[pa.DataType, list[Any]], skipped: int
) -> None:
    kind, values = column
    plain = pa.array(values, kind).slice(skipped)
    nested = pa.array([[value] for value in values], pa.list_(kind)).slice(skipped)
    rows = json.loads(encode_rows(pa.record_batch([plain, nested], names=["a", "b"])))
    assert rows == [[value, [value]] for value in values[skipped:]]

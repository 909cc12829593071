"""Partition keys are equal exactly when the values are."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.catalog.partition_key import partition_keys


def keys(values: list[Any], kind: pa.DataType) -> list[str]:
    rows = pa.array([{"p": value} for value in values], pa.struct([("p", kind)]))
    return list(partition_keys(rows).to_pylist())


texts = st.text() | st.sampled_from(["null", "", '"', "\\", ",", "]", '","', "1"])


@given(st.lists(st.tuples(st.none() | texts, st.none() | texts, st.none() | st.integers(-5, 5))))
def test_keys_are_equal_exactly_when_the_values_are(values: list[tuple[Any, ...]]) -> None:
    kind = pa.struct([("a", pa.string()), ("b", pa.string()), ("c", pa.int32())])
    rows = pa.array([dict(zip("abc", one, strict=True)) for one in values], kind)
    found = partition_keys(rows).to_pylist()
    assert len(set(found)) == len(set(values))
    assert len(set(zip(found, values, strict=True))) == len(set(values))


def test_a_plain_key_is_json() -> None:
    assert json.loads(keys(['r"1'], pa.string())[0]) == ['r"1']


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (keys([19_000], pa.int32()), keys([dt.date(2022, 1, 8)], pa.date32())),
        (keys([7], pa.int32()), keys([7], pa.int64())),
        (keys([5], pa.int64()), keys([dt.datetime.fromtimestamp(0, dt.UTC)], pa.timestamp("us"))),
    ],
    ids=["day as number and as date", "widened column", "different numbers"],
)
def test_writers_may_differ_in_type_but_not_in_value(one: list[str], other: list[str]) -> None:
    assert (one == other) == ("5" not in one[0])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.binary(), [b"", b"\x00", b"\xff", None]),
        (pa.float64(), [0.1, 0.25, -1e300, None]),
        (pa.decimal128(9, 2), [Decimal("12.30"), Decimal("12.34"), None]),
        (pa.time64("us"), [dt.time(1), dt.time(1, 0, 0, 1), None]),
        (pa.timestamp("us", "UTC"), [dt.datetime.fromtimestamp(n, dt.UTC) for n in (0, 1)]),
    ],
    ids=str,
)
def test_every_type_of_partition_value_tells_its_values_apart(
    kind: pa.DataType, values: list[Any]
) -> None:
    found = keys(values, kind)
    assert len(set(found)) == len(values)
    assert found == keys(values, kind)


def test_an_unpartitioned_table_has_one_key() -> None:
    # DuckDB has no empty structs and gives nulls of some type instead.
    assert set(partition_keys(pa.nulls(3, pa.int32())).to_pylist()) == {"[]"}

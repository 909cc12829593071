"""Sort overlap against counting pairs, and ranks of bounds against the order of the values."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    UUIDType,
)

from lakehouse_core.catalog.bounds import ranks
from lakehouse_core.catalog.entries import ENTRY_SCHEMA
from lakehouse_core.catalog.files import live_files, slim
from lakehouse_core.catalog.manifest_list import Manifest
from lakehouse_core.catalog.overlap import sort_overlap

if TYPE_CHECKING:
    from lakehouse_core.catalog.files import LiveFiles

Range = tuple[int, int]


def files_of(ranges: list[tuple[str, Range | None]]) -> LiveFiles:
    """Data files, each in a partition and with a range of column 1, or none."""
    rows = []
    for partition, bounds in ranges:
        low, high = ([], []) if bounds is None else ([(1, long(one))] for one in bounds)
        rows.append(
            {
                "content": 0,
                "file_path": "x",
                "file_format": "PARQUET",
                "partition": partition,
                "record_count": 1,
                "file_size_in_bytes": 1,
                "lower_bounds": low,
                "upper_bounds": high,
            }
        )
    entries = pa.Table.from_pylist(rows, schema=ENTRY_SCHEMA)
    manifest = Manifest(path="m", length=1, spec_id=0)
    return live_files(slim(entries, 1), [len(rows)], [manifest], {})


def long(value: int) -> bytes:
    return to_bytes(LongType(), value)


def counted(ranges: list[tuple[str, Range]]) -> float:
    """The definition, pair by pair."""
    pairs = [
        (one, other)
        for index, (partition, one) in enumerate(ranges)
        for number, (home, other) in enumerate(ranges)
        if index != number and partition == home
    ]
    met = [one for one, other in pairs if one[0] <= other[1] and other[0] <= one[1]]
    return len(met) / len(pairs) if pairs else 0.0


bounds = st.tuples(st.integers(-5, 20), st.integers(0, 10)).map(lambda it: (it[0], it[0] + it[1]))


@given(st.lists(st.tuples(st.sampled_from("ab"), bounds), min_size=1, max_size=12))
def test_overlap_is_the_share_of_pairs_in_a_partition_that_meet(
    ranges: list[tuple[str, Range]],
) -> None:
    assert sort_overlap(files_of(list(ranges)), "long") == pytest.approx(counted(ranges))


def test_a_well_sorted_table_has_no_overlap_and_a_shuffled_one_is_all_overlap() -> None:
    apart = [("a", (10 * n, 10 * n + 9)) for n in range(50)]
    alike = [("a", (0, 500)) for _ in range(50)]
    assert sort_overlap(files_of(apart), "long") == 0.0
    assert sort_overlap(files_of(alike), "long") == 1.0


def test_files_without_bounds_are_left_out() -> None:
    assert sort_overlap(files_of([("a", (1, 2)), ("a", None), ("a", (3, 4))]), "long") == 0.0
    assert sort_overlap(files_of([("a", None)]), "long") is None


def test_a_type_without_an_order_is_unknown() -> None:
    assert sort_overlap(files_of([("a", (1, 2))]), "geometry") is None


def test_bounds_that_do_not_fit_their_type_are_unknown() -> None:
    odd = pa.array([b"123"], pa.binary())
    assert ranks(odd, odd, "long") is None


def test_bounds_of_a_column_widened_later_compare_with_the_new_ones() -> None:
    old, new = to_bytes(IntegerType(), 7), to_bytes(LongType(), 2**40)
    lower, upper = pa.array([old, new]), pa.array([new, long(-1)])
    assert [one.tolist() for one in ranks(lower, upper, "long") or ()] == [[2, 3], [3, 1]]


decimals = st.integers(-(10**20), 10**20).map(lambda one: Decimal(one).scaleb(-2))
finite = {"allow_nan": False, "allow_infinity": False}
TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (LongType(), st.integers(-(2**63), 2**63 - 1)),
    (DateType(), st.integers(-(2**31), 2**31 - 1)),
    (TimestampType(), st.integers(-(2**63), 2**63 - 1)),
    (FloatType(), st.floats(width=32, **finite)),
    (DoubleType(), st.floats(**finite)),
    (DecimalType(38, 2), decimals),
    (StringType(), st.text(max_size=5)),
    (BinaryType(), st.binary(max_size=5)),
    (FixedType(4), st.binary(min_size=4, max_size=4)),
    (UUIDType(), st.uuids()),
    (BooleanType(), st.booleans()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda one: str(one)[:12])
@given(data=st.data())
def test_ranks_follow_the_order_of_the_values(
    data: st.DataObject, kind: Any, values: st.SearchStrategy[Any]
) -> None:
    drawn = data.draw(st.lists(values, min_size=2, max_size=8))
    stored = pa.array([to_bytes(kind, one) for one in drawn], pa.binary())
    found = ranks(stored.slice(0, 1), stored.slice(1), str(kind))
    assert found is not None
    rank = [*found[0].tolist(), *found[1].tolist()]
    keys = [comparable(one) for one in drawn]
    dense = {key: number for number, key in enumerate(sorted(set(keys)), 1)}
    assert rank == [dense[key] for key in keys]


def comparable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0


def test_dates_in_bounds_are_plain_days() -> None:
    days = (dt.date(2026, 11, 16) - dt.date(1970, 1, 1)).days
    stored = pa.array([to_bytes(DateType(), days), to_bytes(DateType(), days - 1)])
    assert [one.tolist() for one in ranks(stored, stored, "date") or ()] == [[2, 1], [2, 1]]

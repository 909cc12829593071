"""Apache Amoro's score: worked examples, bounds, a naive re-computation."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.catalog.files import LiveFiles
from lakehouse_core.domain.table import MIB
from lakehouse_core.health.amoro import amoro_score

# partition, content, bytes, rows
Row = tuple[int, int, int, int]
TARGET = 96 * MIB


def files_of(rows: list[Row]) -> LiveFiles:
    partition, content, sizes, counts = zip(*rows, strict=True) if rows else ((), (), (), ())
    nothing = pa.chunked_array([pa.nulls(len(rows), pa.binary())])
    return LiveFiles(
        content=np.array(content, np.int8),
        is_puffin=np.zeros(len(rows), bool),
        rows=np.array(counts, np.int64),
        sizes=np.array(sizes, np.int64),
        partition=np.array(partition, np.int64),
        partition_key=nothing,
        sort_order_id=np.full(len(rows), -1, np.int32),
        manifest=np.zeros(len(rows), np.int64),
        lower=nothing,
        upper=nothing,
    )


def norm(part: float, whole: float) -> float:
    return min(part, whole) / whole if whole > 0 else 0.0


def naive(rows: list[Row]) -> int:
    """The formula, one partition after the other."""
    parts = []
    for partition in sorted({one[0] for one in rows if one[1] == 0}):
        own = [one for one in rows if one[0] == partition]
        has_deletes = any(one[1] for one in own)
        data = [one for one in own if one[1] == 0 and (one[2] <= TARGET or has_deletes)]
        size, count = sum(one[2] for one in data), sum(one[3] for one in data)
        equality, position = (sum(one[3] for one in own if one[1] == kind) for kind in (2, 1))
        factor = 0.0 if len(data) <= 1 else norm(len(data), 12) * norm(size, TARGET)
        mean = size // len(data) if data else 0
        parts.append(
            (
                math.ceil(40 - factor * 40 * (1 - norm(mean, TARGET))),
                math.ceil(40 - factor * 40 * norm(norm(equality, count), 0.1)),
                math.ceil(20 - factor * 20 * norm(norm(position, count), 0.2)),
            )
        )
    if not parts:
        return 100
    return sum(math.ceil(sum(one) / len(parts)) for one in zip(*parts, strict=True))


def test_an_empty_table_is_perfect() -> None:
    assert amoro_score(files_of([])) == 100


@pytest.mark.parametrize(
    ("rows", "score"),
    [
        ([(0, 0, 1, 1)], 100),  # one file is never bad
        ([(0, 0, 512 * MIB, 10)] * 20, 100),  # all of target size: nothing to optimise
        ([(0, 0, 8 * MIB, 100)] * 12, 64),  # 40 - 40 * (1 - 8 / 96), rounded up
        ([(0, 0, 8 * MIB, 100)] * 12 + [(0, 2, MIB, 1_200)], 24),  # all rows equality-deleted
        ([(0, 0, 8 * MIB, 100)] * 12 + [(0, 1, MIB, 1_200)], 44),  # all rows position-deleted
        ([(0, 0, 96 * MIB, 100)] * 12 + [(0, 2, MIB, 120)], 60),  # at the limit of 10 %
        ([(0, 0, 8 * MIB, 100)] * 12 + [(1, 0, MIB, 1)], 82),  # the mean of two partitions
    ],
)
def test_worked_examples(rows: list[Row], score: int) -> None:
    assert amoro_score(files_of(rows)) == score


rows_strategy = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([0, 0, 0, 1, 2]),
        st.integers(0, 200 * MIB),
        st.integers(0, 10**6),
    ),
    max_size=40,
)


@given(rows_strategy)
def test_the_score_stays_between_0_and_100_and_equals_the_formula(rows: list[Row]) -> None:
    score = amoro_score(files_of(rows))
    assert 0 <= score <= 100
    assert score == naive(rows)

"""What a sample says about a layout is what the whole table would say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from lakehouse_core.catalog.estimate_partition import partition_telling
from lakehouse_core.catalog.metadata import TableMetadata
from lakehouse_core.catalog.schema import Field
from lakehouse_core.domain.layout import Layout
from lakehouse_core.layout.simulate import replay, simulate
from lakehouse_core.sql.condition import Condition, Either, Every
from tests.unit.layout.lake import laid_out, thinned, where, whole

ROWS = 60_000
TARGET = 150_000.0  # 40 files
Shape = Callable[[np.random.Generator], tuple[dict[str, Any], list[Condition]]]


def single_key(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    keys = rng.permutation(ROWS * 10)[:ROWS]
    asked = rng.integers(0, ROWS * 10, 60)
    return {"a": keys, "b": rng.random(ROWS)}, [where("a", "=", int(v)) for v in asked]


def range_and_key(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    a, b = rng.integers(0, 100_000, ROWS), rng.integers(0, 1_000, ROWS)
    asked = [
        Every((where("a", "between", int(v), int(v) + 5_000), where("b", "=", int(w))))
        for v, w in zip(rng.integers(0, 95_000, 60), rng.integers(0, 1_000, 60), strict=True)
    ]
    return {"a": a, "b": b}, list(asked)


def two_keys(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    a, b = rng.integers(0, 1_000_000, ROWS), rng.integers(0, 1_000_000, ROWS)
    asked: list[Condition] = [where("a", "=", int(v)) for v in rng.integers(0, 1_000_000, 40)]
    asked += [where("b", "=", int(v)) for v in rng.integers(0, 1_000_000, 40)]
    return {"a": a, "b": b}, asked


def skewed(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    a = np.minimum(rng.zipf(1.3, ROWS), 5_000)
    b = rng.integers(0, 10_000, ROWS)
    asked = [where("a", "=", int(v)) for v in rng.choice(a, 60)]
    return {"a": a, "b": b}, list(asked)


def texts(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    names = np.array([f"customer-{n:07}-of-the-north" for n in range(20_000)])
    a, b = rng.choice(names, ROWS), rng.integers(0, 50, ROWS)
    asked: list[Condition] = [where("a", "=", str(v)) for v in rng.choice(names, 40)]
    asked += [where("a", "like", f"customer-{n:05}%") for n in rng.integers(0, 200, 20)]
    return {"a": a.tolist(), "b": b}, asked


def with_nulls(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    a = [
        None if r < 0.05 else int(v)
        for r, v in zip(rng.random(ROWS), rng.integers(0, 90_000, ROWS), strict=True)
    ]
    asked: list[Condition] = [where("a", "is_null")] * 3
    asked += [where("a", ">=", int(v)) for v in rng.integers(80_000, 90_000, 30)]
    return {"a": pa.array(a, pa.int64()), "b": rng.integers(0, 100, ROWS)}, asked


def correlated(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    a = rng.integers(0, 100_000, ROWS)
    b = a // 10 + rng.integers(-50, 50, ROWS)
    asked = [where("b", "between", int(v), int(v) + 100) for v in rng.integers(0, 9_900, 60)]
    return {"a": a, "b": b}, list(asked)


def either(rng: np.random.Generator) -> tuple[dict[str, Any], list[Condition]]:
    a, b = rng.integers(0, 10_000, ROWS), rng.integers(0, 10_000, ROWS)
    asked = [
        Either((where("a", "=", int(v)), where("a", "in", int(w), int(w) + 1_000)))
        for v, w in zip(rng.integers(0, 10_000, 40), rng.integers(0, 9_000, 40), strict=True)
    ]
    return {"a": a, "b": b}, list(asked)


SHAPES: tuple[Shape, ...] = (
    single_key, range_and_key, two_keys, skewed, texts, with_nulls, correlated, either,
)  # fmt: skip
LAYOUTS = (
    Layout("linear", ("a",)),
    Layout("linear", ("b", "a")),
    Layout("zorder", ("a", "b")),
    Layout("hilbert", ("a", "b")),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
def test_sample_of_a_fifth_predicts_what_the_whole_table_reads(shape: Shape) -> None:
    columns, conditions = shape(np.random.default_rng(5))
    table = whole({name: pa.array(values) for name, values in columns.items()})
    sample = thinned(table, 0.2)
    for layout in LAYOUTS:
        if layout.kind == "zorder" and pa.types.is_floating(table.rows.schema.field("b").type):
            continue
        real = replay(conditions, laid_out(table, layout, TARGET, conditions)).size.mean()
        said = simulate(layout, sample, conditions, target_bytes=TARGET).size.mean()
        # Half a file is what a cut by another sample of keys makes, on either side.
        assert abs(said - real) <= 0.10 * real + TARGET / 2, (str(layout), said / real)


def test_file_without_values_is_read_for_nulls_only() -> None:
    table = whole({"a": pa.array([None] * 500 + list(range(500)), pa.int64())})
    bounds = laid_out(table, Layout("linear", ("a",)), 50_000, [where("a", "is_null")])
    conditions: list[Condition] = [where("a", "is_null"), where("a", "<", 10)]
    found = replay(conditions, bounds)
    assert found.files.tolist() == [1.0, 1.0]
    assert found.size.sum() == found.total_bytes


def test_nan_is_in_no_bound() -> None:
    values = [float("nan")] * 100 + [float(n) for n in range(100)]
    table = whole({"a": pa.array(values, pa.float64())})
    conditions: list[Condition] = [where("a", ">", 1000), where("a", ">=", 0)]
    found = replay(conditions, laid_out(table, Layout("linear", ("a",)), 10_000, conditions))
    assert found.files[0] == 0
    assert found.files[1] == 1


def test_texts_that_differ_after_sixteen_characters_are_one_to_planning() -> None:
    names = [f"the-same-beginning-{n:04}" for n in range(1000)]
    table = whole({"a": pa.array(names)})
    conditions: list[Condition] = [where("a", "=", names[500])]
    found = replay(conditions, laid_out(table, Layout("linear", ("a",)), 10_000, conditions))
    assert found.files[0] == found.total_files == 10


def test_whole_table_needs_no_correction() -> None:
    table = whole({"a": pa.array(range(1000), pa.int64())})
    conditions: list[Condition] = [where("a", "=", n) for n in range(1000)]
    found = simulate(Layout("linear", ("a",)), table, conditions, target_bytes=10_000)
    assert set(found.files.tolist()) == {1.0}


def test_layout_of_a_table_in_buckets_reads_only_those_that_hold_the_value() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 10**6, ROWS), rng.random(ROWS)
    bucket = BucketTransform(16).transform(LongType())
    buckets = np.array([bucket(int(value)) for value in a])
    metadata = TableMetadata(
        location="file:/m.json",
        size_bytes=1,
        table_uuid="u",
        format_version=2,
        snapshots=(),
        current=None,
        fields=(Field(1, "a", "long", is_column=True), Field(2, "b", "double", is_column=True)),
        partition_names={0: ("a_bucket",)},
        sort_order=None,
        properties={},
        partition_transforms={0: ("bucket[16]",)},
        partition_sources={0: (1,)},
    )
    keys = pa.chunked_array([[f"[{number}]" for number in range(16)]])
    telling = partition_telling(metadata, keys, np.zeros(16, np.int64))
    table = replace(whole({"a": a, "b": b}, buckets), telling=telling)
    asked: list[Condition] = [where("a", "=", int(value)) for value in a[:20]]
    found = simulate(Layout.parse("b"), table, asked, target_bytes=TARGET / 4)
    each = found.total_files / 16
    assert found.total_files >= 160
    assert found.files.mean() == pytest.approx(each, rel=0.1)
    # Of a range of values every bucket may hold some.
    (ranged,) = simulate(
        Layout.parse("b"), table, [where("a", "<", 10**5)], target_bytes=TARGET / 4
    ).files
    assert ranged > 0.9 * found.total_files

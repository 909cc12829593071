"""What is advised, and when nothing is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_core.catalog.estimate import FileBounds
from lakehouse_core.domain.layout import Layout
from lakehouse_core.layout.advise import advise, try_layout
from lakehouse_core.layout.arrange import Arranged
from lakehouse_core.layout.candidates import exhaustive
from lakehouse_core.layout.decision import Pricing, ScanPrice
from lakehouse_core.layout.simulate import file_bounds, replay, simulate
from lakehouse_core.sql.condition import Condition, Either
from tests.unit.layout.lake import EVERYTHING, setting, where, whole, workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.layout.sample import Sample

ROWS = 12_000
BY_B = Layout.parse("b")


def table(seed: int = 1) -> Sample:
    rng = np.random.default_rng(seed)
    return whole(
        {
            "a": pa.array(rng.integers(0, 100_000, ROWS)),
            "b": pa.array(rng.integers(0, 100_000, ROWS)),
            "c": pa.array(rng.choice(["x", "y", "z"], ROWS)),
            "d": pa.array(rng.random(ROWS)),
        }
    )


def as_written(sample: Sample, conditions: Sequence[Condition], files: int = 40) -> Any:
    """Its files before anybody ordered anything."""
    rows = sample.rows.num_rows
    numbers = (np.arange(rows) * files // rows).astype(np.int32)
    return file_bounds(sample, Arranged(np.arange(rows), numbers, files), conditions)


def keys(column: str, seed: int = 2, count: int = 12) -> list[Condition]:
    rng = np.random.default_rng(seed)
    return [where(column, "=", int(v)) for v in rng.integers(0, 100_000, count)]


def test_one_filtered_column_is_sorted_by() -> None:
    asked = workload(("trino", 100, keys("a")))
    found = advise(table(), as_written(table(), asked.conditions), asked, setting())
    assert str(found.layout) == "a"
    assert found.prediction is not None
    assert found.prediction.bytes_then < found.prediction.bytes_now / 5
    # Numbers of NumPy do not print as ours do.
    assert {type(one.cost_share) for one in found.columns} == {float}
    assert {type(one.spared_share) for one in found.columns} == {float}
    assert found.saved_usd_month is not None
    assert found.saved_usd_month > 0


def test_two_engines_with_different_keys_get_one_layout_that_serves_both() -> None:
    asked = workload(("trino", 100, keys("a")), ("duckdb", 100, keys("b", 3)))
    found = advise(table(), as_written(table(), asked.conditions), asked, setting())
    assert found.layout is not None
    assert set(found.layout.all_columns) == {"a", "b"}
    assert all(row.bytes_then < row.bytes_now / 2 for row in found.rows)
    assert {row.engine_id for row in found.rows} == {"trino", "duckdb"}


def test_nothing_is_advised_without_a_useful_condition() -> None:
    asked = workload(("trino", 1_000, [EVERYTHING]), ("duckdb", 50, [where("c", "is_null")]))
    found = advise(table(), as_written(table(), asked.conditions), asked, setting())
    assert found.layout is None
    assert all(one.read_share >= 1 for one in found.candidates)


def test_column_without_a_value_orders_nothing() -> None:
    empty = whole({"a": pa.nulls(ROWS, pa.int64()), "b": pa.array(np.arange(ROWS) % 7)})
    asked = workload(("trino", 500, [where("a", "=", 5), where("a", ">", 0)]))
    found = advise(empty, as_written(empty, asked.conditions), asked, setting())
    assert found.layout is None, found.reason


@pytest.mark.parametrize("dear", ["trino", "duckdb"])
def test_the_dearer_engine_counts_more(dear: str) -> None:
    asked = workload(("trino", 100, keys("a")), ("duckdb", 100, keys("b", 3)))
    prices = {name: ScanPrice(per_byte=Decimal("1e-9")) for name in ("trino", "duckdb")}
    prices[dear] = ScanPrice(per_byte=Decimal("1e-5"))
    bounds = as_written(table(), asked.conditions)
    found = advise(table(), bounds, asked, replace(setting(), prices=prices))
    assert found.layout is not None
    assert found.layout.all_columns[0] == {"trino": "a", "duckdb": "b"}[dear]
    most = max(found.rows, key=lambda row: row.usd_month_now or 0)
    assert most.engine_id == dear


def test_nothing_is_advised_for_a_table_that_is_sorted_already() -> None:
    sample = table()
    asked = workload(("trino", 100, keys("a")))
    rows = sample.rows.num_rows
    order = np.argsort(sample.spaces["a"].codes, kind="stable")
    numbers = (np.arange(rows) * 40 // rows).astype(np.int32)
    files = file_bounds(sample, Arranged(order, numbers, 40), asked.conditions)
    found = advise(sample, files, asked, setting(least_bytes=30_000))
    assert found.layout is None
    assert "saves" in found.reason


def test_little_evidence_is_none() -> None:
    asked = workload(("trino", 3, keys("a")))
    found = advise(table(), as_written(table(), asked.conditions), asked, setting())
    assert found.layout is None
    assert "3 runs" in found.reason


def test_rewrite_that_costs_more_than_it_brings_is_left() -> None:
    asked = workload(("trino", 100, keys("a")))
    dear = setting(rewrite_usd=Decimal(10**9))
    found = advise(table(), as_written(table(), asked.conditions), asked, dear)
    assert found.layout is None
    assert "does not pay" in found.reason


def test_column_that_nobody_filters_on_is_in_no_layout() -> None:
    asked = workload(("trino", 100, keys("a")), ("trino", 100, keys("b", 3)))
    found = advise(table(), as_written(table(), asked.conditions), asked, setting())
    assert all("d" not in Layout.parse(one.layout).all_columns for one in found.candidates)


def test_or_over_one_column_is_used_and_over_an_unknown_one_is_not() -> None:
    known: list[Condition] = [
        Either((one, two)) for one, two in zip(keys("a"), keys("a", 9), strict=True)
    ]
    asked = workload(("trino", 100, known))
    found = advise(table(), as_written(table(), asked.conditions), asked, setting())
    assert str(found.layout) == "a"


def test_what_was_advised_stays_unless_another_is_clearly_better() -> None:
    asked = workload(("trino", 100, keys("a")), ("duckdb", 95, keys("b", 3)))
    files = as_written(table(), asked.conditions)
    first = advise(table(), files, asked, setting())
    assert first.layout is not None
    other = Layout(first.layout.kind, first.layout.columns[::-1])
    held = advise(table(), files, asked, setting(held=other))
    assert held.layout == other


@pytest.mark.slow
def test_advice_follows_a_shift_of_the_workload_but_not_noise() -> None:
    """Eight weeks: both keys with noise, then the second column alone."""
    sample, rng, held = table(), np.random.default_rng(4), None
    advised = []
    for week in range(8):
        is_shifted = week >= 5
        noise = rng.uniform(0.8, 1.25, 2)
        patterns = [
            ("trino", int((0 if is_shifted else 200) * noise[0]) + 1, keys("a", week)),
            ("duckdb", int((400 if is_shifted else 200) * noise[1]), keys("b", 50 + week)),
        ]
        asked = workload(*patterns)
        found = advise(sample, as_written(sample, asked.conditions), asked, setting(held=held))
        held = found.layout or held
        advised.append(str(found.layout))
    assert len(set(advised[:5])) == 1
    assert set(advised[5:]) == {"b"}


@pytest.mark.slow
def test_no_layout_of_the_exhaustive_search_is_much_better() -> None:
    asked = workload(
        ("trino", 120, keys("a")),
        ("duckdb", 40, keys("b", 3)),
        ("trino", 60, [where("c", "=", "x")]),
    )
    sample = table()
    files = as_written(sample, asked.conditions)
    found = advise(sample, files, asked, setting())
    assert found.layout is not None
    pricing = Pricing(asked, setting().prices, replay(asked.conditions, files))
    costs = {
        layout: pricing.cost(
            simulate(layout, sample, asked.conditions, target_bytes=found.target_bytes)
        )
        for layout in [*exhaustive(["a", "b", "c"], sample.spaces), found.layout]
    }
    assert costs[found.layout] <= 1.05 * min(costs.values())


def test_given_layout_is_tried_whether_it_pays_or_not() -> None:
    asked = workload(("trino", 100, keys("a")))
    files = as_written(table(), asked.conditions)
    found = try_layout(table(), files, asked, setting(), Layout.parse("b"))
    assert found.prediction is not None
    # No file less is read; they are smaller, as sorted numbers pack better.
    assert 0.85 < found.prediction.bytes_then / found.prediction.bytes_now < 1


def test_layout_of_a_table_nobody_queries_says_so() -> None:
    files = as_written(table(), [])
    found = try_layout(table(), files, workload(), setting(), BY_B)
    assert found.layout is None
    assert "No query" in found.reason


def test_layout_of_an_empty_table_says_so() -> None:
    empty = whole({"a": pa.array([], pa.int64()), "c": pa.array([], pa.string())})
    asked = workload(("trino", 100, keys("a")))
    nothing = np.zeros(0, np.int64)
    found = try_layout(empty, FileBounds(nothing, nothing, {}), asked, setting(), Layout.parse("a"))
    assert found.layout is None
    assert "empty" in found.reason


def test_layout_is_tried_where_no_file_is_read_now() -> None:
    sample = table()
    asked = workload(("trino", 100, [where("a", "=", -5)]))
    found = try_layout(sample, as_written(sample, asked.conditions), asked, setting(), BY_B)
    assert found.prediction is not None
    assert found.prediction.bytes_now == 0


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_file_is_opened_whole_however_few_of_its_columns_are_read(share: float) -> None:
    asked = workload(("trino", 30, [EVERYTHING]))
    (pattern,) = asked.patterns
    read = int(share * table().table_bytes) * pattern.runs
    reader = replace(pattern.readers[0], bytes_scanned=read)
    asked = replace(asked, patterns=(replace(pattern, readers=(reader,)),))
    now = replay(asked.conditions, as_written(table(), asked.conditions))
    prices = {"trino": ScanPrice(per_byte=Decimal(0), per_file=Decimal("0.01"))}
    pricing = Pricing(asked, prices, now)
    assert pricing.cost(now) == pytest.approx(30 * 40 * 0.01)
    assert pricing.usd(now) == Decimal(12)


def test_what_fewer_files_bring_in_any_order_is_not_the_orders_merit() -> None:
    # Opening a file costs far more than reading it: one file is best, and no order skips in it.
    asked = workload(("trino", 300, keys("a")), ("duckdb", 300, keys("b", 3)))
    prices = {
        name: ScanPrice(per_byte=Decimal("1e-9"), per_file=Decimal("1e-2"))
        for name in ("trino", "duckdb")
    }
    large = setting(prices=prices, target_bytes=10_000_000)
    found = advise(table(), as_written(table(), asked.conditions), asked, large)
    assert found.layout is None, found.reason
    assert "beyond what larger files alone would" in found.reason


def test_table_smaller_than_a_file_gets_smaller_files() -> None:
    asked = workload(("trino", 100, keys("a")))
    sample = table()
    large = setting(target_bytes=int(sample.table_bytes * 8), least_bytes=60_000)
    found = advise(sample, as_written(sample, asked.conditions, 4), asked, large)
    assert str(found.layout) == "a", found.reason
    assert found.target_bytes < sample.table_bytes / 4


def opening_costs(as_bytes: int) -> dict[str, ScanPrice]:
    """Prices of two engines on which opening a file costs what so many bytes of it do."""
    price = ScanPrice(per_byte=Decimal("1e-6"), per_file=Decimal("1e-6") * as_bytes)
    return {"trino": price, "duckdb": price}


def test_files_get_small_enough_for_both_keys_though_the_first_halving_gains_little() -> None:
    # In two files a curve skips by one column only, in three hardly by more; in many by both.
    asked = workload(("trino", 300, keys("a")), ("duckdb", 300, keys("b", 3)))
    large = setting(prices=opening_costs(8_000), target_bytes=1_000_000)
    found = advise(table(), as_written(table(), asked.conditions, 8), asked, large)
    assert found.layout is not None, found.reason
    assert set(found.layout.all_columns) == {"a", "b"}
    assert all(row.bytes_then < row.bytes_now / 2 for row in found.rows)


def test_in_two_files_no_curve_is_drawn_for_a_second_key() -> None:
    asked = workload(("trino", 300, keys("a")), ("duckdb", 100, keys("b", 3)))
    coarse = setting(prices=opening_costs(250_000), target_bytes=700_000)
    found = advise(table(), as_written(table(), asked.conditions, 2), asked, coarse)
    assert found.target_bytes == 700_000
    assert found.candidates[0].layout.startswith(("hilbert", "zorder"))
    assert str(found.layout) == "a", found.reason

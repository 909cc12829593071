from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.views import formatting as f
from tests.factories import NOW

THIN = "\u202f"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"), (0, "0 ms"), (0.25, "0.25 ms"), (9.9, "9.9 ms"), (9.97, "10 ms"),
        (480, "480 ms"), (999.4, "999 ms"), (999.6, "1.0 s"), (1_800, "1.8 s"), (59_940, "59.9 s"),
        (59_960, "1 m 00 s"), (124_000, "2 m 04 s"), (3_599_700, "1 h 00 m"),
        (3_780_000, "1 h 03 m"), (273_600_000, "3 d 04 h"),
    ],
)  # fmt: skip
def test_durations(value: float | None, shown: str) -> None:
    assert f.duration(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "unknown"), (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"),
        (1.5 * 2**30, "1.5 GiB"), (1023.99 * 2**20, "1.0 GiB"), (2**80, "1048576.0 EiB"),
    ],
)  # fmt: skip
def test_sizes_are_binary(value: float | None, shown: str) -> None:
    assert f.size(value) == shown


def test_unknown_is_never_zero() -> None:
    for show in (f.count, f.size, f.duration, f.percent, f.span, f.moment):
        assert show(None) == "unknown"
    assert f.share(None, 10) == "unknown"
    assert f.share(0, 0) == "unknown"
    assert f.share(0, 10) == "0.0 % of 10"


def test_amounts_tell_what_is_known() -> None:
    assert f.amount(2**30, 20) == "1.0 GiB, 20 rows"
    assert f.amount(None, 1) == "1 row"
    assert f.amount(0, None) == "0 B"
    assert f.amount(None, None) == "unknown"


def test_counts_are_grouped_and_small_ones_keep_decimals() -> None:
    assert f.count(1_214) == f"1{THIN}214"
    assert f.count(4.29) == "4.3"
    assert f.count(0.042) == "0.042"
    assert f.count(10.75) == "11"


def test_a_tiny_share_does_not_look_like_none() -> None:
    assert f.percent(0.0001) == "< 0.1 %"
    assert f.percent(0) == "0.0 %"
    assert f.share(15, 1_214) == f"1.2 % of 1{THIN}214"


@pytest.mark.parametrize(
    ("now", "before", "shown"),
    [(10, None, None), (10, 0, None), (None, 3, None), (112, 100, "+12 %"), (101, 100, "+1.0 %"),
     (50, 100, "-50 %"), (100, 100, "0 %")],
)  # fmt: skip
def test_change_needs_something_to_compare_with(
    now: float | None, before: float | None, shown: str | None
) -> None:
    assert f.change(now, before) == shown


def test_times_are_relative_and_absolute() -> None:
    assert f.both(NOW - timedelta(seconds=8), NOW) == "8 s ago (2026-11-16 11:59:52 UTC)"
    assert f.ago(NOW + timedelta(seconds=4), NOW) == "in 4 s"
    assert f.both(None, NOW) == "never"


@given(st.floats(min_value=0, max_value=10**15))
def test_longer_never_reads_shorter_in_unit_order(milliseconds: float) -> None:
    order = ["ms", "s", "m", "h", "d"]
    unit = f.duration(milliseconds).split()[1]
    longer = f.duration(milliseconds * 2 + 1).split()[1]
    assert order.index(longer) >= order.index(unit)

"""Durations and sizes survive being written and read again."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.units import (
    format_bytes_unit,
    format_duration,
    parse_bytes,
    parse_duration,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@given(st.integers(min_value=0, max_value=10**9))
def test_duration_reads_back_as_written(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


@given(st.integers(min_value=0, max_value=2**50))
def test_size_reads_back_as_written(size: int) -> None:
    assert parse_bytes(format_bytes_unit(size)) == size


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.5, "500ms"), (90, "90s"), (3_600, "1h"), (604_800, "1w")]
)
def test_duration_is_written_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize("parse", [parse_bytes, parse_duration])
@given(text=st.text(max_size=20))
def test_any_text_is_understood_or_refused_with_an_example(
    parse: Callable[[object], object], text: str
) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse(text), int | timedelta)


@pytest.mark.parametrize("text", ["", "GiB", "1e9GiB", "-1GiB", "1 PiB", "½GiB", "1.GiB", "1_0B"])
def test_sizes_that_only_look_like_one_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="512MiB"):
        parse_bytes(text)

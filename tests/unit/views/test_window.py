from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.errors import FilterError
from lakehouse_core.views.window import EXAMPLES, parse_window

NOW = datetime(2026, 11, 16, 6, 5, tzinfo=UTC)  # a Monday


def day(number: int, month: int = 11) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("1h", NOW - timedelta(hours=1), NOW),
        ("24h", NOW - timedelta(hours=24), NOW),
        (" 7D ", NOW - timedelta(days=7), NOW),
        ("2w", NOW - timedelta(weeks=2), NOW),
        ("today", day(16), NOW),
        ("yesterday", day(15), day(16)),
        ("week", day(16), NOW),
        ("lastweek", day(9), day(16)),
        ("month", day(1), NOW),
        ("lastmonth", day(1, 10), day(1)),
        ("2026-11-01/2026-11-07", day(1), day(8)),
        ("2026-11-01/2026-11-01", day(1), day(2)),
        (
            "2026-11-01T06:00/2026-11-01T08:00",
            day(1) + timedelta(hours=6),
            day(1) + timedelta(hours=8),
        ),
        ("2026-11-01T06:00:00+02:00/2026-11-01", day(1) + timedelta(hours=4), day(2)),
    ],
)
def test_window_is_read(text: str, start: datetime, end: datetime) -> None:
    window = parse_window(text, NOW)
    assert (window.start, window.end) == (start, end)


@pytest.mark.parametrize(
    "text",
    ["", "banana", "24", "-1h", "0h", "1s", "99999999999d", "20y", "2026-11-07/2026-11-01", "/",
     "2026-13-01/2026-13-02", "1h/2h", "2026-11-01", "nan h", "1900-01-01/2026-01-01"],
)  # fmt: skip
def test_what_is_no_window_is_refused_with_examples(text: str) -> None:
    with pytest.raises(FilterError, match="lastweek") as refused:
        parse_window(text, NOW)
    assert EXAMPLES in str(refused.value)


def test_today_right_after_midnight_is_not_empty() -> None:
    window = parse_window("today", day(16))
    assert window.start < window.end


def test_previous_window_ends_where_this_one_starts_and_is_as_long() -> None:
    window = parse_window("7d", NOW)
    before = window.previous()
    assert before.end == window.start
    assert before.length == window.length
    assert before.label == "the 7 days before"


@given(st.integers(min_value=1, max_value=3_650 * 24))
def test_a_window_has_at_most_sixty_buckets_unless_it_is_years_long(hours: int) -> None:
    window = parse_window(f"{hours}h", NOW)
    assert window.length / window.step <= 123
    if window.length <= timedelta(days=365 * 4):
        assert window.length / window.step <= 60


def test_words_of_a_window() -> None:
    assert parse_window("24h", NOW).phrase == "the last 24 hours"
    assert parse_window("24h", NOW).step_label == "30 minutes"
    assert parse_window("1h", NOW).step_label == "minute"
    assert parse_window("today", NOW).phrase == "today"
    assert parse_window("lastweek", NOW).phrase == "last week"

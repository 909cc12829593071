"""Profiles: newest runs count most, one absurd timing counts little, a change counts at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lakehouse_core.routing.profiles import Memory, ProfileBook, Run, in_seconds, size_class

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def filled(engine: str, *seconds: float, book: ProfileBook | None = None) -> ProfileBook:
    book = ProfileBook(Memory(fresh_seconds=0)) if book is None else book
    for place, one in enumerate(seconds):
        at = NOW - timedelta(minutes=len(seconds) - place)
        book.record(Run("t", engine, at, one))
    return book


def difference(book: ProfileBook) -> float:
    runs = book.runs_of("t", ("a", "b"), in_seconds, NOW)
    assert runs is not None
    return runs.evidence(0, np.nan, np.inf)[0][1]


def test_quantiles_failures_and_spread() -> None:
    book = filled("a", *([1.0] * 18), 3.0, 9.0)
    book.record(Run("t", "a", NOW, 0.1, failed=True))
    found = book.profile("t", "a", value_of=in_seconds, now=NOW)
    assert found is not None
    assert found.runs == 21
    assert found.p50_seconds == 1.0
    assert found.p95_seconds == 9.0
    assert 0 < found.failure_rate < 0.1
    assert found.spread == 0
    assert found.last_at == NOW


def test_sizes_are_not_mixed() -> None:
    book = ProfileBook()
    for size, seconds in ((1e6, 1.0), (1e9, 60.0)):
        book.record(Run("t", "a", NOW, seconds, scan_bytes=size))
    day = book.profile("t", "a", value_of=in_seconds, now=NOW, size_class=size_class(1e6))
    year = book.profile("t", "a", value_of=in_seconds, now=NOW, size_class=size_class(1e9))
    assert day is not None
    assert year is not None
    assert (day.p50_seconds, year.p50_seconds) == (1.0, 60.0)


def test_a_statement_is_compared_with_runs_of_its_size() -> None:
    book = ProfileBook()
    for _ in range(6):
        for size, first, second in ((2.0**20, 1.0, 4.0), (2.0**34, 90.0, 30.0)):
            book.record(Run("t", "a", NOW, first, scan_bytes=size))
            book.record(Run("t", "b", NOW, second, scan_bytes=size))
    runs = book.runs_of("t", ("a", "b"), in_seconds, NOW)
    assert runs is not None
    assert runs.evidence(0, 20.0, 1.0)[0][1] > 1
    assert runs.evidence(0, 34.0, 1.0)[0][1] < -1


def test_one_absurd_timing_changes_next_to_nothing() -> None:
    book = filled("b", *([2.0] * 12), book=filled("a", *([1.0] * 12)))
    before = difference(book)
    book.record(Run("t", "a", NOW, 1e7))
    assert difference(book) == pytest.approx(before, abs=0.25)


def test_a_lasting_change_counts_within_a_few_runs() -> None:
    book = filled("b", *([2.0] * 30), book=filled("a", *([1.0] * 30)))
    assert difference(book) > 0.5
    for _ in range(5):
        book.record(Run("t", "a", NOW, 8.0))
    assert difference(book) < -0.5


def test_prices_of_today_count_for_runs_of_yesterday() -> None:
    book = filled("b", *([2.0] * 8), book=filled("a", *([1.0] * 8)))
    price = {"a": 5.0, "b": 1.0}
    runs = book.runs_of("t", ("a", "b"), lambda engine, seconds, _: seconds * price[engine], NOW)
    assert runs is not None
    assert runs.evidence(0, np.nan, np.inf)[0][1] == pytest.approx(np.log(2 / 5))


def test_failing_costs_the_run_that_follows() -> None:
    book = filled("b", *([1.5] * 10), book=filled("a", *([1.0] * 7)))
    for _ in range(3):
        book.record(Run("t", "a", NOW, 1.0, failed=True))
    without = filled("b", *([1.5] * 10), book=filled("a", *([1.0] * 10)))
    assert difference(book) < difference(without)


def test_what_nobody_runs_is_let_go() -> None:
    book = ProfileBook(Memory(days=30, templates=2))
    book.record(Run("old", "a", NOW - timedelta(days=40), 1.0))
    book.record(Run("new", "a", NOW, 1.0))
    assert book.forget_cold(NOW) == 1
    for name in ("x", "y", "z"):
        book.record(Run(name, "a", NOW, 1.0))
    assert len(book) == 2
    assert book.runs_of("old", ("a",), in_seconds, NOW) is None


def test_an_impossible_timing_is_not_taken() -> None:
    book = filled("a", float("nan"), -1.0, float("inf"))
    assert len(book) == 0


def test_a_run_that_comes_late_finds_its_place() -> None:
    book = ProfileBook()
    for minute in (1, 3, 2):
        book.record(Run("t", "trino", NOW + timedelta(minutes=minute), float(minute)))
    assert book.told("t", ("trino",), NOW) == "trino 3"
    profile = book.profile("t", "trino", value_of=in_seconds, now=NOW)
    assert profile is not None
    assert profile.last_at == NOW + timedelta(minutes=3)


def test_a_new_run_counts_within_a_second_and_age_after_a_minute() -> None:
    book = filled("trino", 1.0, 1.0, 1.0, 1.0, book=ProfileBook())
    first = book.profiles_of("t", in_seconds, NOW)
    assert book.profiles_of("t", in_seconds, NOW + timedelta(seconds=30)) is first
    later = book.profiles_of("t", in_seconds, NOW + timedelta(days=14))
    assert later[0].weight < first[0].weight
    again = book.profiles_of("t", in_seconds, NOW)
    book.record(Run("t", "trino", NOW, 1.0))
    assert book.profiles_of("t", in_seconds, NOW) is again
    assert book.profiles_of("t", in_seconds, NOW + timedelta(seconds=1))[0].runs == 5

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.config.finops import AnomalySettings
from lakehouse_core.finops.anomalies import anomalies

LAST = date(2026, 11, 16)
SETTINGS = AnomalySettings()


def series(*costs: str | int) -> dict[date, Decimal]:
    """Days up to the last one."""
    first = LAST - timedelta(days=len(costs) - 1)
    return {first + timedelta(days=n): Decimal(cost) for n, cost in enumerate(costs)}


def test_a_day_far_above_the_usual_is_found_with_what_is_usual() -> None:
    (found,) = anomalies(series(*[10, 11, 9, 10] * 4, 30), LAST, LAST, SETTINGS)
    assert (found.day, found.since) == (LAST, LAST)
    assert [found.amount, found.usual, found.excess] == [Decimal(n) for n in (30, 10, 20)]
    assert found.n == 16


def test_days_that_vary_as_ever_are_not() -> None:
    assert anomalies(series(*[5, 20, 9, 14] * 5), LAST - timedelta(9), LAST, SETTINGS) == ()


def test_a_run_of_unusual_days_keeps_its_beginning_and_its_yardstick() -> None:
    found = anomalies(series(*[10] * 14, *[40] * 10), LAST - timedelta(9), LAST, SETTINGS)
    assert len(found) == 10
    assert {one.since for one in found} == {LAST - timedelta(9)}
    assert {one.usual for one in found} == {Decimal(10)}


def test_a_run_that_began_earlier_keeps_its_beginning() -> None:
    costs = series(*[10] * 14, *[40] * 10)
    found = anomalies(costs, LAST - timedelta(1), LAST, SETTINGS)
    assert [one.day for one in found] == [LAST - timedelta(1), LAST]
    assert {one.since for one in found} == {LAST - timedelta(9)}
    assert {one.usual for one in found} == {Decimal(10)}


def test_too_short_a_history_says_nothing() -> None:
    assert anomalies(series(1, 1, 1, 100), LAST, LAST, SETTINGS) == ()


def test_small_amounts_are_nobodys_concern() -> None:
    costs = series(*["0.01"] * 10, "0.90")
    assert anomalies(costs, LAST, LAST, SETTINGS) == ()
    loud = AnomalySettings(least_amount=Decimal("0.5"))
    assert len(anomalies(costs, LAST, LAST, loud)) == 1


def test_less_than_usual_is_no_anomaly() -> None:
    assert anomalies(series(*[10] * 14, 0), LAST, LAST, SETTINGS) == ()


@given(st.lists(st.integers(0, 1000), min_size=8, max_size=40), st.integers(1, 10**6))
def test_what_is_found_stays_found_when_it_costs_more(costs: list[int], more: int) -> None:
    if anomalies(series(*costs), LAST, LAST, SETTINGS):
        assert anomalies(series(*costs[:-1], costs[-1] + more), LAST, LAST, SETTINGS)

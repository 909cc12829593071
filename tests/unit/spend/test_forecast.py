from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.finops.forecast import Forecast, NoForecast, forecast

TODAY = date(2026, 11, 16)  # a Monday
START, END = date(2026, 11, 1), date(2026, 12, 1)


def days_before(count: int, costs: list[Decimal]) -> dict[date, Decimal]:
    first = TODAY - timedelta(days=count)
    return {first + timedelta(days=n): costs[n % len(costs)] for n in range(count)}


def month(days: dict[date, Decimal], spent_today: str = "0") -> Forecast:
    found = forecast(days, TODAY, Decimal(spent_today), START, END)
    assert isinstance(found, Forecast)
    return found


def test_equal_days_go_on_without_a_range() -> None:
    found = month(days_before(28, [Decimal(10)]))
    assert {found.low, found.expected, found.high} == {Decimal(300)}
    assert found.spent == 150
    assert found.n == 28


def test_weekends_are_seen_when_there_are_weeks_of_history() -> None:
    costs = [Decimal(cost) for cost in (10, 10, 10, 10, 10, 0, 0)]  # 2026-10-19 is a Monday
    found = month(days_before(28, costs))
    assert "weekday" in found.method
    assert found.expected == 210  # 21 working days
    assert found.error_ratio == 0


def test_what_today_has_cost_already_is_not_counted_twice() -> None:
    days = days_before(28, [Decimal(10)])
    assert month(days, "4").expected == month(days).expected
    assert month(days, "25").expected == month(days).expected + 15


def test_too_short_a_history_says_so() -> None:
    found = forecast(days_before(3, [Decimal(1)]), TODAY, Decimal(2), START, END)
    assert isinstance(found, NoForecast)
    assert "3 whole days" in found.reason
    assert found.spent == 5


def test_a_day_without_spend_counts_as_zero() -> None:
    days = days_before(8, [Decimal(7)])
    del days[TODAY - timedelta(days=3)]
    assert month(days).expected == 49 + 15 * 6


def test_a_period_that_is_over_costs_what_it_cost() -> None:
    found = forecast(days_before(28, [Decimal(1)]), END, Decimal(0), START, END)
    assert isinstance(found, Forecast)
    assert found.low == found.expected == found.high == found.spent


@given(
    st.lists(st.decimals(0, 10**6, places=2), min_size=4, max_size=40),
    st.decimals(0, 1000, places=2),
)
def test_the_range_holds_the_expected_and_never_undercuts_what_was_spent(
    costs: list[Decimal], spent_today: Decimal
) -> None:
    found = forecast(days_before(len(costs), costs), TODAY, spent_today, START, END)
    assert isinstance(found, Forecast)
    assert found.spent <= found.low <= found.expected <= found.high


@pytest.mark.parametrize("history", [10, 21, 28])
def test_four_of_five_months_end_within_the_range(history: int) -> None:
    rng = random.Random(11)  # noqa: S311 repeatable days, not a secret
    kept = 0
    for _ in range(200):
        shape = [rng.uniform(5, 15) for _ in range(7)]

        def day(n: int, shape: list[float] = shape) -> Decimal:
            return Decimal(str(round(max(shape[n % 7] * rng.gauss(1, 0.25), 0), 2)))

        known = {TODAY - timedelta(days=n): day(n) for n in range(1, history + 1)}
        found = month(known)
        rest = sum((day(-n) for n in range((END - TODAY).days)), Decimal(0))
        kept += found.low <= found.spent + rest <= found.high
    assert 140 <= kept <= 200

"""Spend to the end of a period, with a range and the method that made it.

Two plain methods stand against each other: the mean of the last seven days, and the mean of the
same weekday over four weeks. Each is tried on the past, one day ahead; the one that erred less is
used. The range holds the sum of the days that are left in four of five cases, as far as they vary
like the days before: the variance of a sum of days, and that of the mean they are predicted by.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

LEAST_DAYS = 4
HISTORY_DAYS = 28
WEEK = 7
_TRIED_DAYS = 14
_DAY = timedelta(days=1)
# Student's t, 10 % above and below, by degrees of freedom; beyond the last one hardly falls.
_T80 = (
    "3.078 1.886 1.638 1.533 1.476 1.440 1.415 1.397 1.383 1.372 1.363 1.356 1.350 1.345 1.341 "
    "1.337 1.333 1.330 1.328 1.325 1.323 1.321 1.319 1.318 1.316 1.315 1.314"
)
_QUANTILES = tuple(Decimal(text) for text in _T80.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a period will have cost at its end.

    Attributes:
        low, expected, high: of the whole period, spent so far included; 80 % between low and high.
        spent: so far.
        method: how, in words.
        n: days it rests on.
        error_ratio: mean error of the method one day ahead, as a share of the mean day; None when
            there was too little to try it on.
    """

    low: Decimal
    expected: Decimal
    high: Decimal
    spent: Decimal
    method: str
    n: int
    error_ratio: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoForecast:
    """Why nothing is said about the end of the period."""

    reason: str
    spent: Decimal


def forecast(
    days: Mapping[date, Decimal], today: date, spent_today: Decimal, start: date, end: date
) -> Forecast | NoForecast:
    """Spend of the period from `start` up to, not including, `end`.

    Args:
        days: spend of whole days before today; a day that is missing between two others cost
            nothing.
        today: the day that is not over; what is left of it is predicted too.
        spent_today: so far.
        start: first day of the period.
        end: first day after it.
    """
    history = _filled(days, today)
    spent = sum((cost for day, cost in days.items() if start <= day < today), Decimal(0))
    spent += spent_today
    if len(history) < LEAST_DAYS:
        reason = f"{len(history)} whole days are known; a forecast wants {LEAST_DAYS}"
        return NoForecast(reason=reason, spent=spent)
    name, method, error = _better(history)
    ahead = [today + n * _DAY for n in range((end - today).days)]
    predicted = [method(history, day) for day in ahead]
    if predicted:
        # Today is not over: it brings what a day brings, less what it brought already.
        predicted[0] = max(predicted[0] - spent_today, Decimal(0))
    spread = _spread(history, method) * _widening(len(ahead), len(history))
    rest = sum(predicted, Decimal(0))
    return Forecast(
        low=max(spent + rest - spread, spent),
        expected=spent + rest,
        high=spent + rest + spread,
        spent=spent,
        method=name,
        n=len(history),
        error_ratio=error,
    )


def _filled(days: Mapping[date, Decimal], today: date) -> dict[date, Decimal]:
    """The last days without gaps, from the first that is known."""
    known = [day for day in days if day < today]
    if not known:
        return {}
    first = max(min(known), today - HISTORY_DAYS * _DAY)
    span = (today - first).days
    return {first + n * _DAY: days.get(first + n * _DAY, Decimal(0)) for n in range(span)}


def _mean(costs: list[Decimal]) -> Decimal:
    return sum(costs, Decimal(0)) / len(costs)


def _last_week(history: Mapping[date, Decimal], day: date) -> Decimal:
    del day
    return _mean(list(history.values())[-WEEK:])


def _same_weekday(history: Mapping[date, Decimal], day: date) -> Decimal:
    alike = [cost for one, cost in history.items() if one.weekday() == day.weekday()]
    return _mean(alike) if alike else _last_week(history, day)


_METHODS: dict[str, Callable[[Mapping[date, Decimal], date], Decimal]] = {
    "mean of the last 7 days": _last_week,
    "mean of the same weekday over the last 4 weeks": _same_weekday,
}


def _better(
    history: Mapping[date, Decimal],
) -> tuple[str, Callable[[Mapping[date, Decimal], date], Decimal], Decimal | None]:
    """The method that erred less one day ahead; without a trial the simpler one."""
    trials = list(history)[2 * WEEK :][-_TRIED_DAYS:]  # each weekday was seen twice before
    simple = next(iter(_METHODS))
    if not trials:
        return simple, _METHODS[simple], None
    errors = {}
    for name, method in _METHODS.items():
        missed = [
            abs(
                method({one: cost for one, cost in history.items() if one < day}, day)
                - history[day]
            )
            for day in trials
        ]
        errors[name] = _mean(missed)
    best = min(errors, key=lambda name: errors[name])
    usual = _mean([history[day] for day in trials])
    return best, _METHODS[best], errors[best] / usual if usual else None


def _spread(
    history: Mapping[date, Decimal], method: Callable[[Mapping[date, Decimal], date], Decimal]
) -> Decimal:
    """Standard deviation of days around what the method says of them."""
    missed = [method(history, day) - cost for day, cost in history.items()]
    free = max(len(missed) - 1, 1)
    return (sum((one * one for one in missed), Decimal(0)) / free).sqrt()


def _widening(ahead: int, n: int) -> Decimal:
    """From one day's deviation to that of a sum of days predicted by a mean of n, at 80 %."""
    if not ahead:
        return Decimal(0)
    mean_of = Decimal(min(n, WEEK))
    variance = Decimal(ahead) + Decimal(ahead) ** 2 / mean_of
    return quantile(n - 1) * variance.sqrt()


def quantile(free: int) -> Decimal:
    """How many standard deviations hold four of five cases, by degrees of freedom."""
    return _QUANTILES[min(max(free, 1), len(_QUANTILES)) - 1]

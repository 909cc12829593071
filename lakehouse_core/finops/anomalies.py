"""Days that cost more than days like them: median and spread of the days before, nothing learned.

The spread is the median of the distances from the median, scaled so that it is a standard deviation
when days vary normally; one wild day in the history does not move it. The days of an anomaly that
still goes on are left out of the history, or it would become the new normal after a week or two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from lakehouse_core.config.finops import AnomalySettings

_NORMAL = Decimal("1.4826")  # from a median distance to a standard deviation
# A history without any spread still varies by rounding and by a query more or less.
_LEAST_SPREAD = Decimal("0.05")
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """A day above what is usual.

    Attributes:
        day: which one, in UTC.
        since: first day of the unbroken run of such days that it belongs to.
        amount: what it cost.
        usual: the median of the days before.
        n: how many days that rests on.
        deviations: how far above, in robust standard deviations.
    """

    day: date
    since: date
    amount: Decimal
    usual: Decimal
    n: int
    deviations: Decimal

    @property
    def excess(self) -> Decimal:
        """How much more than usual."""
        return self.amount - self.usual


def anomalies(
    days: Mapping[date, Decimal], first: date, last: date, settings: AnomalySettings
) -> tuple[Anomaly, ...]:
    """The unusual days from `first` to `last`, both included.

    Days before `first` are judged as well, as far as a history reaches: a run of unusual days that
    began there keeps its beginning, whenever it is looked at.

    Args:
        days: spend per day, from well before `first`; the last one may be unfinished, which can
            only hide an anomaly, not make one. A day missing between others cost nothing.
        first: days before it are not told.
        last: where to stop.
        settings: what is unusual.
    """
    found: list[Anomaly] = []
    left_out: set[date] = set()
    if not days:
        return ()
    begin = min(days)
    day = max(first - settings.history * _DAY, begin)
    while day <= last:
        history = [
            days.get(before, Decimal(0))
            for n in range(1, settings.history + 1)
            if (before := day - n * _DAY) >= begin and before not in left_out
        ]
        one = _judge(day, days.get(day, Decimal(0)), history, settings)
        if one is not None:
            left_out.add(day)
            is_same = bool(found) and found[-1].day == day - _DAY
            found.append(replace(one, since=found[-1].since if is_same else day))
        day += _DAY
    return tuple(one for one in found if one.day >= first)


def _judge(
    day: date, amount: Decimal, history: list[Decimal], settings: AnomalySettings
) -> Anomaly | None:
    if len(history) < settings.least_days:
        return None
    usual = median(history)
    spread = _NORMAL * median(abs(one - usual) for one in history)
    spread = max(spread, usual * _LEAST_SPREAD)
    excess = amount - usual
    is_large = excess >= settings.least_amount
    is_large = is_large and excess >= usual * Decimal(str(settings.least_ratio))
    deviations = excess / spread if spread else Decimal("Infinity")
    if not is_large or deviations < Decimal(str(settings.sensitivity)):
        return None
    return Anomaly(
        day=day, since=day, amount=amount, usual=usual, n=len(history), deviations=deviations
    )

"""What would change, per month, from measured figures only: the arithmetic.

Every answer is a change of spend (less is negative) with a range and with how many measurements it
rests on; too few of them give a reason instead of a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from lakehouse_core.finops.forecast import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

HOURS_PER_MONTH = Decimal(730)
LEAST_SPANS = 4  # hours or days that say how much spend varies
LEAST_RUNS = 5
LEAST_HOURS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would change.

    Attributes:
        question: what was asked, in words.
        now: spend per month that the change is about, as it is.
        low, expected, high: change per month; below zero is saved. Four of five times between.
        n: how many measurements, and `n_of` of what.
        method: how it was computed.
        caveats: what it does not know.
    """

    question: str
    currency: str
    now: Decimal
    low: Decimal
    expected: Decimal
    high: Decimal
    n: int
    n_of: str
    method: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """Why nothing is said."""

    question: str
    reason: str


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with the range it lies in, four of five times."""

    low: Decimal
    expected: Decimal
    high: Decimal
    n: int


def mean_of(values: Sequence[Decimal]) -> Mean:
    """The mean of measurements and how sure it is."""
    n = len(values)
    mean = sum(values, Decimal(0)) / n
    squares = sum(((one - mean) ** 2 for one in values), Decimal(0))
    error = (squares / max(n - 1, 1) / n).sqrt() * quantile(n - 1)
    return Mean(mean - error, mean, mean + error, n)


def scaled(question: str, currency: str, spans: Sequence[Decimal], hours: int, ratio: Decimal,
           span_word: str) -> Change | NoAnswer:  # fmt: skip
    """Spend that is multiplied by `1 + ratio`, from its spend in spans of so many hours."""
    if len(spans) < LEAST_SPANS:
        reason = f"{len(spans)} whole {span_word} are measured; at least {LEAST_SPANS} are needed"
        return NoAnswer(question=question, reason=reason)
    mean = mean_of(spans)
    month = HOURS_PER_MONTH / hours * ratio
    ends = sorted((mean.low * month, mean.high * month))
    return Change(
        question=question,
        currency=currency,
        now=mean.expected * HOURS_PER_MONTH / hours,
        low=ends[0],
        expected=mean.expected * month,
        high=ends[1],
        n=mean.n,
        n_of=f"whole {span_word}",
        method=f"mean spend of the {span_word} of the window, per month of 730 hours; range of the "
        "mean at 80 %",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A template on one engine, as measured: cost per query in each hour it ran in."""

    engine_id: str
    queries: int
    cost: Decimal
    per_query: tuple[Decimal, ...]


def moved(question: str, currency: str, here: Profile, there: Profile, hours: Decimal,
          caveats: tuple[str, ...]) -> Change | NoAnswer:  # fmt: skip
    """All runs of a template on another engine, at what a run costs there."""
    for one in (here, there):
        if one.queries < LEAST_RUNS or len(one.per_query) < LEAST_HOURS:
            return NoAnswer(
                question=question,
                reason=f"on {one.engine_id} {one.queries} runs in {len(one.per_query)} hours are "
                f"measured; at least {LEAST_RUNS} runs in {LEAST_HOURS} hours are needed",
            )
    costs_here, costs_there = mean_of(here.per_query), mean_of(there.per_query)
    runs = Decimal(here.queries) * HOURS_PER_MONTH / hours
    off = (
        (costs_here.high - costs_here.expected) ** 2
        + (costs_there.high - costs_there.expected) ** 2
    ).sqrt()
    difference = costs_there.expected - costs_here.expected
    return Change(
        question=question,
        currency=currency,
        now=costs_here.expected * runs,
        low=(difference - off) * runs,
        expected=difference * runs,
        high=(difference + off) * runs,
        n=here.queries + there.queries,
        n_of=f"runs: {here.queries} on {here.engine_id}, {there.queries} on {there.engine_id}",
        method="mean cost of a run in each hour, on both engines, times the runs per month; range "
        "of the difference of the means at 80 %",
        caveats=caveats,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTime:
    """An engine's idle time in a window.

    Attributes:
        idle_cost: what being up without work cost.
        spared: the part of it after each shutdown.
        shutdowns: how often it would have been shut down.
        hour_cost: what an hour of being up costs.
        hours: how long the window is.
    """

    idle_cost: Decimal
    spared: Decimal
    shutdowns: int
    hour_cost: Decimal
    hours: Decimal


def shut_down(
    question: str, currency: str, idle: IdleTime, restart_minutes: Decimal
) -> Change | NoAnswer:
    """Idle time that ends after some minutes; each restart costs its minutes again."""
    if not idle.idle_cost:
        reason = "no idle time was charged in this window: there is nothing to shut down"
        return NoAnswer(question=question, reason=reason)
    month = HOURS_PER_MONTH / idle.hours
    restarts = idle.hour_cost * restart_minutes / 60 * idle.shutdowns
    best, worst = -idle.spared * month, (restarts - idle.spared) * month
    return Change(
        question=question,
        currency=currency,
        now=idle.idle_cost * month,
        low=best,
        expected=(best + worst) / 2,
        high=worst,
        n=idle.shutdowns,
        n_of="shutdowns in the window",
        method="idle cost of each hour, by the seconds after which nothing ran; from no cost of a "
        f"restart to {restart_minutes} minutes of being up each",
        caveats=("The first query after a shutdown waits for the engine to start.",),
    )

"""Engine comparison: the same template on several engines, who wins and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from lakehouse_core.domain.money import per_thousand, rounded
from lakehouse_core.views.measured import (
    LEAST_RUNS,
    Cell,
    Measured,
    measured,
    size_words,
)
from lakehouse_core.views.template_texts import template_texts
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from decimal import Decimal

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

Measure = Literal["cost", "seconds"]
SURE = 0.8  # below this confidence there is no winner
LEAST_GAIN = 0.02  # engines nearer than this are equally good
_LONGEST_TEXT = 300  # a line of a table
_FIGURES: dict[Measure, str] = {"cost": "cost_per_run", "seconds": "seconds_per_run"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """One engine in a comparison.

    Attributes:
        runs: finished and failed reads of the template, in this size.
        p50_seconds, p95_seconds: of finished runs, waiting for a place included.
        spread: standard deviation of the logarithm of their seconds.
        cost_per_run: spend divided by finished runs; None: not priced or not charged yet.
        basis: what the cost rests on.
        failure_rate: failed out of all, without failures that are the statement's own fault.
        shadow_runs: finished runs among them that nobody asked for, made to have evidence.
        is_compared: there are enough finished runs.
    """

    engine_id: str
    runs: int
    p50_seconds: float | None
    p95_seconds: float | None
    spread: float | None
    cost_per_run: Decimal | None
    basis: tuple[str, ...]
    failure_rate: float
    shadow_runs: int
    is_compared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A template in one size on all engines it ran on.

    Attributes:
        size: bytes the gateway estimated before the run, as a range.
        measure: what decides: cost where all that are compared have one, else seconds.
        winner: the engine that is better; None: too few runs, or too near.
        confidence: that the winner is better than the next one; None without two to compare.
        why: the verdict in words.
        runs: on all engines.
    """

    template_id: str
    template: str | None
    size: str
    measure: Measure
    winner: str | None
    confidence: float | None
    why: str
    runs: int
    engines: tuple[EngineFigures, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All contests of a window, the most run first."""

    window: Window
    currency: str
    contests: tuple[Contest, ...]
    total: int
    least_runs: int = LEAST_RUNS

    @property
    def decided(self) -> int:
        """Contests shown that have a winner."""
        return sum(one.winner is not None for one in self.contests)


def compare_engines(
    store: TelemetryStore,
    clock: Clock,
    *,
    window: str,
    template: str | None = None,
    limit: int = 100,
) -> Comparison:
    """Templates with the engines they ran on; those that ran on several engines first."""
    return comparison_of(
        store, measured(store, parse_window(window, clock()), template=template), limit
    )


def comparison_of(store: TelemetryStore, found: Measured, limit: int = 100) -> Comparison:
    """The same of what was measured already."""
    groups = sorted(
        found.per_key().values(),
        key=lambda cells: (len(cells) < 2, -sum(cell.runs for cell in cells), cells[0].template_id),
    )
    shown = groups[:limit]
    texts = template_texts(store, (cells[0].template_id for cells in shown), _LONGEST_TEXT)
    return Comparison(
        window=found.window,
        currency=found.currency,
        contests=tuple(_contest(cells, found, texts) for cells in shown),
        total=len(groups),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who is better by which measure; `winner` None with the reason in `why`."""

    measure: Measure
    winner: Cell | None
    runner_up: Cell | None
    confidence: float | None
    why: str


def judge(cells: list[Cell], currency: str) -> Verdict:
    """Which engine is better for runs that can be compared."""
    known = [cell for cell in cells if cell.is_enough]
    by_cost = len(known) > 1 and all(cell.cost_per_run is not None for cell in known)
    measure: Measure = "cost" if by_cost else "seconds"
    if len(known) < 2:
        few = ", ".join(f"{cell.engine_id} {cell.finished}" for cell in cells if cell not in known)
        why = (
            f"not compared: fewer than {LEAST_RUNS} finished runs on {few}"
            if few
            else f"not compared: it ran on {cells[0].engine_id} only"
        )
        return Verdict(measure, None, None, None, why)
    best, second = sorted(known, key=lambda cell: figure(cell, measure))[:2]
    confidence = confidence_of(best, second, measure)
    gain = 1 - figure(best, measure) / max(figure(second, measure), 1e-12)
    names = f"{best.engine_id} and {second.engine_id}"
    if gain < LEAST_GAIN:
        why = f"{names} are equally good: {gain:.1%} apart in {measure}"
        return Verdict(measure, None, None, confidence, why)
    if confidence < SURE:
        why = f"{names} are too near to tell: {confidence:.0%} sure, {SURE:.0%} needed"
        return Verdict(measure, None, None, confidence, why)
    return Verdict(measure, best, second, confidence, _why(best, second, measure, currency))


def figure(cell: Cell, measure: Measure) -> float:
    """What a run is judged by."""
    value = getattr(cell, _FIGURES[measure])
    return math.inf if value is None else float(value)


def confidence_of(best: Cell, second: Cell, measure: Measure) -> float:
    """How sure the difference is: of the logarithms' means, by their spread and number."""
    apart = math.log(max(figure(second, measure), 1e-12) / max(figure(best, measure), 1e-12))
    error = math.sqrt(
        sum((cell.spread or 0.0) ** 2 / max(cell.finished, 1) for cell in (best, second))
    )
    return NormalDist().cdf(apart / error) if error else 1.0


def _why(best: Cell, second: Cell, measure: Measure, currency: str) -> str:
    cheap, dear = best.cost_per_run, second.cost_per_run
    if measure == "cost" and cheap is not None and dear is not None:
        said = (
            f"{best.engine_id} answers 1,000 runs for {per_thousand(cheap)} {currency}, "
            f"{second.engine_id} for {per_thousand(dear)}"
        )
    else:
        said = (
            f"{best.engine_id} answers in {best.seconds_per_run:.3g} s, "
            f"{second.engine_id} in {second.seconds_per_run:.3g} s; not all are priced"
        )
    if best.p95_seconds is not None and second.p95_seconds is not None:
        word = "lower" if best.p95_seconds <= second.p95_seconds else "higher"
        said += f"; p95 is {word} ({best.p95_seconds:.3g} s, {second.p95_seconds:.3g} s)"
    return said


def _contest(cells: list[Cell], found: Measured, texts: dict[str, str]) -> Contest:
    verdict = judge(cells, found.currency)
    first = cells[0]
    return Contest(
        template_id=first.template_id,
        template=texts.get(first.template_id),
        size=size_words(first.size_class),
        measure=verdict.measure,
        winner=None if verdict.winner is None else verdict.winner.engine_id,
        confidence=verdict.confidence,
        why=verdict.why,
        runs=sum(cell.runs for cell in cells),
        engines=tuple(_figures(cell) for cell in cells),
    )


def _figures(cell: Cell) -> EngineFigures:
    return EngineFigures(
        engine_id=cell.engine_id,
        runs=cell.runs,
        p50_seconds=cell.p50_seconds,
        p95_seconds=cell.p95_seconds,
        spread=cell.spread,
        cost_per_run=None if cell.cost_per_run is None else rounded(cell.cost_per_run),
        basis=cell.bases or (),
        failure_rate=cell.failed / cell.runs,
        shadow_runs=cell.shadows,
        is_compared=cell.is_enough,
    )

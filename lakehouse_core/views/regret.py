"""Regret: what reads cost and took, against what they would have on other choices of engines.

Only what was measured is counted: templates of one size that at least two engines have run often
enough. What a baseline lacks evidence for stays as it was, and the share of that is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Generic

from lakehouse_core.domain.money import rounded
from lakehouse_core.views.compare import Measure, comparison_of, figure
from lakehouse_core.views.measured import LEAST_RUNS, Amount, Cell, measured, size_words
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.compare import Comparison
    from lakehouse_core.views.measured import Measured

LEAST_COVER = 0.5  # a single engine with evidence for less is no baseline
MOST_WORST = 20
ORACLE = "oracle"
Groups = list[list[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Generic[Amount]):
    """Another choice of engines.

    Attributes:
        name: best_single, oracle, rules, or an engine.
        engine: of a single engine, its id.
        total: what it would have come to: money, or seconds.
        regret: what was really spent above that; below zero: we did better.
        regret_ratio: the same as a ratio of the baseline; None when that is nothing.
        evidence_share: share of the runs compared that the baseline has measurements for; the
            others stay as they were.
    """

    name: str
    engine: str | None
    total: Amount
    regret: Amount
    regret_ratio: float | None
    evidence_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste(Generic[Amount]):
    """A template and size that cost most above the best engine for it."""

    template_id: str
    size: str
    runs: int
    actual: Amount
    best: Amount
    best_engine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRegret(Generic[Amount]):
    """The regret in money or in seconds.

    Attributes:
        runs: finished reads in the window.
        compared_runs: of them, those with evidence on at least two engines.
        without_evidence_share: share of those without.
        actual: what the compared runs really came to.
        baselines: best single engine, oracle, the configured rules where they were asked for.
        engines: each engine alone.
        worst: where most was lost.
    """

    measure: Measure
    unit: str
    runs: int
    compared_runs: int
    without_evidence_share: float | None
    actual: Amount
    baselines: tuple[Baseline[Amount], ...]
    engines: tuple[Baseline[Amount], ...]
    worst: tuple[Waste[Amount], ...]

    def against(self, name: str) -> Baseline[Amount] | None:
        """A baseline by its name."""
        return next((one for one in self.baselines if one.name == name), None)


@dataclass(frozen=True, slots=True)
class _Scale(Generic[Amount]):
    """How a measure is added up: what runs came to, and what so many answers would on an engine."""

    measure: Measure
    unit: str
    zero: Amount
    spent: Callable[[Sequence[Cell]], Amount]
    would: Callable[[int, Cell], Amount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """The regret of a window."""

    window: Window
    currency: str
    cost: MeasureRegret[Decimal]
    seconds: MeasureRegret[float]
    least_runs: int = LEAST_RUNS


def routing_regret(
    store: TelemetryStore,
    clock: Clock,
    *,
    window: str,
    rules: Mapping[tuple[str, int | None], str] | None = None,
) -> Regret:
    """What was spent against other choices.

    Args:
        store: the store.
        clock: the time.
        window: what to look at.
        rules: which engine the configured rules choose, by template and size; see `replay`.
    """
    return regret_of(measured(store, parse_window(window, clock())), rules)


def compared_with_regret(
    store: TelemetryStore, clock: Clock, *, window: str
) -> tuple[Comparison, Regret]:
    """Comparison and regret of a window, measured once."""
    found = measured(store, parse_window(window, clock()))
    return comparison_of(store, found), regret_of(found)


def regret_of(found: Measured, rules: Mapping[tuple[str, int | None], str] | None = None) -> Regret:
    """What was spent against other choices, of what was measured already."""
    groups = list(found.per_key().values())
    return Regret(
        window=found.window,
        currency=found.currency,
        cost=_regret(groups, _Scale("cost", found.currency, Decimal(0), _paid, _to_pay), rules),
        seconds=_regret(groups, _Scale("seconds", "s", 0.0, _took, _to_take), rules),
    )


def _regret(
    groups: Groups,
    scale: _Scale[Amount],
    rules: Mapping[tuple[str, int | None], str] | None,
) -> MeasureRegret[Amount]:
    compared = [cells for cells in groups if _can_compare(cells, scale.measure)]
    runs = sum(_answers(cells) for cells in groups)
    covered = sum(_answers(cells) for cells in compared)
    actual = sum((scale.spent(cells) for cells in compared), start=scale.zero)

    def baseline(
        name: str, pick: Callable[[list[Cell]], Cell | None], engine: str | None = None
    ) -> Baseline[Amount]:
        total, known = scale.zero, 0
        for cells in compared:
            cell, spent = pick(cells), scale.spent(cells)
            if cell is None:
                total += spent
                continue
            would = scale.would(_answers(cells), cell)
            # A few runs on an engine that is not compared may have been better than the best.
            total += min(would, spent) if name == ORACLE else would
            known += _answers(cells)
        return Baseline(
            name=name,
            engine=engine,
            total=total,
            regret=actual - total,
            regret_ratio=float(actual / total) - 1 if total else None,
            evidence_share=known / covered if covered else 0.0,
        )

    names = sorted({cell.engine_id for cells in compared for cell in _enough(cells)})
    engines = tuple(baseline(name, _only(name), name) for name in names)
    single = min(
        (one for one in engines if one.evidence_share >= LEAST_COVER),
        key=lambda one: one.total,
        default=None,
    )
    found = []
    if single is not None and single.engine is not None:
        found.append(baseline("best_single", _only(single.engine), single.engine))
    if compared:
        found.append(baseline(ORACLE, lambda cells: _best(cells, scale.measure)))
    if rules is not None and compared:
        found.append(baseline("rules", lambda cells: _only(rules.get(cells[0].key))(cells)))
    return MeasureRegret(
        measure=scale.measure,
        unit=scale.unit,
        runs=runs,
        compared_runs=covered,
        without_evidence_share=1 - covered / runs if runs else None,
        actual=actual,
        baselines=tuple(found),
        engines=engines,
        worst=_worst(compared, scale),
    )


def _can_compare(cells: list[Cell], measure: Measure) -> bool:
    if measure == "cost" and any(cell.cost is None for cell in cells):
        return False
    return len(_enough(cells)) > 1


def _enough(cells: Sequence[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.is_enough]


def _answers(cells: Sequence[Cell]) -> int:
    return sum(cell.answers for cell in cells)


def _paid(cells: Sequence[Cell]) -> Decimal:
    return sum((cell.asked_cost or Decimal(0) for cell in cells), start=Decimal(0))


def _to_pay(answers: int, cell: Cell) -> Decimal:
    return rounded(answers * (cell.cost_per_run or Decimal(0)))


def _took(cells: Sequence[Cell]) -> float:
    return sum(cell.asked_seconds for cell in cells)


def _to_take(answers: int, cell: Cell) -> float:
    return answers * (cell.seconds_per_run or 0.0)


def _only(engine: str | None) -> Callable[[list[Cell]], Cell | None]:
    return lambda cells: next((one for one in _enough(cells) if one.engine_id == engine), None)


def _best(cells: list[Cell], measure: Measure) -> Cell:
    return min(_enough(cells), key=lambda cell: figure(cell, measure))


def _worst(compared: Groups, scale: _Scale[Amount]) -> tuple[Waste[Amount], ...]:
    found = []
    for cells in compared:
        best = _best(cells, scale.measure)
        found.append(
            Waste(
                template_id=best.template_id,
                size=size_words(best.size_class),
                runs=_answers(cells),
                actual=scale.spent(cells),
                best=scale.would(_answers(cells), best),
                best_engine=best.engine_id,
            )
        )
    found.sort(key=lambda one: (one.best - one.actual, one.template_id))
    return tuple(one for one in found[:MOST_WORST] if one.actual > one.best)

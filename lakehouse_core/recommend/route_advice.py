"""Routing recommendations: a template that measurably costs less on another engine; and judging it.

Pure: evidence comes in (`lakehouse_core.views.measured`), proposals and verdicts go out.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from lakehouse_core.domain.money import per_thousand, rounded
from lakehouse_core.domain.trial import ID_PREFIX, SHARES, RouteTrial, TrialState
from lakehouse_core.views.compare import judge
from lakehouse_core.views.measured import money_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from lakehouse_core.views.measured import Cell, Measured

    Groups = Mapping[str, Collection[str]]  # by name, the engines in each

LEAST_RUNS = 5  # finished on each engine before a move is proposed; its range must be above zero
LEAST_DECIDED = 0.5  # of a template's reads must be in sizes where the engine wins
STEP_RUNS = 10  # finished on the new engine before the share grows
LEAST_GAIN = Decimal("0.0001")  # per month
HOURS_PER_MONTH = 730
EXPIRES_AFTER = timedelta(days=7)
MORE_FAILURES = 0.1
SLOWER = 1.5  # times the p95 that was promised, or that the old engine has
_SURE_80 = 1.2816
_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A template on one engine, all sizes together.

    Attributes:
        shadows: finished runs that nobody asked for.
        routable: answers given in groups that have both engines: those a trial can move.
    """

    runs: int
    failed: int
    p95_seconds: float | None
    seconds_per_run: float | None
    cost_per_run: Decimal | None
    spread: float | None
    shadows: int = 0
    routable: int = 0

    @classmethod
    def of(cls, cells: Iterable[Cell], groups: Collection[str] = ()) -> Side:
        """The cells of an engine put together; the slowest size gives the p95."""
        own = list(cells)
        finished = sum(cell.finished for cell in own)
        costs = [cell.cost for cell in own if cell.cost is not None]
        known = [cell for cell in own if cell.p95_seconds is not None]
        is_priced = finished and len(costs) == len(own)
        return cls(
            runs=sum(cell.runs for cell in own),
            failed=sum(cell.failed for cell in own),
            p95_seconds=max((cell.p95_seconds or 0.0 for cell in known), default=None),
            seconds_per_run=sum(c.total_seconds for c in own) / finished if finished else None,
            cost_per_run=rounded(sum(costs, start=Decimal(0)) / finished) if is_priced else None,
            spread=max((cell.spread or 0.0 for cell in own), default=None),
            shadows=sum(cell.shadows for cell in own),
            routable=sum(cell.answers_in(groups) for cell in own),
        )

    @property
    def finished(self) -> int:
        """Runs that ended well."""
        return self.runs - self.failed

    @property
    def answers(self) -> int:
        """Of those, the ones somebody asked for."""
        return self.finished - self.shadows

    @property
    def failure_rate(self) -> float:
        """Failed out of all."""
        return self.failed / self.runs if self.runs else 0.0

    @classmethod
    def from_json(cls, figures: Mapping[str, Any]) -> Side:
        """As it was when `figures` were written."""
        cost = figures["cost_per_run"]
        money = {"cost_per_run": None if cost is None else Decimal(str(cost))}
        found = cls(**{**figures, **money})
        # Trials of before this was told: all reads counted.
        return found if "routable" in figures else replace(found, routable=found.answers)

    def to_json(self) -> dict[str, Any]:
        """As `figures` has it: money is text."""
        return {
            "runs": self.runs,
            "failed": self.failed,
            "p95_seconds": self.p95_seconds,
            "seconds_per_run": self.seconds_per_run,
            "cost_per_run": None if self.cost_per_run is None else f"{self.cost_per_run:f}",
            "spread": self.spread,
            "shadows": self.shadows,
            "routable": self.routable,
        }


def proposals(found: Measured, groups: Groups, now: datetime) -> list[RouteTrial]:
    """Templates that measurably cost less on another engine than where most of them run.

    Args:
        found: the evidence, of all runs.
        groups: their engines. A trial only chooses within a group, so that no other reads count.
        now: when they are proposed.
    """
    templates: dict[str, list[list[Cell]]] = {}
    for cells in found.per_key().values():
        templates.setdefault(cells[0].template_id, []).append(cells)
    advised = (_advise(sizes, found, groups, now) for sizes in templates.values())
    return [one for one in advised if one is not None]


def _advise(
    sizes: list[list[Cell]], found: Measured, groups: Groups, now: datetime
) -> RouteTrial | None:
    verdicts = [(judge(cells, found.currency), cells) for cells in sizes]
    won = [(one.winner, cells) for one, cells in verdicts if one.winner and one.measure == "cost"]
    winners = {winner.engine_id for winner, _ in won}
    if len(winners) != 1:
        return None  # nobody wins, or another engine in another size
    # A size that hardly ran, or in which engines are equally good, does not speak against it.
    (to,) = winners
    near = {name for name, engines in groups.items() if to in engines}
    cells = [cell for _, some in won for cell in some]
    decided, asked = (
        sum(cell.answers_in(near) for cell in some) for some in (cells, chain.from_iterable(sizes))
    )
    if decided < LEAST_DECIDED * asked:
        return None
    engines = sorted({cell.engine_id for cell in cells})
    sides = {
        name: Side.of(
            (cell for cell in cells if cell.engine_id == name),
            {group for group in near if name in groups[group]},
        )
        for name in engines
    }
    of = max((name for name in engines if name != to), key=lambda name: sides[name].routable)
    here, there = sides[of], sides[to]
    if min(here.finished, there.finished) < LEAST_RUNS or not here.routable:
        return None
    if here.cost_per_run is None or there.cost_per_run is None:
        return None
    per_month = Decimal(here.routable * HOURS_PER_MONTH) / Decimal(repr(found.hours))
    saved = here.cost_per_run - there.cost_per_run
    off = money_of(_SURE_80 * math.hypot(*(_error(side) for side in (here, there))))
    gain, low, high = (
        ((saved + way) * per_month).quantize(_MICRO) for way in (Decimal(0), -off, off)
    )
    if gain < LEAST_GAIN or low <= 0:
        return None
    return _proposal((cells[0].template_id, of, to), sides, (gain, low, high), found, now)


def _proposal(
    move: tuple[str, str, str],
    sides: Mapping[str, Side],
    gains: tuple[Decimal, Decimal, Decimal],
    found: Measured,
    now: datetime,
) -> RouteTrial:
    template, of, to = move
    here, there = sides[of], sides[to]
    gain, low, high = gains
    plan = {"template": template, "from": of, "to": to, "shares": SHARES}
    digest = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
    change = f"p95 {here.p95_seconds:.3g} s → {there.p95_seconds:.3g} s"
    return RouteTrial(
        trial_id=f"{ID_PREFIX}{digest[:6]}{int(now.timestamp()):x}",
        revision=0,
        template_id=template,
        from_engine=of,
        to_engine=to,
        state=TrialState.PROPOSED,
        share=0,
        title=f"Template {template[:12]} from {of} to {to}: -{gain:f} {found.currency} per month "
        f"({low:f} to {high:f}, {here.finished + there.finished} runs), {change}",
        risk=f"Reads of this template only, and only those that come through the gateway. "
        f"{SHARES[0]} % go to {to} first, {SHARES[1]} % and all after at least {STEP_RUNS} runs "
        "each; all go back by themselves when it costs more, fails more or is much slower there.",
        currency=found.currency,
        gain_usd_month=gain,
        gain_low=low,
        gain_high=high,
        runs=here.runs + there.runs,
        figures={
            "window": found.window.label,
            "before": {name: side.to_json() for name, side in sides.items()},
        },
        plan_hash=digest,
        proposed_at=now,
        evidence_at=now,
        updated_at=now,
        expires_at=now + EXPIRES_AFTER,
    )


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """What comes of a look at a trial: it waits, goes on, or goes back; and why."""

    to: Literal["wait", "on", "back"]
    why: str


def judge_step(trial: RouteTrial, here: Side, there: Side) -> StepVerdict:
    """Whether what was measured since the present share began bears the trial out.

    Args:
        trial: as it stands.
        here: the old engine since then; before the proposal, where too little runs there now.
        there: the new engine since then.
    """
    runs, engine = there.runs, trial.to_engine
    if runs < STEP_RUNS:
        return StepVerdict("wait", f"{runs} of {STEP_RUNS} runs on {engine} at {trial.share} %")
    if there.failure_rate > here.failure_rate + MORE_FAILURES:
        rates = f"{there.failure_rate:.0%} of {runs} runs fail on {engine}"
        return StepVerdict("back", f"{rates}, {here.failure_rate:.0%} on {trial.from_engine}")
    promised = trial.figures["before"][engine]["p95_seconds"] or 0.0
    limit = SLOWER * max(promised, here.p95_seconds or 0.0)
    if there.p95_seconds is not None and there.p95_seconds > limit > 0:
        said = f"p95 is {there.p95_seconds:.3g} s on {engine}, {promised:.3g} s were promised"
        return StepVerdict("back", said)
    if there.cost_per_run is None or here.cost_per_run is None:
        return StepVerdict("wait", f"what runs on {engine} cost is not charged yet")
    costs = (
        f"{per_thousand(there.cost_per_run)} {trial.currency} per 1,000 runs on {engine}, "
        f"{per_thousand(here.cost_per_run)} on {trial.from_engine}"
    )
    if there.cost_per_run >= here.cost_per_run:
        return StepVerdict("back", f"it saves nothing: {costs}")
    return StepVerdict("on", costs)


def _error(side: Side) -> float:
    """Standard error of the cost of a run."""
    cost = float(side.cost_per_run or 0)
    return cost * (side.spread or 0.0) / math.sqrt(max(side.finished, 1))

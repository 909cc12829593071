"""Tables of the engine comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pages.parts.cells import counted, number, one_line, percent, show, wide

if TYPE_CHECKING:
    from lakehouse_core.views.compare import Comparison
    from lakehouse_core.views.regret import MeasureRegret
    from lakehouse_core.views.replay import Replay

HOW_COMPARED = """
- **Runs**: reads of the template that finished or failed; statements that were wrong themselves are
  left out. Engines with fewer than five finished runs are shown, but not compared.
- **Shadow runs**: among them, reads run once more to have evidence; in no regret as queries.
- **Size**: what the gateway estimated before the run, in classes of factor four, so that a day is
  not compared with a year; statements that did not come through the gateway have no estimate.
- **p50, p95**: of finished runs, waiting for a place in the gateway included. **Spread**: standard
  deviation of the logarithm of the seconds.
- **Cost of a run**: the template's spend on the engine divided over its runs by their time; failed
  runs are paid by those that finished.
- **Winner**: by cost where all engines compared have one, else by time; none when the difference is
  below 2 % or less than 80 % sure. **Sure**: from the spread and number of runs on both.

`lakehelm route compare --json` has the same numbers.
"""
HOW_REGRET = """
What reads really cost and took, against the same reads elsewhere, from measured runs only:
templates of one size that at least two engines have finished five times.

- **best single**: all of them on the one engine that is best for them together; what it has never
  run stays as it was, and the evidence share says how much that is.
- **oracle**: each on the engine that was best for it, known afterwards, or as it was where that was
  better; nobody can do better, and with few runs it looks better than it is.
- **Regret**: what was spent above that; below zero routing did better than the baseline.

`lakehelm route regret --json` has the same numbers, and the rules alone beside them;
`lakehouse_routing_regret_ratio` is the metric.
"""
NAMES = {"best_single": "best single engine", "oracle": "oracle", "rules": "the rules alone"}


def contest_grid(found: Comparison) -> None:
    """One row per template and size: who wins and why."""
    rows = [
        {
            "statement": one_line(one.template) or one.template_id,
            "size": one.size,
            "runs": one.runs,
            "winner": one.winner,
            "sure": percent(one.confidence),
            "why": one.why,
        }
        for one in found.contests
    ]
    show(
        rows,
        {
            "statement": wide("Template"),
            "size": "Estimated size",
            "runs": counted("Runs"),
            "winner": "Winner",
            "sure": number("Sure", "%.0f %%"),
            "why": wide("Why"),
        },
    )


def engine_grid(found: Comparison) -> None:
    """One row per template, size and engine: the figures behind the verdicts."""
    rows = [
        {
            "template": one.template_id,
            "size": one.size,
            "engine": engine.engine_id,
            "runs": engine.runs,
            "shadows": engine.shadow_runs,
            "p50": engine.p50_seconds,
            "p95": engine.p95_seconds,
            "spread": engine.spread,
            "cost": None if engine.cost_per_run is None else float(engine.cost_per_run),
            "basis": ", ".join(engine.basis) or None,
            "failures": percent(engine.failure_rate),
            "compared": "yes" if engine.is_compared else "too few runs",
        }
        for one in found.contests
        for engine in one.engines
    ]
    show(
        rows,
        {
            "template": "Template",
            "size": "Estimated size",
            "engine": "Engine",
            "runs": counted("Runs"),
            "shadows": counted("Shadow runs"),
            "p50": number("p50", "%.3f s"),
            "p95": number("p95", "%.3f s"),
            "spread": number("Spread", "%.2f", "of the logarithm of the seconds"),
            "cost": number("Cost of a run", f"%.6f {found.currency}"),
            "basis": "Basis of the cost",
            "failures": number("Failures", "%.1f %%"),
            "compared": "Compared",
        },
    )


def regret_grid(found: MeasureRegret[Any]) -> None:
    """One row per baseline."""
    unit = found.unit
    rows = [
        {
            "against": NAMES.get(one.name, one.name),
            "engine": one.engine,
            "total": float(one.total),
            "regret": float(one.regret),
            "ratio": percent(one.regret_ratio),
            "evidence": percent(one.evidence_share),
        }
        for one in (*found.baselines, *found.engines)
    ]
    show(
        rows,
        {
            "against": "Against",
            "engine": "Engine",
            "total": number("It would have been", f"%.4f {unit}"),
            "regret": number("Regret", f"%.4f {unit}"),
            "ratio": number("Regret", "%.1f %%", "As a share of the baseline."),
            "evidence": number("Evidence", "%.0f %%", "Of the runs compared."),
        },
    )


def replay_grid(found: Replay) -> None:
    """Before and after, in money and in time, with the range of the latter."""
    figures = (("Cost", found.cost), ("Time on engines", found.seconds))
    rows = [
        {
            "measure": f"{label}, {one.unit}",
            "before": float(one.before),
            "after": float(one.after),
            "low": float(one.low),
            "high": float(one.high),
            "change": percent(float(one.after) / float(one.before) - 1 if one.before else None),
        }
        for label, one in figures
        if one is not None
    ]
    show(
        rows,
        {
            "measure": "Measure",
            "before": number("Before", "%.6f"),
            "after": number("After", "%.6f"),
            "low": number("At least", "%.6f", "four of five times"),
            "high": number("At most", "%.6f", "four of five times"),
            "change": number("Change", "%.1f %%"),
        },
    )


def moves_grid(found: Replay) -> None:
    """One row per template, size and user that would go elsewhere."""
    rows = [
        {
            "template": one.template_id,
            "size": one.size,
            "user": one.user,
            "runs": one.runs,
            "engine": one.engine,
            "to": one.to,
            "before": None if one.cost_before is None else float(one.cost_before),
            "after": None if one.cost_after is None else float(one.cost_after),
            "took": one.seconds_before,
            "would": one.seconds_after,
        }
        for one in found.moves
    ]
    show(
        rows,
        {
            "template": "Template",
            "size": "Estimated size",
            "user": "User",
            "runs": counted("Runs"),
            "engine": "Ran on",
            "to": "Would run on",
            "before": number("Cost before", f"%.6f {found.currency}"),
            "after": number("Cost after", f"%.6f {found.currency}"),
            "took": number("Time before", "%.3f s"),
            "would": number("Time after", "%.3f s"),
        },
    )

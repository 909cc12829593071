"""`lakehelm cost forecast|budgets|alerts|anomalies`: what is coming, what stands out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.options import EngineOption, TeamOption, WorkloadOption
from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, QuietFlag, after_group
from lakehouse_core.cli.spend import reading_costs
from lakehouse_core.domain.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.views.costs import CostRow


def forecast(  # noqa: PLR0913 one option per filter
    ctx: typer.Context,
    *,
    period: Annotated[str, typer.Option("--period", help="day, week or month.")] = "month",
    engine: EngineOption = None,
    workload: WorkloadOption = None,
    team: TeamOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """What the running period will have cost at its end, with a range and the method."""
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.forecasts import spend_forecast  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    filters = CostFilters(engine=engine, workload=workload, team=team)
    with reading_costs(file, engine) as (_, store, rules):
        found = spend_forecast(store, filters, rules, utc_now, period=period)
    out.record(asdict(found), title=f"Forecast, {period} from {found.start}, {found.currency}")


def budgets(
    ctx: typer.Context,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Every budget: spent, forecast, what it went to; exit code 1 when one is used up."""
    from lakehouse_core.views.budgets import budget_statuses  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file) as (settings, store, rules):
        found = budget_statuses(store, settings.finops.budgets, rules, utc_now)
    rows: list[dict[str, Any]] = [
        {
            "name": one.name,
            "scope": one.scope,
            "state": one.state,
            "start": one.start,
            "end": one.end,
            "spent": one.spent,
            "amount": one.budget.amount,
            "currency": one.budget.currency,
            "ratio": one.ratio,
            "forecast": one.ahead.found,
            "who": _who(one.report.rows[:5]),
        }
        for one in found
    ]
    columns = ("name", "scope", "state", "spent", "amount", "currency", "end")
    out.rows(rows, columns=columns, title="Budgets")
    if not rows:
        out.say("No budget is configured: add one under `finops.budgets` (docs/finops.md).")
    if any(one.state == "critical" for one in found):
        raise typer.Exit(ExitCode.FAILURE)


def alerts(
    ctx: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, help="Of so many days.")] = 30,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Alerts that were raised: what, how much, since when, who, and who was told."""
    from lakehouse_core.views.budgets import list_alerts  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file) as (_, store, _rules):
        found = list_alerts(store, utc_now, days=days)
    columns = ("raised_at", "kind", "title", "since", "delivered")
    out.rows(found, columns=columns, title="Alerts")


def anomalies(
    ctx: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, max=60, help="The last so many.")] = 7,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Days that cost more than days like them, with who caused it."""
    from lakehouse_core.views.forecasts import unusual_spend  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file) as (settings, store, rules):
        found = unusual_spend(store, rules, settings.finops.anomalies, utc_now, days=days)
    rows = [
        asdict(one.anomaly)
        | {
            "dimension": one.dimension,
            "name": one.name,
            "currency": one.currency,
            "excess": one.anomaly.excess,
            "contributors": _who(one.contributors),
        }
        for one in found
    ]
    columns = ("day", "dimension", "name", "amount", "usual", "excess", "currency", "since")
    out.rows(rows, columns=columns, title=f"Unusual spend of the last {days} days")


def _who(rows: Iterable[CostRow]) -> list[dict[str, Any]]:
    return [
        {"names": (row.first, row.second), "cost": row.cost, "change": row.change} for row in rows
    ]

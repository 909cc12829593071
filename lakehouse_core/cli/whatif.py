"""`lakehelm cost whatif price|move|idle|maintenance`: what would change, from what was measured."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated

import typer

from lakehouse_core.cli.options import WindowOption
from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, QuietFlag, after_group
from lakehouse_core.cli.spend import reading_costs
from lakehouse_core.domain.clock import utc_now

if TYPE_CHECKING:
    from lakehouse_core.views.whatif import Answer

app = typer.Typer(no_args_is_help=True, help="What would change, per month, from measured figures.")
EngineArgument = Annotated[str, typer.Option("--engine", help="The engine.")]


@app.command("price")
def price(  # noqa: PLR0913 one option per part of the question
    ctx: typer.Context,
    *,
    engine: EngineArgument,
    percent: Annotated[str, typer.Option("--percent", help="e.g. -10 or 25.")],
    window: WindowOption = "30d",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """An engine at another price."""
    from lakehouse_core.domain.errors import FilterError  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 as above
    from lakehouse_core.views.whatif import price_change  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    try:
        change = Decimal(percent)
    except InvalidOperation as error:
        raise FilterError(f"{percent!r} is no number of percent, e.g. -10.") from error
    with reading_costs(file, engine) as (_, store, _rules):
        filters = CostFilters(window=window)
        _tell(out, price_change(store, filters, utc_now, engine=engine, percent=change))


@app.command("move")
def move(  # noqa: PLR0913 one option per part of the question
    ctx: typer.Context,
    *,
    template: Annotated[str, typer.Option("--template", help="The id of a template.")],
    to: Annotated[str, typer.Option("--to", help="The engine it would run on.")],
    of: Annotated[str | None, typer.Option("--from", help="Default: where it ran most.")] = None,
    window: WindowOption = "30d",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """A template on another engine, where it has run already."""
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.whatif import template_elsewhere  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file, to) as (_, store, _rules):
        filters = CostFilters(window=window, engine=of)
        _tell(out, template_elsewhere(store, filters, utc_now, template=template, to=to))


@app.command("idle")
def idle(  # noqa: PLR0913, PLR0917 one option per part of the question
    ctx: typer.Context,
    engine: EngineArgument,
    minutes: Annotated[int, typer.Option("--minutes", min=0, help="Idle for so long.")] = 10,
    restart: Annotated[int, typer.Option("--restart", min=0, help="Minutes a start takes.")] = 2,
    window: WindowOption = "30d",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """An engine that is shut down when it was idle for some minutes."""
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.whatif import idle_shutdown  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file, engine) as (_, store, _rules):
        answer = idle_shutdown(
            store,
            CostFilters(window=window),
            utc_now,
            engine=engine,
            minutes=minutes,
            restart_minutes=Decimal(restart),
        )
        _tell(out, answer)


@app.command("maintenance")
def maintenance(
    ctx: typer.Context,
    to: Annotated[str, typer.Argument(help="on or off")],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Maintenance switched on or off."""
    from lakehouse_core.views.whatif import maintenance_switched  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file) as (_, store, _rules):
        _tell(out, maintenance_switched(store, utc_now, to=to))


def _tell(out: Output, answer: Answer) -> None:
    from lakehouse_core.finops.whatif import NoAnswer  # noqa: PLC0415 keeps --help fast

    out.record(asdict(answer) | {"answered": not isinstance(answer, NoAnswer)}, title="What if")

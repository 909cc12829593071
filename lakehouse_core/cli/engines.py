"""`lakehelm engines`: the registry of engines, and the state people want them in."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.bootstrap import open_store
from lakehouse_core.cli.options import EngineOption, WindowOption
from lakehouse_core.cli.output import (
    ConfigFile,
    ExitCode,
    JsonFlag,
    Output,
    QuietFlag,
    after_group,
    load,
)
from lakehouse_core.cli.views import check_known_engine, reading_store
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.engine import ConfiguredState
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.window import DEFAULT_WINDOW

if TYPE_CHECKING:
    from lakehouse_core.views.engines import EngineView

engines = typer.Typer(
    invoke_without_command=True,
    help="Engines: the state asked for, the state seen, load; put one into maintenance.",
)


@engines.callback()
def engines_default(
    ctx: typer.Context,
    window: WindowOption = DEFAULT_WINDOW,
    engine: EngineOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Engines: the state asked for, the state seen, and how they served in the window."""
    if ctx.invoked_subcommand is not None:
        ctx.obj = (json, quiet, config)
        return
    from lakehouse_core.views.engines import list_engines  # noqa: PLC0415 keeps --help fast

    filters = Filters(window=window, engine=engine)
    with reading_store(config) as (settings, store):
        check_known_engine(settings, store, engine)
        seen = list_engines(store, filters, utc_now, probe_every=settings.agents.probe_every)
    Output(json=json, quiet=quiet).rows(
        [_engine(view) for view in seen.engines],
        columns=(
            *("engine_id", "state", "configured", "version", "running_queries", "queued_queries"),
            *("queries", "queries_per_hour", "error_ratio", "p50_ms", "p95_ms", "probed_at"),
        ),
        title=f"Engines, {seen.window.label}",
    )


@engines.command("set")
def engines_set(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    engine: Annotated[str, typer.Argument(help="The engine's id, e.g. trino.")],
    state: Annotated[
        ConfiguredState,
        typer.Option("--state", help="maintenance and inactive: it gets no new statements."),
    ],
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; shown to whoever is not served by it.")
    ] = None,
    actor: Annotated[
        str | None, typer.Option("--actor", help="Who asks. [default: you]", show_default=False)
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Put an engine into service or take it out; what runs on it ends in peace.

    Exit code: 0 done, 1 refused.
    """
    from lakehouse_core.views.switches import set_engine  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with open_store(load(file).config) as store:
        who = actor or getpass.getuser()
        answer = set_engine(store, engine, state, actor=who, reason=reason)
    if out.is_json:
        out.record(answer)
    else:
        out.say(answer.answer or "")
    if answer.state != "done":
        raise typer.Exit(ExitCode.FAILURE)


def _engine(view: EngineView) -> dict[str, Any]:
    served = {k: v for k, v in asdict(view.served).items() if k != "engine_id"}
    ratios = {
        "error_ratio": view.served.error_ratio,
        "success_ratio": view.served.success_ratio,
    }
    state = {"state": view.state, "probe_is_stale": view.probe_is_stale}
    return asdict(view.engine) | state | served | ratios

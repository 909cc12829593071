"""The `lakehelm` command: what it offers, and how its end is told.

A command's module is imported when the command is called, so that `lakehelm --help` stays quick.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from lakehouse_core.cli.output import (
    GLOBAL_OPTIONS,
    ConfigFile,
    ExitCode,
    GlobalOptions,
    JsonFlag,
    QuietFlag,
    exit_code,
)
from lakehouse_core.domain.errors import LakehouseError

if TYPE_CHECKING:
    from collections.abc import Sequence

_HERE = "lakehouse_core.cli"
_RUN, _OBSERVE, _SPEND, _CARE, _WIRING = "Run", "Observe", "Spend", "Care", "Wiring"


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its module, what it is called there, and what `--help` says about it.

    The attribute is a `typer.Typer` (a group of commands) or a function (one command).
    """

    name: str
    module: str
    attribute: str
    help: str
    panel: str


ENTRIES: tuple[Entry, ...] = (
    Entry("up", "up", "up", "Start and supervise engines, agents, gateway and pages.", _RUN),
    Entry("down", "up", "down", "Stop what `up` started.", _RUN),
    Entry("doctor", "up", "doctor", "Check this machine, and say how to fix what is wrong.", _RUN),
    Entry("demo", "demo", "app", "Build the demo lakehouse; run a workload on it.", _RUN),
    Entry("collect", "collect", "collect", "Read telemetry from the sources now.", _RUN),
    Entry("pipeline", "pipeline", "app", "Query history as Iceberg tables; its figures.", _RUN),
    Entry("agents", "agents", "agents", "What the agents do; run a job at once.", _OBSERVE),
    Entry("engines", "engines", "engines", "Engines: states, load; set one's state.", _OBSERVE),
    Entry("queries", "views", "queries", "Queries over all engines.", _OBSERVE),
    Entry("workloads", "workloads", "workloads", "Templates: runs, users, p95, bytes.", _OBSERVE),
    Entry("usage", "workloads", "usage", "Columns of a table by role and engine.", _OBSERVE),
    Entry("tables", "views", "tables", "Tables of the lake and their structure.", _OBSERVE),
    Entry("health", "views", "health", "Health of tables: state, score, contributors.", _OBSERVE),
    Entry("streams", "streams", "streams", "Flink jobs: commits, gaps, checkpoints.", _OBSERVE),
    Entry("sql", "sql", "app", "Understand SQL: templates, tables, columns.", _OBSERVE),
    Entry("cost", "cost", "app", "What engines cost; does it add up; bills, prices.", _SPEND),
    Entry("export", "export", "app", "Costs for other tools: FOCUS, CSV, Grafana.", _SPEND),
    Entry("recommend", "recommend", "app", "What is proposed; approve, reject, snooze.", _CARE),
    Entry("maintain", "maintain", "app", "Approved work: waits, runs, done; cancel.", _CARE),
    Entry("layout", "layout", "app", "Which order of rows spares readers most; the proof.", _CARE),
    Entry("audit", "audit", "app", "Check the record of decisions and actions.", _CARE),
    Entry("route", "route", "app", "Where a statement would run and why; the rules.", _WIRING),
    Entry("config", "config", "app", "Check and show the configuration.", _WIRING),
    Entry("store", "store", "app", "Check, back up and restore the telemetry store.", _WIRING),
)


class LazyGroup(TyperGroup):
    """A group whose commands are stand-ins until one of them is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the stand-in by the real command, then go on as usual."""
        entry = next((e for e in ENTRIES if args and e.name == args[0]), None)
        if entry is not None:
            _log_to_stderr()
            self.commands[entry.name] = load_command(entry)
        return super().resolve_command(ctx, args)


def load_command(entry: Entry) -> Any:
    """Import the module of a command and build the command."""
    target = getattr(importlib.import_module(f"{_HERE}.{entry.module}"), entry.attribute)
    if isinstance(target, typer.Typer):
        command: Any = get_group(target)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(entry.name, help=target.__doc__ or entry.help)(target)
        command = get_command(alone)
    command.name = entry.name
    return command


def build_app() -> typer.Typer:
    """The root command with a stand-in for every entry."""
    app = typer.Typer(
        cls=LazyGroup,
        name="lakehelm",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="The helm of an Apache Iceberg lakehouse that several engines share.",
        epilog="Exit codes: 0 ok, 1 findings or failure, 2 usage or configuration, "
        "3 not running, or another dependency is unreachable, 4 partial.",
    )
    app.callback()(_root)
    for entry in ENTRIES:
        app.command(entry.name, help=entry.help, rich_help_panel=entry.panel)(_stand_in)
    return app


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; an error of ours is a line, not a traceback."""
    arguments = list(sys.argv[1:] if args is None else args)
    is_debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        get_command(build_app())(arguments, prog_name="lakehelm")
    except LakehouseError as error:
        _report(str(error), error, is_debug=is_debug)
        sys.exit(exit_code(error))
    except Exception as error:  # noqa: BLE001 the outermost edge: a bug must not look like a result
        message = f"internal error: {type(error).__name__}: {error} (--debug shows where)"
        _report(message, error, is_debug=is_debug)
        sys.exit(ExitCode.FAILURE)


def _log_to_stderr() -> None:
    from agents.logs import log_to_stderr  # noqa: PLC0415 keeps --help fast

    log_to_stderr()


def _report(message: str, error: Exception, *, is_debug: bool) -> None:
    if is_debug:
        typer.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    typer.echo(f"lakehelm: {message}", err=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 only --version needs it

        typer.echo(f"lakehelm {version('lakehelm')}")
        raise typer.Exit


def _root(
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del debug, version  # both are dealt with before this runs
    GLOBAL_OPTIONS.set(GlobalOptions(json=json, quiet=quiet, config=config))


def _stand_in() -> None:
    """Stand in `--help` for a command that is not imported yet."""

"""`lakehelm agents`: what the agents do, and asking them to run a job at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.output import (
    ConfigFile,
    ExitCode,
    JsonFlag,
    Output,
    QuietFlag,
    after_group,
    load,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.domain.agent import AgentRequest
    from lakehouse_core.views.agents import AgentView

_COLUMNS = (
    *(
        "agent",
        "state",
        "circuit",
        "lag_seconds",
        "newest_event_age_seconds",
        "last_run",
        "rows",
        "dead_letters",
    ),
    *("last_error", "next_run"),
)
_PAUSE_SECONDS = 0.3

agents = typer.Typer(
    invoke_without_command=True,
    help="What the agents do: runs, lag, errors, circuits; run a job at once.",
)


@agents.callback()
def agents_default(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """Show every job: state, circuit, lag, last run, errors, progress, and when it is due."""
    if ctx.invoked_subcommand is None:
        _list(Output(json=json, quiet=quiet), config)
    else:
        ctx.obj = (json, quiet, config)


@agents.command("list")
def agents_list(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """Show every job: state, circuit, lag, last run, errors, progress, and when it is due."""
    _list(*after_group(ctx, json, quiet, config))


@agents.command("run")
def agents_run(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="A job, e.g. collect:trino; see `lakehelm agents`.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds to wait at most.")
    ] = 600,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Ask the agents process to run a job at once.

    Exit code with --wait: 0 it ran well, 4 partly, 1 it failed or was refused, 3 it did not end in
    time. Without --wait: 0 when the wish was noted.
    """
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.requests import ask_for_run, follow  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    with open_store(load(file).config) as store:
        asked = ask_for_run(store, name)
        if wait:
            out.say(f"Asked for {name}; waiting for its run")
            deadline = time.monotonic() + timeout
            asked = follow(store, asked, wait=lambda: _pause(deadline))
    if out.is_json:
        out.record(asked)
    else:
        out.say(_sentence(asked))
    if wait:
        code = _exit_code(asked)
        if code != ExitCode.OK:
            raise typer.Exit(code)


def _list(out: Output, config: Path | None) -> None:
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.clock import utc_now  # noqa: PLC0415 as above
    from lakehouse_core.views.agents import list_agents  # noqa: PLC0415 as above
    from lakehouse_core.views.filters import Filters  # noqa: PLC0415 as above
    from lakehouse_core.views.freshness import jobs  # noqa: PLC0415 as above

    settings = load(config).config
    with open_store(settings) as store:
        found = list_agents(store, jobs(settings), Filters(), utc_now)
    rows = [_agent(view) for view in found.agents]
    out.rows(rows, columns=_COLUMNS, one_line=("last_error",), title="Agents")


def _pause(deadline: float) -> bool:
    if time.monotonic() >= deadline:
        return False
    time.sleep(_PAUSE_SECONDS)
    return True


def _sentence(asked: AgentRequest) -> str:
    if asked.state == "waiting":
        return f"{asked.agent}: waits for the schedule to take it up"
    if asked.state == "running":
        return f"{asked.agent}: runs"
    return f"{asked.agent}: {asked.answer}"


def _exit_code(asked: AgentRequest) -> ExitCode:
    if asked.state in {"waiting", "running"}:
        return ExitCode.UNREACHABLE
    if asked.state == "refused":
        return ExitCode.FAILURE
    outcome = (asked.answer or "").partition(":")[0]
    return {"ok": ExitCode.OK, "partial": ExitCode.PARTIAL}.get(outcome, ExitCode.FAILURE)


def _agent(view: AgentView) -> dict[str, Any]:
    last, schedule, progress = view.last, view.schedule, view.progress
    return {
        "agent": view.agent,
        "state": view.state,
        "circuit": view.circuit,
        "circuit_since": schedule.since if schedule else None,
        "circuit_reason": schedule.reason if schedule else None,
        "silent_runs": schedule.failures if schedule else None,
        "abandoned_runs": schedule.abandoned if schedule else None,
        "every_seconds": view.job.every if view.job else None,
        "lag_seconds": view.lag_seconds,
        "newest_event_at": last.newest_event_at if last else None,
        "newest_event_age_seconds": view.newest_event_age_seconds,
        "last_run": last.started_at if last else None,
        "outcome": last.outcome if last else None,
        "last_rows": last.last_rows if last else None,
        "rows": last.rows_written if last else None,
        "dead_letters": last.dead_letters if last else None,
        "last_error": last.last_error if last else None,
        "last_error_at": last.errored_at if last else None,
        "next_run": view.next_at,
        "progress": progress,
        "request": view.request,
    }

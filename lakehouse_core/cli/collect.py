"""`lakehelm collect` and `lakehelm agents`: read telemetry now; what the agents did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, Output, QuietFlag, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents.collect import CollectReport
    from lakehouse_core.views.agents import AgentView

_COLLECT_COLUMNS = ("source", "outcome", "rows", "dead_letters", "lag_seconds", "seconds", "error")
_AGENT_COLUMNS = ("agent", "state", "lag_seconds", "last_run", "rows", "dead_letters", "next_run")


def collect(
    source: Annotated[
        str | None, typer.Argument(help="Only this source, e.g. trino; all when left out.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read once and end (always so; for scripts to say it).")
    ] = True,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Read telemetry from the sources now, beside the agents or without them.

    Exit code 0: all read; 3: no source answers; 4: some do not, or some rows were not understood.
    """
    from agents.logs import log_to_stderr  # noqa: PLC0415 keeps --help fast
    from agents.once import collect_all  # noqa: PLC0415 as above

    log_to_stderr()
    del once  # the running agents are the other way
    out = Output(json=json, quiet=quiet)
    reports = collect_all(load(config).config, (source,) if source else ())
    out.rows([_report(r) for r in reports], columns=_COLLECT_COLUMNS, title="Collected")
    code = _exit_code(reports)
    if code != ExitCode.OK:
        raise typer.Exit(code)


def agents(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Show what the agents did: per job its state, lag, last run, errors, and when it is due."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.clock import utc_now  # noqa: PLC0415 as above
    from lakehouse_core.views.agents import list_agents  # noqa: PLC0415 as above
    from lakehouse_core.views.filters import Filters  # noqa: PLC0415 as above
    from lakehouse_core.views.freshness import jobs  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    store = open_store(settings)
    try:
        found = list_agents(store, jobs(settings), Filters(), utc_now)
    finally:
        store.close()
    now = utc_now()
    out.rows([_agent(a, now) for a in found.agents], columns=_AGENT_COLUMNS, title="Agents")


def _report(report: CollectReport) -> dict[str, Any]:
    return {
        "source": report.source,
        "outcome": report.result.outcome,
        "rows": report.rows,
        "dead_letters": report.dead_letters,
        "lag_seconds": report.lag_seconds,
        "watermark": report.watermark,
        "seconds": report.seconds,
        "error": report.result.error,
    }


def _exit_code(reports: Sequence[CollectReport]) -> ExitCode:
    outcomes = {report.result.outcome for report in reports}
    if outcomes <= {"ok"}:
        return ExitCode.OK
    if outcomes == {"failed"}:
        is_away = all(report.is_unreachable for report in reports)
        return ExitCode.UNREACHABLE if is_away else ExitCode.FAILURE
    return ExitCode.PARTIAL


def _agent(view: AgentView, now: Any) -> dict[str, Any]:
    last = view.last
    newest = last.newest_event_at if last else None
    return {
        "agent": view.agent,
        "state": view.state,
        "every_seconds": view.job.every if view.job else None,
        "lag_seconds": max(0.0, (now - newest).total_seconds()) if newest else None,
        "last_run": last.started_at if last else None,
        "outcome": last.outcome if last else None,
        "last_rows": last.last_rows if last else None,
        "rows": last.rows_written if last else None,
        "dead_letters": last.dead_letters if last else None,
        "last_error": last.last_error if last else None,
        "last_error_at": last.errored_at if last else None,
        "next_run": view.next_at,
    }

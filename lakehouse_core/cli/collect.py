"""`lakehelm collect`: read telemetry now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, Output, QuietFlag, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents.collect import CollectReport

_COLLECT_COLUMNS = (
    *("source", "outcome", "rows", "dead_letters", "newest_event_age_seconds", "seconds"),
    "error",
)


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
    from agents.once import collect_all  # noqa: PLC0415 keeps --help fast

    del once  # the running agents are the other way
    out = Output(json=json, quiet=quiet)
    reports = collect_all(load(config).config, (source,) if source else ())
    out.rows([_report(r) for r in reports], columns=_COLLECT_COLUMNS, title="Collected")
    code = _exit_code(reports)
    if code != ExitCode.OK:
        raise typer.Exit(code)


def _report(report: CollectReport) -> dict[str, Any]:
    return {
        "source": report.source,
        "outcome": report.result.outcome,
        "rows": report.rows,
        "dead_letters": report.dead_letters,
        "newest_event_age_seconds": report.newest_event_age_seconds,
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

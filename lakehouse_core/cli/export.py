"""`lakehelm export focus|check|csv|grafana`: the same numbers for other tools."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakehouse_core.cli.options import ByOption, EngineOption, WindowOption, dimensions
from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, Output, QuietFlag
from lakehouse_core.cli.spend import reading_costs
from lakehouse_core.domain.clock import utc_now

if TYPE_CHECKING:
    from lakehouse_core.finops.focus_check import Verdict
    from lakehouse_core.finops.focus_columns import Version

app = typer.Typer(no_args_is_help=True, help="Costs for other tools: FOCUS, CSV, Grafana.")
OutOption = Annotated[Path, typer.Option("--out", help="The file to write.")]
VersionOption = Annotated[str, typer.Option("--focus", help="Version of FOCUS: 1.4 or 1.2.")]


@app.command("focus")
def focus(
    out: OutOption,
    window: WindowOption = "month",
    focus: VersionOption = "1.4",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Write charges and their split as FOCUS (.parquet, else CSV), and check what was written."""
    from lakehouse_core.finops.focus import export_focus  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.window import parse_window  # noqa: PLC0415 as above

    told = Output(json=json, quiet=quiet)
    version = _version(focus)
    span = parse_window(window, utc_now())
    with reading_costs(config) as (settings, store, rules):
        found = export_focus(
            store, rules, settings.finops.focus, span.start, span.end, out, version
        )
    told.record(
        {
            "path": found.path,
            "version": found.version,
            "start": found.start,
            "end": found.end,
            "ok": found.is_ok,
            "metered": found.metered,
            "differences": found.differences,
            "unpriced_charges_left_out": found.unpriced,
            "check": _verdict(found.verdict),
        }
    )
    if not found.is_ok:
        raise typer.Exit(ExitCode.FAILURE)


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="A FOCUS file, CSV or Parquet.")],
    focus: Annotated[
        str | None, typer.Option("--focus", help="1.4 or 1.2. [default: what the columns say]")
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Check a FOCUS file: columns, nulls, formats, products, sums; exit code 1 when broken."""
    from lakehouse_core.finops.focus_check import check_file  # noqa: PLC0415 keeps --help fast

    told = Output(json=json, quiet=quiet)
    verdict = check_file(file, None if focus is None else _version(focus))
    if told.is_json:
        told.record(_verdict(verdict))
    else:
        columns = ("rule", "column", "row", "value", "message")
        told.rows(verdict.violations, columns=columns, title="Broken rules")
        told.say(
            f"FOCUS {verdict.version}: {verdict.rows} rows, {len(verdict.columns)} columns, "
            f"{verdict.broken} broken rules."
        )
    if not verdict.is_ok:
        raise typer.Exit(ExitCode.FAILURE)


@app.command("csv")
def csv(  # noqa: PLR0913, PLR0917 one option per filter
    out: OutOption,
    by: ByOption = "engine,workload",
    window: WindowOption = "7d",
    engine: EngineOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Write the rows of a cost report as CSV."""
    from lakehouse_core.views.costs import (  # noqa: PLC0415 keeps --help fast
        MOST_ROWS,
        CostFilters,
        cost_report,
    )
    from lakehouse_core.views.downloads import report_csv  # noqa: PLC0415 as above

    told = Output(json=json, quiet=quiet)
    with reading_costs(config, engine) as (_, store, rules):
        filters = CostFilters(window=window, engine=engine)
        found = cost_report(store, filters, rules, utc_now, by=dimensions(by), limit=MOST_ROWS)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(report_csv(found), encoding="utf-8")
    total = {"cost": found.total.cost, "currency": found.currency}
    told.record({"path": out, "rows": len(found.rows), **total})


@app.command("grafana")
def grafana(out: OutOption, json: JsonFlag = False, quiet: QuietFlag = False) -> None:
    """Write the Grafana dashboard of the cost metrics; its data source is a Prometheus."""
    from lakehouse_core.views.downloads import dashboard_text  # noqa: PLC0415 keeps --help fast

    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(dashboard_text(), encoding="utf-8")
    Output(json=json, quiet=quiet).record({"path": out})


def _version(text: str) -> Version:
    from lakehouse_core.domain.errors import FilterError  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.finops.focus_columns import VERSIONS  # noqa: PLC0415 as above

    for version in VERSIONS:
        if text == version:
            return version
    raise FilterError(f"FOCUS {text!r} is not known. Known are: {', '.join(VERSIONS)}.")


def _verdict(verdict: Verdict) -> dict[str, object]:
    return asdict(verdict) | {"ok": verdict.is_ok}

"""`lakehelm cost reconcile|import|prices`: does it add up, bills, the price book."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from lakehouse_core.cli.options import EngineOption, WindowOption
from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, Output, QuietFlag, load
from lakehouse_core.cli.spend import register
from lakehouse_core.cli.views import reading_store
from lakehouse_core.domain.clock import utc_now

app = typer.Typer(no_args_is_help=True, help="What engines cost, and whether it adds up.")
register(app)


@app.command("reconcile")
def reconcile(
    window: WindowOption = "7d",
    engine: EngineOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Per engine and hour: metered, attributed, idle, unallocated, and the difference.

    Exit code 1 when an hour does not add up to the last digit.
    """
    from lakehouse_core.finops.reconcile import (  # noqa: PLC0415 keeps --help fast
        reconcile as reconcile_hours,
    )
    from lakehouse_core.views.window import parse_window  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    span = parse_window(window, utc_now())
    with reading_store(config) as (_, store):
        hours = reconcile_hours(store, span.start, span.end, engine)
    rows = [asdict(one) | {"difference": one.difference} for one in hours]
    totals = _totals(rows)
    if out.is_json:
        out.record({"window": asdict(span), "totals": totals, "hours": rows})
    else:
        shown = ("hour_at", "engine_id", "metered", "attributed", "idle", "unallocated")
        out.rows(
            rows,
            columns=(*shown, "difference", "currency", "basis", "reasons"),
            one_line=("reasons",),
            title=f"Reconciliation, {span.label}",
        )
        for one in totals:
            out.say(
                f"{one['engine_id']}: {one['metered']} {one['currency']} metered in "
                f"{one['hours']} hours, difference {one['difference']}"
            )
    if any(one.difference for one in hours):
        raise typer.Exit(ExitCode.FAILURE)


@app.command("import")
def import_bill(  # noqa: PLR0913 one option per question a bill leaves open
    file: Annotated[Path, typer.Argument(help="CSV or Parquet: FOCUS, or plain columns.")],
    *,
    engine: Annotated[
        str | None, typer.Option("--engine", help="What it is about, if it does not say.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", help="Of times without a zone: Europe/Berlin.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="It corrects what was imported for these periods.")
    ] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Import a bill. It may be imported twice. Exit code 4 when lines had to be refused.

    Plain columns: engine, start, end, cost, currency; and resource, meter (compute, scan, storage,
    requests), quantity, unit, list_cost, contracted_cost.
    """
    from agents.once import writing_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.finops.attribution import settle_hours  # noqa: PLC0415 as above
    from lakehouse_core.finops.bills import BillOptions  # noqa: PLC0415 as above
    from lakehouse_core.finops.bills import import_bill as take  # noqa: PLC0415 as above
    from lakehouse_core.finops.prices import keep_prices  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    options = BillOptions(zone=timezone, engine=engine, is_correction=replace)
    now = utc_now()
    with writing_store(settings) as store:
        report = take(store, settings, file, options, now)
        book = keep_prices(store, settings, now)
        settle_hours(store, settings, book, report.hours, now)
    record = asdict(report) | {"hours": len(report.hours)}
    out.record(record, title=f"Import {report.import_id}")
    for line in report.refused:
        out.warn(f"{file.name}: {line}")
    if report.refused_lines:
        raise typer.Exit(ExitCode.PARTIAL)


@app.command("prices")
def prices(
    history: Annotated[
        bool, typer.Option("--history", help="Also prices that do not count any more.")
    ] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """The price book: rates, since when, who says so, and which count for which engine."""
    from lakehouse_core.finops.prices import (  # noqa: PLC0415 keeps --help fast
        NOT_MEASURED,
        known_prices,
    )

    out = Output(json=json, quiet=quiet)
    now = utc_now()
    with reading_store(config) as (settings, store):
        found = known_prices(store, settings, now, history=history)
    rows = [
        asdict(price)
        | {name: f"{getattr(price, name).normalize():f}" for name in _RATES}
        | {"counts_for": engines, "note": NOT_MEASURED.get(price.unit)}
        for price, engines in found
    ]
    out.rows(
        rows,
        columns=(
            *("name", "counts_for", "unit", "sku", "list_rate", "contracted_rate"),
            *("effective_rate", "currency", "valid_from", "valid_to", "source", "source_on"),
            "note",
        ),
        one_line=("source", "note"),
        title="Price book",
    )


def _totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["engine_id"], row["currency"]
        total = found.setdefault(
            key,
            {"engine_id": key[0], "currency": key[1], "hours": 0}
            | dict.fromkeys(_SUMMED, Decimal(0)),
        )
        total["hours"] += 1
        for name in _SUMMED:
            total[name] += row[name]
    return list(found.values())


_RATES = ("list_rate", "contracted_rate", "effective_rate")
_SUMMED = ("metered", "attributed", "idle", "unallocated", "difference")

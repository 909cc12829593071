"""`lakehelm cost bills|savings`: what was imported, and what maintenance saved."""

from __future__ import annotations

from dataclasses import asdict

import typer

from lakehouse_core.cli.options import LimitOption
from lakehouse_core.cli.output import ConfigFile, JsonFlag, QuietFlag, after_group
from lakehouse_core.cli.views import reading_store


def bills(
    ctx: typer.Context,
    limit: LimitOption = 200,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Imported bills: amount, what of it is split, what is not and why, refused lines."""
    from lakehouse_core.views.bills import list_bills  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with reading_store(file) as (_, store):
        found = list_bills(store, limit=limit)
    if out.is_json:
        out.record({"bills": found})
        return
    columns = ("imported_at", "file_name", "counting", "amount", "currency", "allocated")
    out.rows(
        [
            asdict(one)
            | {"unallocated": "; ".join(f"{cost:f} {why}" for why, cost in one.unallocated.items())}
            for one in found
        ],
        columns=(*columns, "refused_lines", "unallocated"),
        one_line=("unallocated",),
        title="Imported bills",
    )


def savings(
    ctx: typer.Context,
    limit: LimitOption = 200,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """What each maintenance action saved per month, measured, and all of them together."""
    from lakehouse_core.views.savings import savings_ledger  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with reading_store(file) as (_, store):
        found = savings_ledger(store, limit=limit)
    if out.is_json:
        out.record(asdict(found))
        return
    columns = ("table_id", "kind", "predicted_usd_month", "saved_usd_month", "cost_usd")
    out.rows(
        found.rows,
        columns=(*columns, "templates", "runs_before", "runs_after", "ended_at"),
        title="Savings of maintenance in USD per month (measured)",
    )
    saved = "not known" if found.saved_usd_month is None else f"{found.saved_usd_month:f} USD"
    out.say(f"{found.actions} measured actions save {saved} per month.")

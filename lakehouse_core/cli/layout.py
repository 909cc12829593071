"""`lakehelm layout`: which order of its rows would spare a table's readers most, and the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.options import TableArgument
from lakehouse_core.cli.output import (
    ConfigFile,
    JsonFlag,
    Output,
    QuietFlag,
    after_group,
    load,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.layout.advise import Advice

_ROWS = ("engine_id", "runs", "bytes_now", "bytes_then", "files_now", "files_then", "template")
_CANDIDATES = ("layout", "read_share", "cost", "survives_appends", "why")

app = typer.Typer(help="In which order a table's rows would spare its readers most.")


@app.callback()
def layout_group(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """Advice on the order of rows, and what it brought."""
    ctx.obj = (json, quiet, config)


@app.command("advise")
def layout_advise(
    ctx: typer.Context,
    table: TableArgument,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do not keep it, so that nothing is proposed.")
    ] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Advise a table; what pays is proposed (`lakehelm recommend list`)."""
    out, file = after_group(ctx, json, quiet, config)
    _show(out, *_look(file, table, None, is_kept=not dry_run))


@app.command("simulate")
def layout_simulate(
    ctx: typer.Context,
    table: TableArgument,
    order: Annotated[
        str, typer.Option("--order", help='A layout: "a, b", "zorder(a, b)", "hilbert(a, b)".')
    ],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """What one layout would read, per template and engine."""
    out, file = after_group(ctx, json, quiet, config)
    _show(out, *_look(file, table, order, is_kept=False))


@app.command("show")
def layout_show(
    ctx: typer.Context,
    table: TableArgument,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """The last advice for a table, and the proof of the last rewrite; nothing is computed."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.layout import show_layout  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    with open_store(load(file).config) as store:
        seen = show_layout(store, table)
    if out.is_json:
        out.record(seen)
        return
    if seen.reason is None:
        out.text(
            f"{seen.table_id}: nobody looked yet. Run `lakehelm layout advise {seen.table_id}`"
        )
    else:
        out.text(f"{seen.table_id}: {seen.layout or 'leave it'}. {seen.reason}")
    if seen.failure is not None:
        out.text(f"The look of {seen.failed_at:%Y-%m-%d %H:%M} UTC came to nothing: {seen.failure}")
    out.rows(seen.candidates, columns=_CANDIDATES, one_line=("why",), title="Tried")
    columns = (
        *("engine_id", "runs", "bytes_before", "bytes_predicted", "bytes_after"),
        *("files_before", "files_after", "template"),
    )
    out.rows(seen.proof, columns=columns, one_line=("template",), title="Proof, per run")


def _look(
    file: Path | None, table: str, order: str | None, *, is_kept: bool
) -> tuple[Advice, str | None]:
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.config.environment import read_machine  # noqa: PLC0415 as above
    from lakehouse_core.domain.clock import utc_now  # noqa: PLC0415 as above
    from lakehouse_core.layout.planned import LakeFiles  # noqa: PLC0415 as above
    from lakehouse_core.recommend.layout_advisor import LayoutAdvisor  # noqa: PLC0415 as above
    from lakehouse_core.recommend.layout_proposals import keep_advice  # noqa: PLC0415 as above
    from lakehouse_core.recommend.layout_sample import Sampler  # noqa: PLC0415 as above
    from lakehouse_core.views.names import resolve_table  # noqa: PLC0415 as above

    config = load(file).config
    store = open_store(config, "writer" if is_kept else "reader")
    files = LakeFiles(config)
    try:
        name = resolve_table(store, table)
        sampler = Sampler(config, read_machine(), files)
        advisor = LayoutAdvisor(config, store, files, sampler.sample, utc_now)
        found = advisor.advise(name) if order is None else advisor.simulate(name, order)
        kept = keep_advice(store, found).advice_id if is_kept else None
        return found.advice, kept
    finally:
        files.close()
        store.close()


def _show(out: Output, advice: Advice, kept: str | None) -> None:
    if out.is_json:
        document: dict[str, Any] = {
            "advice_id": kept,
            "layout": None if advice.layout is None else str(advice.layout),
            "saved_usd_month": advice.saved_usd_month,
        }
        out.record(_document(advice) | document)
        return
    out.text(f"{advice.table_id}: {advice.layout or 'leave it as it is'}. {advice.reason}")
    if advice.prediction is not None:
        figures, runs = advice.prediction, max(1, advice.runs)
        out.text(
            f"Per run {figures.bytes_now / runs:,.0f} bytes now, {figures.bytes_then / runs:,.0f} "
            f"then ({figures.bytes_low / runs:,.0f} to {figures.bytes_high / runs:,.0f}); files of "
            f"{advice.target_bytes:,} bytes; from {advice.sample_rows:,} rows "
            f"({advice.sample_share:.1%} of the table)"
        )
    if advice.saved_usd_month is not None:
        out.text(
            f"Saves {advice.saved_usd_month} USD a month (modelled, of larger files too); the "
            f"rewrite costs {advice.rewrite_usd} USD"
        )
    if advice.unread_runs:
        out.text(
            f"Not counted: {advice.unread_runs:,} runs whose text nobody has, or nobody understands"
        )
    for said in advice.partitioning:
        out.text(f"Worth a thought, not done by itself: {said}")
    out.rows(
        advice.columns,
        columns=("column", "cost_share", "spared_share", "distinct"),
        title="Filtered on",
    )
    out.rows(advice.candidates, columns=_CANDIDATES, one_line=("why",), title="Tried")
    out.rows(
        advice.rows, columns=_ROWS, one_line=("template",), title="Who reads how much, per run"
    )
    columns = ("column", "operator", "runs", "reason")
    out.rows(advice.unusable, columns=columns, one_line=("reason",), title="Not usable")


def _document(advice: Advice) -> dict[str, Any]:
    from dataclasses import fields  # noqa: PLC0415 keeps --help fast

    return {one.name: getattr(advice, one.name) for one in fields(advice)}

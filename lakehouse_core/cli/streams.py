"""`lakehelm streams`: how often each Flink job commits to each table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from lakehouse_core.cli.options import WindowOption
from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, QuietFlag
from lakehouse_core.cli.views import reading_store
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views.window import DEFAULT_WINDOW, parse_window


def streams(
    window: WindowOption = DEFAULT_WINDOW,
    table: Annotated[
        str | None, typer.Option("--table", help="Only this table; the end of its name is enough.")
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Flink jobs by table: commits, gaps between them, checkpoints, slot seconds."""
    from lakehouse_core.views.flink import commit_cadence, slot_usage  # noqa: PLC0415 as elsewhere
    from lakehouse_core.views.names import resolve_table  # noqa: PLC0415 keeps --help fast

    span = parse_window(window, utc_now())
    with reading_store(config) as (_, store):
        named = resolve_table(store, table) if table else None
        found = commit_cadence(store, span, table_id=named)
        used = {(one.engine_id, one.job_id): one.slot_seconds for one in slot_usage(store, span)}
    rows = [
        asdict(one) | {"slot_seconds": used.get((one.engine_id or "", one.job_id))} for one in found
    ]
    Output(json=json, quiet=quiet).rows(
        rows,
        columns=(
            *("table_id", "job_name", "status", "commits", "median_gap_ms", "p95_gap_ms"),
            *("max_gap_ms", "last_commit_at", "checkpoints_failed", "slot_seconds"),
        ),
        title=f"Flink jobs, {span.label}",
    )

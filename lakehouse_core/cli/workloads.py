"""`lakehelm workloads`, `lakehelm usage TABLE`: what runs again and again, on which columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from lakehouse_core.cli.options import (
    EngineOption,
    LimitOption,
    OffsetOption,
    TableEnd,
    UserOption,
    WindowOption,
)
from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, QuietFlag
from lakehouse_core.cli.views import check_known_engine, reading_store
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views.processed import Coverage
from lakehouse_core.views.window import DEFAULT_WINDOW


def workloads(  # noqa: PLR0913 one option per filter
    *,
    window: WindowOption = DEFAULT_WINDOW,
    engine: EngineOption = None,
    user: UserOption = None,
    table: Annotated[
        str | None, typer.Option("--table", help="Only templates that touch this table.")
    ] = None,
    order: Annotated[
        str, typer.Option("--order", help="Largest first by: runs, time, bytes, errors.")
    ] = "runs",
    limit: LimitOption = 50,
    offset: OffsetOption = 0,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Templates: runs, engines, users, p50 and p95, bytes, errors, trend; and how fresh that is."""
    from lakehouse_core.views.names import resolve_table  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.workloads import (  # noqa: PLC0415 as above
        WorkloadFilters,
        list_workloads,
    )

    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (settings, store):
        check_known_engine(settings, store, engine)
        named = resolve_table(store, table) if table else None
        filters = WorkloadFilters(window=window, engine=engine, user=user, table=named)
        page = list_workloads(store, filters, utc_now, order=order, limit=limit, offset=offset)
    rows = [asdict(row) | {"error_ratio": row.error_ratio} for row in page.rows]
    if out.is_json:
        kept = {"window": asdict(page.window), "coverage": asdict(page.coverage)}
        counts = {"step_seconds": page.step_seconds, "total": page.total, "offset": page.offset}
        out.record(kept | counts | {"workloads": rows})
        return
    out.rows(
        rows,
        columns=(
            *("template_id", "runs", "failed", "engines", "users", "p50_ms", "p95_ms"),
            *("bytes_scanned", "template"),
        ),
        one_line=("template",),
        title=f"Workloads, {page.window.label}",
    )
    out.say(f"{len(rows)} of {page.total} templates. {fresh(page.coverage)}")


def usage(  # noqa: PLR0913, PLR0917 one option per filter
    table: TableEnd,
    window: WindowOption = "7d",
    engine: EngineOption = None,
    user: UserOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Columns of a table by role and engine: runs, bytes, users; literals of its conditions."""
    from lakehouse_core.views.names import resolve_table  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.usage import UsageFilters, table_usage  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (settings, store):
        check_known_engine(settings, store, engine)
        table_id = resolve_table(store, table)
        filters = UsageFilters(window=window, engine=engine, user=user)
        found = table_usage(store, table_id, filters, utc_now)
    if out.is_json:
        more: dict[str, Any] = {"runs": found.runs, "engines": found.engines}
        out.record(asdict(found) | more | {"matrix": found.matrix()})
        return
    out.rows(
        found.cells,
        columns=("column_name", "role", "engine_id", "runs", "bytes_scanned", "users"),
        title=f"Usage of {table_id}, {found.window.label}",
    )
    out.say(f"{found.runs} queries touched the table. {fresh(found.coverage)}")


def fresh(coverage: Coverage) -> str:
    """How fresh the figures are, in a sentence."""
    if coverage.exported_at is None:
        return "All figures are live: the pipeline has not run yet."
    return (
        f"From the pipeline up to {coverage.gold_until:%Y-%m-%d %H:%M} UTC "
        f"(as of {coverage.exported_at:%Y-%m-%d %H:%M:%S} UTC), live since."
    )

"""`lakehelm queries|tables|health`: the numbers of the pages, from the same views."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.bootstrap import open_store
from lakehouse_core.cli.options import (
    EngineOption,
    LimitOption,
    OffsetOption,
    TableEnd,
    UserOption,
    WindowOption,
)
from lakehouse_core.cli.output import (
    ConfigFile,
    JsonFlag,
    Output,
    QuietFlag,
    after_group,
    load,
)
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views.filters import STATUSES, Filters, check_engine
from lakehouse_core.views.window import DEFAULT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.health import HealthView
    from lakehouse_core.views.tables import TableView

tables = typer.Typer(
    invoke_without_command=True, help="Tables of the lake: structure and health side by side."
)


@contextmanager
def reading_store(config: Path | None) -> Iterator[tuple[Config, TelemetryStore]]:
    """The configuration and the store, for as long as a command reads from it."""
    settings = load(config).config
    with open_store(settings, role="reader") as store:
        yield settings, store


def check_known_engine(settings: Config, store: TelemetryStore, engine: str | None) -> None:
    """Refuse an engine that is neither configured nor has a history here.

    Raises:
        FilterError: names the known ones.
    """
    from lakehouse_core.views.engines import engine_names  # noqa: PLC0415 keeps --help fast

    if engine is None or engine in settings.engines:
        return
    check_engine(engine, {*settings.engines, *(one.engine_id for one in engine_names(store))})


def queries(  # noqa: PLR0913 one option per filter
    *,
    window: WindowOption = DEFAULT_WINDOW,
    engine: EngineOption = None,
    status: Annotated[
        str | None, typer.Option("--status", help=f"Only this one: {', '.join(STATUSES)}.")
    ] = None,
    user: UserOption = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only with this tag.")] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Part of the SQL or the error, or a query id.")
    ] = None,
    limit: LimitOption = 50,
    offset: OffsetOption = 0,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Queries over all engines, newest first."""
    from lakehouse_core.views.queries import list_queries  # noqa: PLC0415 keeps --help fast

    filters = Filters(window=window, engine=engine, status=status, user=user, tag=tag, text=text)
    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (settings, store):
        check_known_engine(settings, store, engine)
        page = list_queries(store, filters, utc_now, limit=limit, offset=offset)
    out.rows(
        page.rows,
        columns=(
            *("submitted_at", "engine_id", "query_id", "status", "user_name", "elapsed_ms"),
            *("bytes_scanned", "rows_returned", "error_class", "sql_text"),
        ),
        one_line=("sql_text",),
        title=f"Queries, {page.window.label}",
    )
    out.say(f"{len(page.rows)} of {page.total} queries")


@tables.callback()
def tables_default(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """List the tables when no other command is given."""
    if ctx.invoked_subcommand is None:
        _list_tables(Output(json=json, quiet=quiet), config)
    else:
        ctx.obj = (json, quiet, config)


@tables.command("list")
def tables_list(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """List every table with its structure, state and score, lowest score first."""
    out, file = after_group(ctx, json, quiet, config)
    _list_tables(out, file)


@tables.command("show")
def tables_show(
    ctx: typer.Context,
    name: TableEnd,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Show one table: files, deletes, manifests, snapshots, partitions, skew, health."""
    from lakehouse_core.views.tables import show_table  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    with reading_store(file) as (_, store):
        view = show_table(store, name)
    record = _table(view) | {"contributors": [asdict(c) for c in view.health.contributors]}
    out.record(record, title=view.structure.table_id)


def health(
    table: Annotated[
        str | None, typer.Argument(help="e.g. lake.demo.events; all tables without it.")
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Health of one table or of all: state, score, and what costs points, worst first."""
    from lakehouse_core.views.health import list_health, show_health  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (_, store):
        if table is None:
            out.rows(
                [_verdict(verdict) for verdict in list_health(store)],
                columns=("table_id", "state", "score", "amoro_score", "worst", "assessed_at"),
                title="Health",
            )
            return
        verdict = show_health(store, table)
    if out.is_json:
        out.record(_verdict(verdict))
        return
    out.record({k: v for k, v in _verdict(verdict).items() if k != "contributors"})
    out.rows(
        verdict.contributors,
        columns=("rule", "state", "points_lost", "value", "warning", "critical", "unit", "message"),
        title="What costs points, worst first",
    )


def _list_tables(out: Output, config: Path | None) -> None:
    from lakehouse_core.views.tables import list_tables  # noqa: PLC0415 keeps --help fast

    with reading_store(config) as (_, store):
        found = list_tables(store)
    out.rows(
        [_table(view) for view in found],
        columns=(
            *("table_id", "state", "score", "data_files", "total_bytes", "small_files"),
            *("delete_files", "manifests", "snapshots", "partitions", "skew", "worst"),
        ),
        title="Tables",
    )


def _table(view: TableView) -> dict[str, Any]:
    verdict = {
        "state": view.health.state,
        "score": view.health.score,
        "amoro_score": view.health.amoro_score,
        "worst": view.health.worst,
        "reason": view.health.reason,
        "assessed_at": view.health.assessed_at,
    }
    return asdict(view.structure) | verdict


def _verdict(view: HealthView) -> dict[str, Any]:
    return asdict(view) | {"worst": view.worst}

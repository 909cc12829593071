"""`lakehelm cost report|queries|storage|units|bills|…`: the answers of the cost pages.

`register(app)` hangs them into the group `lakehelm cost`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.options import (
    ByOption,
    CenterOption,
    CurrencyOption,
    EngineOption,
    LimitOption,
    TableOption,
    TeamOption,
    TemplateOption,
    UserOption,
    WindowOption,
    WorkloadOption,
    dimensions,
)
from lakehouse_core.cli.output import ConfigFile, JsonFlag, QuietFlag, after_group
from lakehouse_core.cli.views import check_known_engine, reading_store
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.views.spend_words import sum_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.costs import CostReport, CostRow


@contextmanager
def reading_costs(
    config: Path | None, engine: str | None = None
) -> Iterator[tuple[Config, TelemetryStore, GroupRules]]:
    """The configuration, the store and the workload rules, for as long as a command reads."""
    from lakehouse_core.finops.groups import group_rules  # noqa: PLC0415 keeps --help fast

    with reading_store(config) as (settings, store):
        if engine is not None and not engine.startswith("storage:"):
            check_known_engine(settings, store, engine)
        yield settings, store, group_rules(settings.workload_groups, settings.finops)


def register(app: typer.Typer) -> None:
    """Add the commands to `lakehelm cost`."""
    from lakehouse_core.cli.spend_books import bills, savings  # noqa: PLC0415 as below
    from lakehouse_core.cli.spend_watch import alerts, anomalies, budgets, forecast  # noqa: PLC0415
    from lakehouse_core.cli.whatif import app as what_if  # noqa: PLC0415 they import this module

    watching = (forecast, budgets, alerts, anomalies)
    for command in (report, queries, storage, units, groups, bills, savings, *watching):
        app.command(command.__name__)(command)
    app.add_typer(what_if, name="whatif")


def report(  # noqa: PLR0913 one option per filter
    ctx: typer.Context,
    *,
    by: ByOption = "engine,workload",
    window: WindowOption = "7d",
    engine: EngineOption = None,
    workload: WorkloadOption = None,
    team: TeamOption = None,
    cost_center: CenterOption = None,
    user: UserOption = None,
    table: TableOption = None,
    template: TemplateOption = None,
    currency: CurrencyOption = None,
    limit: LimitOption = 200,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Spend by one or two dimensions, against the window before; and that it adds up."""
    from lakehouse_core.views.costs import CostFilters, cost_report  # noqa: PLC0415 keeps --help fast

    out, file = after_group(ctx, json, quiet, config)
    filters = CostFilters(
        window=window, engine=engine, workload=workload, team=team, cost_center=cost_center,
        user=user, table=table, template=template, currency=currency,
    )  # fmt: skip
    with reading_costs(file, engine) as (_, store, rules):
        found = cost_report(store, filters, rules, utc_now, by=dimensions(by), limit=limit)
    if out.is_json:
        out.record(report_record(found))
        return
    out.rows(
        [_named(row, found.by) for row in found.rows],
        columns=(*found.by, "cost", "before", "change", "queries", "per_thousand", "bases"),
        title=f"Costs in {found.currency}, {found.window.label}",
    )
    sums = found.reconciliation
    out.say(
        f"{sum_words(sums).capitalize()}, metered {sums.metered:f}, difference {sums.difference:f} "
        f"{found.currency}. {basis_words(found)}"
    )


def report_record(found: CostReport) -> dict[str, Any]:
    """A report as JSON has it."""
    return {
        "window": asdict(found.window),
        "start": found.start,
        "before_start": found.before_start,
        "by": found.by,
        "currency": found.currency,
        "total": _named(found.total, ()),
        "rows": [_named(row, found.by) for row in found.rows],
        "kinds": found.kinds,
        "idle_ratio": found.share_of("idle"),
        "unallocated_ratio": found.share_of("unallocated"),
        "reconciliation": asdict(found.reconciliation)
        | {"rows": found.reconciliation.rows, "difference": found.reconciliation.difference},
        "basis": asdict(found.basis),
    }


def basis_words(found: CostReport) -> str:
    """What the figures rest on, in a sentence or two."""
    basis = found.basis
    words = [f"Basis: {', '.join(basis.bases) or 'nothing was metered'}."]
    if basis.unpriced:
        names = ", ".join(basis.unpriced_engines)
        words.append(f"{basis.unpriced} charges of {names} have no price and are in no sum.")
    if basis.provisional_from is not None:
        words.append(f"Provisional from {basis.provisional_from:%Y-%m-%d %H:%M} UTC on.")
    words += [f"{cost:f} {code} more." for code, cost in basis.other_currencies.items()]
    return " ".join(words)


def _named(row: CostRow, by: tuple[str, ...]) -> dict[str, Any]:
    values = asdict(row)
    names = (values.pop("first"), values.pop("second"))
    return dict(zip(by, names, strict=False)) | values | {
        "change": row.change, "per_query": row.per_query, "per_thousand": row.per_thousand
    }  # fmt: skip


def queries(  # noqa: PLR0913 one option per filter
    ctx: typer.Context,
    *,
    window: WindowOption = "7d",
    engine: EngineOption = None,
    workload: WorkloadOption = None,
    team: TeamOption = None,
    cost_center: CenterOption = None,
    user: UserOption = None,
    table: TableOption = None,
    template: TemplateOption = None,
    currency: CurrencyOption = None,
    limit: LimitOption = 50,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """The queries that cost most; the fifty dearest of each engine and hour are known here."""
    from lakehouse_core.views.cost_detail import dearest_queries  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    filters = CostFilters(
        window=window, engine=engine, workload=workload, team=team, cost_center=cost_center,
        user=user, table=table, template=template, currency=currency,
    )  # fmt: skip
    with reading_costs(file, engine) as (_, store, rules):
        code, rows = dearest_queries(store, filters, rules, utc_now, limit=limit)
    if out.is_json:
        out.record({"currency": code, "queries": rows})
        return
    columns = ("engine_id", "query_id", "cost", "user_name", "status", "template")
    out.rows(rows, columns=columns, one_line=("template",), title=f"Dearest queries, {code}")


def storage(  # noqa: PLR0913 one option per filter
    ctx: typer.Context,
    *,
    window: WindowOption = "7d",
    table: TableOption = None,
    currency: CurrencyOption = None,
    limit: LimitOption = 1_000,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """What keeping each table cost, by storage class; `--table` for one of them."""
    from lakehouse_core.views.cost_detail import storage_costs  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file) as (_, store, _rules):
        filters = CostFilters(window=window, table=table, currency=currency)
        code, rows = storage_costs(store, filters, utc_now, limit=limit)
    if out.is_json:
        out.record({"currency": code, "tables": rows})
        return
    out.rows(rows, title=f"Storage in {code}, {window}")


def units(  # noqa: PLR0913 one option per filter
    ctx: typer.Context,
    *,
    window: WindowOption = "7d",
    engine: EngineOption = None,
    currency: CurrencyOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """What 1,000 queries, a TB scanned and an hour of execution cost on each engine."""
    from lakehouse_core.views.cost_detail import unit_costs  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    with reading_costs(file, engine) as (_, store, _rules):
        filters = CostFilters(window=window, engine=engine, currency=currency)
        code, rows = unit_costs(store, filters, utc_now)
    plain = [
        asdict(row)
        | {
            "per_thousand": row.per_thousand,
            "per_tb": row.per_tb,
            "per_busy_hour": row.per_busy_hour,
            "idle_ratio": row.idle_ratio,
        }
        for row in rows
    ]
    if out.is_json:
        out.record({"currency": code, "engines": plain})
        return
    out.rows(plain, title=f"Unit costs in {code}, {window}")


def groups(
    ctx: typer.Context,
    preview: Annotated[
        str | None,
        typer.Option("--preview", help="A YAML file with other rules: show what they would move."),
    ] = None,
    window: WindowOption = "30d",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """The workload rules and what each caught; or what other rules would move."""
    from pathlib import Path  # noqa: PLC0415 as below

    from lakehouse_core.config.finops import parse_groups  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.errors import NotFoundError  # noqa: PLC0415 as above
    from lakehouse_core.finops.groups import group_rules  # noqa: PLC0415 as above
    from lakehouse_core.views.costs import CostFilters  # noqa: PLC0415 as above
    from lakehouse_core.views.groups import group_change, rule_hits  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    filters = CostFilters(window=window)
    with reading_costs(file) as (settings, store, rules):
        if preview is None:
            code, hits = rule_hits(store, filters, rules, utc_now)
            if out.is_json:
                out.record({"currency": code, "rules": hits})
            else:
                out.rows(hits, title=f"Workload rules in order, {code}, {window}")
            return
        if not Path(preview).is_file():
            raise NotFoundError(f"There is no file {preview} with rules to preview.")
        text = Path(preview).read_text(encoding="utf-8")
        new = group_rules(parse_groups(text), settings.finops, prefix="new")
        found = group_change(store, filters, rules, new, utc_now)
    if out.is_json:
        out.record(asdict(found) | {"moved": found.moved, "total": found.total})
        return
    out.rows([move for move in found.moves if move.is_moved], title="What would move")
    out.say(
        f"{found.moved:f} of {found.total:f} {found.currency} would be in another group, team "
        "or cost center."
    )

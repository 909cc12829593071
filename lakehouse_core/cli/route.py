"""`lakehelm route`: where a statement would run and why, the rules in force, rules of others."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.evaluate import evaluate
from lakehouse_core.cli.output import ConfigFile, ExitCode, JsonFlag, Output, QuietFlag, load
from lakehouse_core.cli.route_history import register
from lakehouse_core.domain.errors import ConfigError, FilterError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.config.models import Config
    from lakehouse_core.routing.decide import Plan
    from lakehouse_core.routing.explain import Explanation
    from lakehouse_core.routing.profiles import ProfileBook
    from lakehouse_core.routing.router import Router
    from lakehouse_core.routing.trino_gateway import GatewayRule

app = typer.Typer(
    no_args_is_help=True, help="Where a statement would run and why; the rules in force."
)
app.command("evaluate")(evaluate)
register(app)

Pairs = Annotated[
    list[str] | None, typer.Option("--header", help="A header of the client, as name=value.")
]


class RulesKind(StrEnum):
    """Whose rules a file holds."""

    TRINO_GATEWAY = "trino-gateway"
    QUERYFLUX = "queryflux"


@app.command("explain")
def explain_statement(  # noqa: PLR0913 one option for each circumstance
    *,
    sql: Annotated[str | None, typer.Option("--sql", help="The statement.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="A file with the statement; - reads it.")
    ] = None,
    dialect: Annotated[str, typer.Option("--dialect", help="It is written in.")] = "trino",
    protocol: Annotated[str, typer.Option("--protocol", help="It comes by.")] = "trinoHttp",
    user: Annotated[str | None, typer.Option("--user", help="Who asks.")] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="A group of the user; may be repeated.")
    ] = None,
    role: Annotated[str | None, typer.Option("--role", help="The user's role.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="etl or team:finance.")] = None,
    header: Pairs = None,
    source: Annotated[str | None, typer.Option("--source", help="The client's program.")] = None,
    catalog: Annotated[str | None, typer.Option("--catalog", help="The default catalog.")] = None,
    schema: Annotated[str | None, typer.Option("--schema", help="The default schema.")] = None,
    endpoint: Annotated[str | None, typer.Option("--endpoint", help="It comes through.")] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Say where a statement would run, what would be sent there, and why; nothing is run.

    Exit code: 0 it would run, 1 it would be denied.
    """
    from lakehouse_core.catalog import open_catalog  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.routing.build import make_router  # noqa: PLC0415 as above
    from lakehouse_core.routing.explain import explain, request_from  # noqa: PLC0415 as above
    from lakehouse_core.routing.learned import recall  # noqa: PLC0415 as above
    from lakehouse_core.routing.scan import FreshScanEstimator  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    request = request_from(
        {
            "sql": _statement(sql, file),
            "dialect": dialect,
            "protocol": protocol,
            "user": user,
            "groups": group or [],
            "role": role,
            "tags": tag or [],
            "headers": _headers(header or ()),
            "source": source,
            "catalog": catalog,
            "schema": schema,
            "endpoint": endpoint,
        }
    )
    catalogs = {name: open_catalog(name, one) for name, one in settings.catalogs.items()}
    estimator = FreshScanEstimator(catalogs)
    book, predictor = recall(settings, estimator)
    router = make_router(settings, estimator, predictor)
    _look_at_the_fleet(settings, router, book, out)
    found = explain(router, request, estimator, settings.prices.tb_scanned)
    if out.is_json:
        out.record(found)
    else:
        _show(out, found)
    if not found.would_run:
        raise typer.Exit(ExitCode.FAILURE)


@app.command("rules")
def show_rules(json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None) -> None:
    """Show the rules in the order they are asked, the groups, and the endpoints."""
    from lakehouse_core.routing.build import make_plan, routing_of  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    plan = make_plan(settings)
    routing, warnings = routing_of(settings)
    for warning in warnings:
        out.warn(str(warning))
    rules = [
        {"rule": rule.name, "type": router.type, **rule.says}
        for rule, router in zip(plan.rules, routing.routers, strict=True)
    ]
    groups = _groups(plan)
    if out.is_json:
        endpoints = {
            name: endpoint.model_dump(mode="json", exclude_none=True)
            for name, endpoint in routing.endpoints.items()
        }
        fallback = plan.layout.fallback
        out.record(
            {
                "source": plan.source,
                "rules": rules,
                "routing_fallback": fallback,
                "groups": groups,
                "endpoints": endpoints,
                "warnings": [str(warning) for warning in warnings],
            }
        )
        return
    out.rows([_rule_row(rule) for rule in rules], title=f"Rules of {plan.source}, first match wins")
    out.say(f"What no rule claims: {plan.layout.fallback or 'is denied'}")
    out.rows(groups, title="Groups")


@app.command("trace")
def show_trace(
    statement: Annotated[
        str, typer.Argument(help="The gateway's id of a statement, or an engine's.")
    ],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Show how a statement that came through the gateway was routed, and where its time went."""
    from lakehouse_core.cli.views import reading_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views import routing  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (_, store):
        seen = routing.show_trace(store, statement)
    if out.is_json:
        out.record(seen)
        return
    routed = seen.routed
    out.rows(list(seen.steps), title=f"How {routed.gateway_id} was decided")
    names = ("decision_ms", "queue_ms", "engine_ms", "fetch_ms", "rows_sent", "attempts")
    out.rows([{name: getattr(routed, name) for name in names}], title="Where its time went")
    told = seen.denial_message or seen.error_message
    where = routed.engine_id or "no engine"
    out.say(f"{routed.status} on {where}" + (f": {told}" if told else ""))
    out.text(seen.translated_sql or seen.sql_text or "")


@app.command("import")
def import_rules(
    kind: Annotated[RulesKind, typer.Argument(help="Whose file it is.")],
    file: Annotated[Path, typer.Argument(help="The file.")],
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Check a rule file of trino-gateway or QueryFlux, and say how to take it into use.

    Nothing is changed. Exit code: 0 it can be used, 2 something in it is wrong.
    """
    out = Output(json=json, quiet=quiet)
    settings = load(config).config
    if kind is RulesKind.QUERYFLUX:
        _import_queryflux(out, file, settings)
    else:
        _import_trino_gateway(out, file, settings)


def _import_trino_gateway(out: Output, file: Path, settings: Config) -> None:
    from lakehouse_core.routing.build import make_plan  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.routing.trino_gateway import read_rules  # noqa: PLC0415 as above

    rules = read_rules(file.absolute())
    groups = sorted(make_plan(settings).layout.groups)
    entry = {"type": "trinoGateway", "rulesFile": str(file.absolute())}
    if out.is_json:
        out.record(
            {"rules": [_gateway_rule(r) for r in rules.rules], "router": entry, "groups": groups}
        )
        return
    out.rows(
        [_gateway_rule(rule) for rule in rules.rules],
        columns=("priority", "name", "condition", "line"),
        one_line=("condition",),
        title="In the order they fire; all that match do, the last word on routingGroup stands",
    )
    out.say(f"Groups here: {', '.join(groups)}. Add to routing.routers:")
    out.text(f"- type: trinoGateway\n  rulesFile: {entry['rulesFile']}\n")


def _import_queryflux(out: Output, file: Path, settings: Config) -> None:
    from lakehouse_core.config.routing_file import read_routing_file  # noqa: PLC0415 as above
    from lakehouse_core.routing.build import make_plan  # noqa: PLC0415 as above

    found = read_routing_file(file.absolute(), settings.engines)
    there = settings.routing.model_copy(update={"file": file.absolute()})
    plan = make_plan(settings.model_copy(update={"routing": there}))
    for warning in found.warnings:
        out.warn(str(warning))
    groups = _groups(plan)
    if out.is_json:
        rules = [rule.name for rule in plan.rules]
        out.record(
            {
                "rules": rules,
                "groups": groups,
                "warnings": [str(warning) for warning in found.warnings],
                "routing": {"file": str(file.absolute())},
            }
        )
        return
    out.rows(groups, title="Groups")
    out.say(f"{len(plan.rules)} routers. To use it, set in the configuration:")
    out.text(f"routing:\n  file: {file.absolute()}\n")


def _gateway_rule(rule: GatewayRule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "description": rule.description,
        "priority": rule.priority,
        "condition": rule.condition.strip(),
        "actions": list(rule.actions),
        "line": rule.line,
    }


def _rule_row(rule: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in rule.items() if key not in ("rule", "type")}
    return {"rule": rule["rule"], "says": rest}


def _groups(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "group": group.name,
            "strategy": group.strategy_name,
            "members": [member.name for member in group.members],
            "unusable": {m.name: m.unusable for m in group.members if m.unusable},
            "running_limit": group.total_limit,
            "queue_limit": group.queue_limit,
            "wait_seconds": group.wait_seconds,
            "priority": group.priority,
            "fallback_group": group.fallback,
        }
        for group in plan.layout.groups.values()
    ]


def _look_at_the_fleet(settings: Config, router: Router, book: ProfileBook, out: Output) -> None:
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.routing.learned import remembered_runs  # noqa: PLC0415 as above
    from lakehouse_core.routing.lifecycle import StoreFleet  # noqa: PLC0415 as above

    fleet = router.decider.ports.fleet
    if not isinstance(fleet, StoreFleet):
        return
    try:
        with open_store(settings) as store:
            fleet.refresh(store)
            book.record_all(remembered_runs(store))
    except (StoreError, ConfigError) as error:
        out.warn(f"the engines' states are not known, nor their past: {error}")
        return
    router.fleet_changed()


def _statement(sql: str | None, file: Path | None) -> str:
    if (sql is None) == (file is None):
        raise FilterError("Give the statement with --sql, or the file it is in with --file")
    if file is None:
        return sql or ""
    try:
        raw = typer.get_binary_stream("stdin").read() if str(file) == "-" else file.read_bytes()
        return raw.decode("utf-8")
    except OSError as error:
        raise FilterError(f"{file}: cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise FilterError(f"{file}: is not UTF-8 text (byte {error.start})") from error


def _headers(pairs: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise FilterError(f"--header {pair!r}: expected name=value")
        found[name] = value
    return found


def _show(out: Output, found: Explanation) -> None:
    steps = [
        {"stage": s.stage, "subject": s.subject, "result": s.result, "detail": s.detail}
        for s in found.trace
    ]
    out.rows(steps, title="How it is decided")
    out.rows(list(found.members), title=f"Group {found.group}" if found.group else "No group")
    if found.denial is not None:
        out.say(f"Denied ({found.denial.kind}): {found.denial.message}")
        return
    read = found.estimate
    size = "unknown" if read.bytes is None else f"{read.bytes:,} bytes in {read.files} files"
    cost = "" if read.cost_usd is None else f", {read.cost_usd:.6f} USD"
    wait = ", after a wait" if found.capacity.would_queue else ""
    out.say(f"Runs on {found.engine_id} ({found.translation}){wait}. Reads: {size}{cost}")
    out.text(found.translated_sql)

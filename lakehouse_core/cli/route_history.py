"""`lakehelm route compare|regret|estimates|replay`: what routing brought, as it was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakehouse_core.cli.options import LimitOption, TemplateOption, WindowOption
from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, QuietFlag
from lakehouse_core.cli.views import reading_store
from lakehouse_core.domain.clock import utc_now


def register(app: typer.Typer) -> None:
    """Add the commands to `lakehelm route`."""
    for command in (compare, regret, estimates, replay):
        app.command(command.__name__)(command)


def compare(
    *,
    window: WindowOption = "7d",
    template: TemplateOption = None,
    limit: LimitOption = 100,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Template by template: which engine answers cheaper or faster, on how many runs, how sure."""
    from lakehouse_core.views.compare import compare_engines  # noqa: PLC0415 keeps --help fast

    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (_, store):
        found = compare_engines(store, utc_now, window=window, template=template, limit=limit)
    if out.is_json:
        out.record(found)
        return
    rows = [
        {"template": one.template_id, "size": one.size, "engine": engine.engine_id,
         "runs": engine.runs, "p50_s": engine.p50_seconds, "p95_s": engine.p95_seconds,
         f"{found.currency}_per_run": engine.cost_per_run, "failures": engine.failure_rate,
         "wins": engine.engine_id == one.winner}
        for one in found.contests
        for engine in one.engines
    ]  # fmt: skip
    out.rows(rows, title=f"Reads of {found.window.phrase}, per template, size and engine")
    for one in found.contests:
        if len(one.engines) > 1:
            out.say(f"{one.template_id} ({one.size}): {one.why}")
    out.say(f"{len(found.contests)} of {found.total} shown; {found.decided} have a winner")


def regret(
    *,
    window: WindowOption = "7d",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """What reads cost and took, against one engine, the rules alone, and the best for each."""
    from lakehouse_core.views.regret import routing_regret  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.replay import choices_of  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (settings, store):
        rules = choices_of(store, utc_now, window=window, config=settings)
        found = routing_regret(store, utc_now, window=window, rules=rules)
    if out.is_json:
        out.record(found)
        return
    for one in (found.cost, found.seconds):
        if not one.compared_runs:
            out.say(f"{one.measure}: no template ran {found.least_runs} times on two engines")
            continue
        title = f"{one.measure}: {one.actual:.6g} {one.unit} for {one.compared_runs} runs compared"
        columns = ("name", "engine", "total", "regret", "regret_ratio", "evidence_share")
        out.rows(one.baselines, columns=columns, title=title)
        out.say(f"{one.without_evidence_share:.1%} of {one.runs} runs are without evidence")


def estimates(
    *,
    window: WindowOption = "7d",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """What reads were estimated to read before they ran, against what engines say they read."""
    from lakehouse_core.views.estimates import scan_estimates  # noqa: PLC0415 keeps --help fast

    out = Output(json=json, quiet=quiet)
    with reading_store(config) as (_, store):
        found = scan_estimates(store, utc_now, window=window)
    if out.is_json:
        out.record(found)
        return
    out.rows(found.engines, title=f"Bytes read by bytes estimated, {found.window.phrase}")
    out.say(
        "Estimates count whole files; too low: more was read than that and 16 KiB per file, which "
        "are for footers"
    )


def replay(
    *,
    other: Annotated[
        Path, typer.Option("--config", help="The configuration to try: rules, strategies, prices.")
    ],
    window: WindowOption = "7d",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Decide the reads of a window again by another configuration; nothing is run.

    The history is read where the configuration before the command says (`lakehelm --config X
    route replay …`), or the default one.
    """
    from lakehouse_core.cli.output import load  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.replay import replay as decide_again  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    with reading_store(None) as (running, store):
        found = decide_again(
            store, utc_now, window=window, running=running, other=load(other).config
        )
    if out.is_json:
        out.record(found)
        return
    columns = ("template_id", "size", "user", "runs", "engine", "to", "cost_before", "cost_after",
               "seconds_before", "seconds_after")  # fmt: skip
    out.rows(found.moves, columns=columns, title=f"What would move, {found.window.phrase}")
    for name, rows in (("without evidence", found.without_evidence), ("denied", found.denied)):
        if rows:
            out.rows(rows, columns=(*columns[:6], "why"), title=f"Reads {name}")
    for figure in (found.cost, found.seconds):
        if figure is not None:
            out.say(
                f"{figure.before:.6g} {figure.unit} → {figure.after:.6g} {figure.unit} "
                f"({figure.low:.6g} to {figure.high:.6g}), {found.compared_runs} runs"
            )
    out.say(f"{found.moved_runs} of {found.runs} runs would go elsewhere")
    for caveat in found.caveats:
        out.say(caveat)

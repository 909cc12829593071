"""`lakehelm maintain`: what waits, runs and was done; run approved work now; cancel."""

from __future__ import annotations

import getpass
import time
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.options import TableOption
from lakehouse_core.cli.output import (
    Actor,
    ConfigFile,
    ExitCode,
    JsonFlag,
    Output,
    QuietFlag,
    Reason,
    after_group,
    load,
)
from lakehouse_core.cli.recommend_route import decide_one, is_trial, show_one

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.views.maintenance import MaintenanceDetail, MaintenanceItem

_COLUMNS = (
    *("action_id", "kind", "table_id", "state", "progress", "started_at", "ended_at"),
    "explanation",
)
_PAUSE_SECONDS = 0.3
ActionId = Annotated[str, typer.Argument(help="The action, see `lakehelm maintain list`.")]

app = typer.Typer(
    invoke_without_command=True, help="Approved work on tables: what waits, runs and was done."
)


@app.callback()
def maintain_default(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """Show what runs, waits and was done."""
    if ctx.invoked_subcommand is None:
        _list(Output(json=json, quiet=quiet), config, "all", None)
    else:
        ctx.obj = (json, quiet, config)


@app.command("list")
def maintain_list(
    ctx: typer.Context,
    state: Annotated[
        str, typer.Option("--state", help="all, waiting, running, done or refused.")
    ] = "all",
    table: TableOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Show what runs, waits and was done."""
    out, file = after_group(ctx, json, quiet, config)
    _list(out, file, state, table)


@app.command("show")
def maintain_show(
    ctx: typer.Context,
    action_id: ActionId,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """One action: predicted beside realised, checks, savings, history, the end of its log."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.maintenance import show_maintenance  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    if is_trial(action_id):
        show_one(out, file, action_id)
        return
    settings = load(file).config
    with open_store(settings) as store:
        detail = show_maintenance(store, settings.home, action_id)
    if out.is_json:
        out.record(
            _document(detail.item)
            | {
                "figures": detail.figures,
                "savings": detail.savings,
                "history": detail.steps,
                "log_file": detail.log_file,
            }
        )
    else:
        _print(out, detail)


@app.command("run")
def maintain_run(
    ctx: typer.Context,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the round has ended.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds at most.")] = 600,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Ask the agents process to carry out approved work now instead of at its next round."""
    from lakehouse_core.cli.agents import agents_run  # noqa: PLC0415 keeps --help fast

    agents_run(ctx, "maintain", wait, timeout, json, quiet, config)


@app.command("cancel")
def maintain_cancel(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    action_id: ActionId,
    reason: Reason = None,
    actor: Actor = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """End an approved action: one that waits at once, one that runs before its next commit."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.decisions import Wish, ask  # noqa: PLC0415 as above
    from lakehouse_core.views.maintenance import show_maintenance  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    if is_trial(action_id):
        given = {"actor": actor, "reason": reason, "plan_hash": None}
        decide_one((out, file), action_id, "cancel", given)
        return
    settings = load(file).config
    with open_store(settings) as store:
        action = show_maintenance(store, settings.home, action_id).item.action
        wish = Wish(
            action_id=action.action_id,
            verb="cancel",
            actor=actor or getpass.getuser(),
            plan_hash=action.plan_hash,
            reason=reason,
        )
        answer = ask(store, wish)
        detail = show_maintenance(store, settings.home, action.action_id)
        while wait and answer.state == "done" and not detail.is_over:
            time.sleep(_PAUSE_SECONDS)
            detail = show_maintenance(store, settings.home, action.action_id)
    if out.is_json:
        out.record({"request": answer, "action": _document(detail.item)})
    else:
        out.say(f"{action.action_id} is {detail.item.action.state}: {answer.answer}")
    if answer.state != "done":
        raise typer.Exit(ExitCode.FAILURE)


def _list(out: Output, config: Path | None, group: str, table: str | None) -> None:
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.maintenance import list_maintenance  # noqa: PLC0415 as above

    with open_store(load(config).config) as store:
        seen = list_maintenance(store, group=group, table=table)
    rows = [_document(item) for item in seen.items]
    if not out.is_json:
        rows = [
            row | {"progress": _progress(item)} for row, item in zip(rows, seen.items, strict=True)
        ]
    out.rows(rows, columns=_COLUMNS, one_line=("explanation",), title="Maintenance")


def _document(item: MaintenanceItem) -> dict[str, Any]:
    action = item.action
    return {one.name: getattr(action, one.name) for one in fields(action)} | {
        "progress": None if item.progress is None else asdict(item.progress),
        "share": item.share,
        "saved_usd_month": item.saved_usd_month,
    }


def _progress(item: MaintenanceItem) -> str | None:
    at = item.progress
    return None if at is None else f"{at.done} of {at.total or '?'}: {at.unit}"


def _print(out: Output, detail: MaintenanceDetail) -> None:
    action = detail.item.action
    out.text(f"{action.action_id}  {action.title}  ({action.table_id})")
    out.text(f"State: {action.state}. {action.explanation or ''}".rstrip())
    for stage in action.plan.stages:
        out.text(f"  {stage.name}:\n    {stage.call}")
    figures = ("name", "unit", "before", "predicted", "low", "high", "realised")
    out.rows(detail.figures, columns=figures, title="Predicted and realised")
    checks = ("name", "expected", "found", "ok")
    out.rows(action.verification, columns=checks, title="Checks")
    savings = (
        *("engine_id", "template_id", "runs_before", "runs_after", "ms_per_run_before"),
        *("ms_per_run_after", "usd_month"),
    )
    out.rows(detail.savings, columns=savings, title="Savings (measured)")
    out.rows(detail.steps, columns=("noted_at", "actor", "verb"), title="What happened")
    if detail.log and not detail.is_over:
        out.text(f"{detail.log_file}:\n{detail.log}")

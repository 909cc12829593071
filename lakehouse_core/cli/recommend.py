"""`lakehelm recommend`: what is proposed, and deciding about it."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.options import TableArgument, TableOption
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
from lakehouse_core.cli.recommend_route import decide_one, is_trial, show_one, tell_answer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lakehouse_core.domain.maintenance import Action, DecisionRequest, DecisionVerb
    from lakehouse_core.views.recommendations import RecommendationDetail
    from lakehouse_core.views.unhealed import Unhealed

_COLUMNS = (
    *("action_id", "kind", "table_id", "state", "title", "score", "gain_usd_month", "cost_usd"),
    "expires_at",
)
ActionId = Annotated[str, typer.Argument(help="The action, see `lakehelm recommend list`.")]
PlanHash = Annotated[
    str | None,
    typer.Option("--plan-hash", help="Of the plan you have seen; refused when it is another."),
]

app = typer.Typer(
    invoke_without_command=True, help="What is proposed for tables; approve, reject or snooze it."
)


@app.callback()
def recommend_default(
    ctx: typer.Context, json: JsonFlag = False, quiet: QuietFlag = False, config: ConfigFile = None
) -> None:
    """Show what is proposed, gain over cost first."""
    if ctx.invoked_subcommand is None:
        _list(Output(json=json, quiet=quiet), config, {})
    else:
        ctx.obj = (json, quiet, config)


@app.command("list")
def recommend_list(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    state: Annotated[
        str, typer.Option("--state", help="open (proposed or snoozed), all, or one state.")
    ] = "open",
    kind: Annotated[str | None, typer.Option("--kind", help="Only this kind.")] = None,
    table: TableOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Show what is proposed, gain over cost first."""
    out, file = after_group(ctx, json, quiet, config)
    _list(out, file, {"state": state, "kind": kind, "table": table})


@app.command("show")
def recommend_show(
    ctx: typer.Context,
    action_id: ActionId,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """One proposal in full: evidence, what is predicted, risk, and the plan verbatim."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.recommendations import show_recommendation  # noqa: PLC0415 as above

    out, file = after_group(ctx, json, quiet, config)
    if is_trial(action_id):
        show_one(out, file, action_id)
        return
    with open_store(load(file).config) as store:
        detail = show_recommendation(store, action_id)
    if out.is_json:
        out.record(_document(detail.action) | {"evidence": detail.payers, "history": detail.steps})
    else:
        _print(out, detail)


@app.command("approve")
def recommend_approve(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    action_id: ActionId,
    confirm: Annotated[
        str | None,
        typer.Option("--confirm", help="The table's name, typed: for what deletes files."),
    ] = None,
    reason: Reason = None,
    actor: Actor = None,
    plan_hash: PlanHash = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Let it be done. Exit code 1 when it is refused."""
    given = {"confirmation": confirm, "reason": reason, "actor": actor, "plan_hash": plan_hash}
    _decide(after_group(ctx, json, quiet, config), action_id, "approve", given)


@app.command("reject")
def recommend_reject(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    action_id: ActionId,
    reason: Reason = None,
    actor: Actor = None,
    plan_hash: PlanHash = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Say no; it is proposed again only when the table has become much worse."""
    given = {"reason": reason, "actor": actor, "plan_hash": plan_hash}
    _decide(after_group(ctx, json, quiet, config), action_id, "reject", given)


@app.command("snooze")
def recommend_snooze(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    action_id: ActionId,
    duration: Annotated[
        str, typer.Option("--for", help="How long, e.g. 12h or 7d; at most 90d.")
    ] = "7d",
    reason: Reason = None,
    actor: Actor = None,
    plan_hash: PlanHash = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Let it sleep; it is proposed again afterwards."""
    given = {"reason": reason, "actor": actor, "plan_hash": plan_hash, "until": _until(duration)}
    _decide(after_group(ctx, json, quiet, config), action_id, "snooze", given)


@app.command("propose")
def recommend_propose(  # noqa: PLR0913, PLR0917 one option each
    ctx: typer.Context,
    table: TableArgument,
    kind: Annotated[str, typer.Argument(help="What to do, e.g. sort or remove_orphans.")],
    columns: Annotated[
        str | None, typer.Option("--columns", help="Of an order, with commas: day,customer_id.")
    ] = None,
    reason: Reason = None,
    actor: Actor = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """Propose an action by hand; it is decided like any other. Exit code 1 when it is refused."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.maintenance import Kind  # noqa: PLC0415 as above
    from lakehouse_core.recommend.by_hand import Idea  # noqa: PLC0415 as above
    from lakehouse_core.views.decisions import propose  # noqa: PLC0415 as above
    from lakehouse_core.views.names import resolve_table  # noqa: PLC0415 as above
    from lakehouse_core.views.recommendations import (  # noqa: PLC0415 as above
        RecommendationFilters,
        show_recommendation,
    )

    out, file = after_group(ctx, json, quiet, config)
    RecommendationFilters(kind=kind)  # names the known kinds
    parameters = {"columns": columns.split(",")} if columns else {}
    with open_store(load(file).config) as store:
        idea = Idea(table_id=resolve_table(store, table), kind=Kind(kind), parameters=parameters)
        answer = propose(store, idea, actor=actor or getpass.getuser(), reason=reason)
        if answer.state != "done":
            _refused(out, answer)
        action = show_recommendation(store, answer.action_id).action
    _tell(out, answer, action)


def _refused(out: Output, answer: DecisionRequest) -> None:
    if out.is_json:
        out.record({"request": answer, "action": None})
    else:
        out.warn(f"Not proposed: {answer.answer}")
    raise typer.Exit(ExitCode.FAILURE)


def _list(out: Output, config: Path | None, given: dict[str, Any]) -> None:
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.recommendations import (  # noqa: PLC0415 as above
        ROUTE,
        RecommendationFilters,
        list_recommendations,
    )
    from lakehouse_core.views.template_texts import template_texts  # noqa: PLC0415 as above
    from lakehouse_core.views.trials import list_trials, trial_document  # noqa: PLC0415 as above
    from lakehouse_core.views.unhealed import list_unhealed  # noqa: PLC0415 as above

    filters = RecommendationFilters(**given)
    settings = load(config).config
    with open_store(settings) as store:
        seen = list_recommendations(store, filters)
        unhealed = list_unhealed(store, settings.maintenance)
        is_asked = not filters.table and filters.kind in {None, ROUTE}
        moves = list_trials(store, filters.state) if is_asked else ()
        texts = template_texts(store, (one.template_id for one in moves))
    rows = [_document(action) for action in seen.actions]
    rows += [trial_document(one, texts.get(one.template_id)) for one in moves]
    rows.sort(key=lambda row: -row["priority"])
    if out.is_json:
        rows += _without_cure(unhealed, given)
    out.rows(rows, columns=_COLUMNS, one_line=("title",), title="Recommendations")
    if unhealed and not out.is_quiet and not out.is_json:
        out.rows(unhealed, columns=("table_id", "rule", "message", "why"), title="Not cured")


def _without_cure(unhealed: Iterable[Unhealed], given: dict[str, Any]) -> list[dict[str, Any]]:
    """What is sick and has no proposal, in the shape of one: no id, no kind, and why."""
    from dataclasses import fields  # noqa: PLC0415 keeps --help fast

    from lakehouse_core.domain.maintenance import Action  # noqa: PLC0415 as above

    empty: dict[str, Any] = dict.fromkeys(one.name for one in fields(Action))
    empty |= {"priority": 0.0, "evidence": (), "predicted": (), "realised": (), "verification": ()}
    is_asked = given.get("state", "open") in {"open", "all"} and given.get("kind") is None
    return [
        empty
        | {
            "table_id": one.table_id,
            "state": "no_cure",
            "title": one.message,
            "reason": one.message,
            "rule": one.rule,
            "health": one.state,
            "explanation": one.why,
        }
        for one in unhealed
        if is_asked and given.get("table") in {None, one.table_id}
    ]


def _decide(
    options: tuple[Output, Path | None], action_id: str, verb: DecisionVerb, given: dict[str, Any]
) -> None:
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.decisions import Wish, ask  # noqa: PLC0415 as above
    from lakehouse_core.views.recommendations import show_recommendation  # noqa: PLC0415 as above

    out, file = options
    if is_trial(action_id):
        decide_one(options, action_id, verb, given)
        return
    with open_store(load(file).config) as store:
        action = show_recommendation(store, action_id).action
        given["actor"] = given["actor"] or getpass.getuser()
        given["plan_hash"] = given["plan_hash"] or _hash_of_the_moment(action, verb)
        answer = ask(store, Wish(action_id=action.action_id, verb=verb, **given))
        action = show_recommendation(store, action.action_id).action
    _tell(out, answer, action)


def _hash_of_the_moment(action: Action, verb: DecisionVerb) -> str:
    """The hash of the plan as it is now; what deletes files is approved by the hash that was seen.

    Raises:
        FilterError: names the hash and where to look.
    """
    from lakehouse_core.domain.errors import FilterError  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.maintenance import DESTRUCTIVE  # noqa: PLC0415 as above

    if verb == "approve" and action.kind in DESTRUCTIVE:
        raise FilterError(
            f"{action.kind} on {action.table_id} deletes files for good: what is approved is the "
            f"plan you have seen. Look at it (`lakehelm recommend show {action.action_id}`) and "
            f"give its hash: --plan-hash {action.plan_hash}"
        )
    return action.plan_hash


def _tell(out: Output, answer: DecisionRequest, action: Action) -> None:
    tell_answer(out, answer, action.action_id, action.state, _document(action))


def _document(action: Action) -> dict[str, Any]:
    """The action as JSON has it; `score` is what the table shows of the prediction."""
    from dataclasses import fields  # noqa: PLC0415 keeps --help fast

    from lakehouse_core.views.recommendations import change_of  # noqa: PLC0415 as above

    score = change_of(action, "score")
    shown = f"{score.before:.0f} → {score.after:.0f}" if score and score.after is not None else None
    return {one.name: getattr(action, one.name) for one in fields(action)} | {"score": shown}


def _print(out: Output, detail: RecommendationDetail) -> None:
    action = detail.action
    out.text(f"{action.action_id}  {action.title}  ({action.table_id})")
    out.text(f"State: {action.state}. {action.explanation or ''}".rstrip())
    out.text(f"Why: {action.reason}")
    out.text(f"Risk: {action.risk}")
    out.text(f"Plan {action.plan_hash}, {action.plan.input_bytes:,} bytes are read:")
    for stage in action.plan.stages:
        out.text(f"  {stage.name}:\n    {stage.call}")
    out.text(f"Checked right before: {', '.join(action.plan.preconditions)}")
    columns = ("name", "unit", "before", "after", "low", "high")
    out.rows(action.predicted, columns=columns, title="Predicted (modelled)")
    columns = ("engine_id", "runs", "bytes_scanned", "execution_ms", "saving_usd_month", "template")
    out.rows(detail.payers, columns=columns, one_line=("template",), title="Who pays for it")
    out.rows(detail.steps, columns=("noted_at", "actor", "verb"), title="What happened")


def _until(duration: str) -> datetime:
    from lakehouse_core.config.units import parse_duration  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.domain.errors import FilterError  # noqa: PLC0415 as above

    try:
        return datetime.now(UTC) + parse_duration(duration)
    except (ValueError, OverflowError) as error:
        raise FilterError(f"--for {duration!r}: {error}") from error

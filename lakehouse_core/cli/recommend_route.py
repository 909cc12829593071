"""`lakehelm recommend show|approve|reject|snooze route-…`: recommendations to move a template."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

import typer

from lakehouse_core.cli.output import ExitCode, Output, load
from lakehouse_core.domain.trial import ID_PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.domain.maintenance import DecisionRequest, DecisionVerb


def is_trial(action_id: str) -> bool:
    """Whether an id is that of a recommendation to move a template."""
    return action_id.startswith(ID_PREFIX)


def show_one(out: Output, config: Path | None, trial_id: str) -> None:
    """One of them in full: what was measured, the risk, where its trial stands."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.template_texts import template_texts  # noqa: PLC0415 as above
    from lakehouse_core.views.trials import show_trial, trial_document  # noqa: PLC0415 as above

    with open_store(load(config).config) as store:
        trial = show_trial(store, trial_id)
        text = template_texts(store, [trial.template_id]).get(trial.template_id)
    if out.is_json:
        out.record(trial_document(trial, text))
        return
    out.text(f"{trial.trial_id}  {trial.title}")
    if text:
        out.text(text)
    out.text(f"State: {trial.state}, {trial.share} %. {trial.explanation or ''}".rstrip())
    out.text(f"Risk: {trial.risk}")
    for when in ("before", "since"):
        sides = trial.figures.get(when) or {}
        rows = [{"engine": engine, **figures} for engine, figures in sides.items()]
        if rows:
            out.rows(rows, title=f"Measured {when}, in {trial.currency}")


def decide_one(
    options: tuple[Output, Path | None], trial_id: str, verb: DecisionVerb, given: dict[str, Any]
) -> None:
    """Send a decision and tell what came of it. Exit code 1 when it is refused."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.decisions import Wish, ask  # noqa: PLC0415 as above
    from lakehouse_core.views.template_texts import template_texts  # noqa: PLC0415 as above
    from lakehouse_core.views.trials import show_trial, trial_document  # noqa: PLC0415 as above

    out, file = options
    with open_store(load(file).config) as store:
        trial = show_trial(store, trial_id)
        given["actor"] = given["actor"] or getpass.getuser()
        given["plan_hash"] = given["plan_hash"] or trial.plan_hash
        answer = ask(store, Wish(action_id=trial_id, verb=verb, **given))
        trial = show_trial(store, trial_id)
        text = template_texts(store, [trial.template_id]).get(trial.template_id)
    tell_answer(out, answer, trial_id, trial.state, trial_document(trial, text))


def tell_answer(
    out: Output, answer: DecisionRequest, name: str, state: str, document: dict[str, Any]
) -> None:
    """What came of a decision. Exit code 1 when it was refused."""
    if out.is_json:
        out.record({"request": answer, "action": document})
    elif answer.state == "done":
        out.say(f"{name}: {answer.answer}")
    else:
        out.warn(f"{name} is {state}: {answer.answer}")
    if answer.state != "done":
        raise typer.Exit(ExitCode.FAILURE)

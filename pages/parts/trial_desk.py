"""Routing recommendations on the page: the list, what was measured, and deciding about one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.trial import ACTIVE, OPEN
from lakehouse_core.views.decisions import LONGEST_NAME, LONGEST_TEXT, Wish, ask
from lakehouse_core.views.template_texts import template_texts
from lakehouse_core.views.trials import list_trials
from pages.parts import answers, frame, session
from pages.parts.cells import counted, number, one_line, percent, show, state_word, wide
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import DecisionVerb
    from lakehouse_core.domain.trial import RouteTrial

_SUBJECT = "routing recommendations"


def trials(wanted: str | None) -> None:
    """Templates that would be cheaper on another engine, and how their trials go.

    Args:
        wanted: the one that the page's address names, if it names one.
    """
    found = session.read_now(list_trials, "all")
    if not found:
        return
    # What runs, what waits, what is over; the largest saving of each first.
    found = tuple(sorted(found, key=lambda one: (one.state not in ACTIVE, one.state not in OPEN)))
    st.subheader("Which templates should run elsewhere?", anchor=False)
    texts = session.read_now(template_texts, tuple(one.template_id for one in found))
    _grid(found, texts)
    frame.caption(
        "Measured saving of a month like the last 7 days, four of five times within its range; "
        "only statements through the gateway are moved.",
        "routing",
    )
    waiting = {one.trial_id: one for one in found if one.state in OPEN}
    answers.tell(_SUBJECT)
    if waiting:
        _desk(waiting, texts, wanted)


def _grid(found: tuple[RouteTrial, ...], texts: dict[str, str]) -> None:
    rows = []
    for one in found:
        before = one.figures["before"]
        here, there = before[one.from_engine], before[one.to_engine]
        rows.append(
            {
                "template": one_line(texts.get(one.template_id)) or one.template_id,
                "from": one.from_engine,
                "to": one.to_engine,
                "state": state_word(one.state.value),
                "share": percent(one.share / 100),
                "gain": None if one.gain_usd_month is None else float(one.gain_usd_month),
                "range": f"{one.gain_low:f} to {one.gain_high:f}",
                "runs": one.runs,
                "p95": here["p95_seconds"],
                "p95_there": there["p95_seconds"],
                "explanation": one.explanation,
            }
        )
    code = found[0].currency
    show(
        rows,
        {
            "template": wide("Template", "medium"),
            "from": "From",
            "to": "To",
            "state": "State",
            "share": number("Share moved", "%.0f %%"),
            "gain": number("Saving", f"%.4f {code}/month"),
            "range": f"Range, {code}/month",
            "runs": counted("Runs", "Measured on both engines."),
            "p95": number("p95 now", "%.3f s"),
            "p95_there": number("p95 there", "%.3f s"),
            "explanation": wide("What was measured since", "medium"),
        },
    )


def _desk(waiting: dict[str, RouteTrial], texts: dict[str, str], wanted: str | None) -> None:
    ids = sorted(waiting, key=lambda one: one != wanted)  # what the address names comes first
    chosen = st.selectbox(
        "Recommendation", ids, key="trial_id", format_func=lambda one: waiting[one].title
    )
    trial = waiting[chosen]
    st.code(texts.get(trial.template_id, trial.template_id), language="sql", wrap_lines=True)
    st.markdown(plain(trial.risk))
    who, why = st.columns([1, 2])
    actor = who.text_input("Your name", max_chars=LONGEST_NAME, key="trial_actor")
    reason = why.text_input("Reason", max_chars=LONGEST_TEXT, key="trial_reason")
    with st.container(horizontal=True):
        for verb, is_ready in (
            ("approve", bool(actor)),
            ("reject", bool(actor and reason)),
            ("snooze", bool(actor)),
        ):
            st.button(
                "Snooze for 7 days" if verb == "snooze" else verb.capitalize(),
                key=f"trial_{verb}",
                type="primary" if verb == "approve" else "secondary",
                disabled=not is_ready,
                on_click=_decide,
                args=(trial, verb),
            )


def _decide(trial: RouteTrial, verb: DecisionVerb) -> None:
    given = st.session_state
    wish = Wish(
        action_id=trial.trial_id,
        verb=verb,
        actor=given["trial_actor"],
        plan_hash=trial.plan_hash,
        reason=given["trial_reason"] or None,
        until=utc_now() + timedelta(days=7) if verb == "snooze" else None,
    )
    answers.keep(_SUBJECT, lambda: ask(session.store(), wish))

"""Deciding about a recommendation: name, reason, typed confirmation, and what came of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import streamlit as st

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.maintenance import NEXT, State
from lakehouse_core.views.decisions import LONGEST_NAME, LONGEST_TEXT, Wish, ask
from pages.parts import answers, session
from pages.parts.text import plain

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import Action, DecisionVerb
    from lakehouse_core.views.recommendations import RecommendationDetail

_ACTOR = "actor_name"  # kept for the visit, whichever page is open
_SNOOZES = {"1 day": 1, "7 days": 7, "30 days": 30}


def desk(detail: RecommendationDetail) -> None:
    """The buttons, for what waits for a decision; above them the answer to the last one."""
    action = detail.action
    answers.tell(action.action_id)
    if not detail.is_open:
        return
    st.markdown("**Decide**")
    who, why = st.columns([1, 2])
    st.session_state.setdefault("decide_actor", st.session_state.get(_ACTOR, ""))
    actor = who.text_input(
        "Your name",
        max_chars=LONGEST_NAME,
        key="decide_actor",
        help="Stands under the decision, in the audit chain.",
    )
    st.session_state[_ACTOR] = actor
    reason = why.text_input(
        "Reason", max_chars=LONGEST_TEXT, key=f"decide_reason_{action.action_id}"
    )
    confirmation = None
    if detail.needs_typing:
        confirmation = st.text_input(
            f"It deletes files for good. To approve it, type {plain(action.table_id)}",
            max_chars=LONGEST_TEXT,
            key=f"decide_confirm_{action.action_id}",
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Approve",
            type="primary",
            icon=":material/thumb_up:",
            key="decide_approve",
            on_click=_decide,
            args=(detail, "approve"),
            disabled=not actor or (detail.needs_typing and confirmation != action.table_id),
        )
        st.button(
            "Reject",
            icon=":material/thumb_down:",
            key="decide_reject",
            on_click=_decide,
            args=(detail, "reject"),
            disabled=not actor or not reason,
            help="Needs a reason. Proposed again only when the table is much worse.",
        )
        st.selectbox("Snooze for", list(_SNOOZES), index=1, key="decide_for", width=120)
        st.button(
            "Snooze",
            icon=":material/bedtime:",
            key="decide_snooze",
            on_click=_decide,
            args=(detail, "snooze"),
            disabled=not actor,
        )
    st.caption("The agents process checks a decision and answers within seconds.")


def cancel_desk(action: Action) -> None:
    """The button that ends an approved action; above it the answer to the last click."""
    answers.tell(action.action_id)
    if State.CANCELLED not in NEXT[action.state]:
        return
    st.session_state.setdefault("cancel_actor", st.session_state.get(_ACTOR, ""))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        actor = st.text_input(
            "Your name", max_chars=LONGEST_NAME, key="cancel_actor", width=240,
            help="Stands under the decision, in the audit chain.",
        )  # fmt: skip
        st.session_state[_ACTOR] = actor
        st.button(
            "Cancel",
            icon=":material/cancel:",
            key="decide_cancel",
            on_click=_send,
            args=(action.action_id, action.plan_hash),
            disabled=not actor,
            help="What waits ends at once; what runs ends before its next commit.",
        )


def _send(action_id: str, plan_hash: str) -> None:
    actor = st.session_state["cancel_actor"]
    _ask(Wish(action_id=action_id, verb="cancel", actor=actor, plan_hash=plan_hash))


def _decide(detail: RecommendationDetail, verb: DecisionVerb) -> None:
    """Send the decision about what was shown."""
    action, given = detail.action, st.session_state
    days = _SNOOZES[given["decide_for"]]
    wish = Wish(
        action_id=action.action_id,
        verb=verb,
        actor=given["decide_actor"],
        plan_hash=action.plan_hash,
        reason=given[f"decide_reason_{action.action_id}"] or None,
        confirmation=given.get(f"decide_confirm_{action.action_id}"),
        until=utc_now() + timedelta(days=days) if verb == "snooze" else None,
    )
    _ask(wish)


def _ask(wish: Wish) -> None:
    answers.keep(wish.action_id, lambda: ask(session.store(), wish))

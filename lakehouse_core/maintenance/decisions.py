"""The rules of a decision: who may approve, reject, snooze or cancel what, and when it is void.

Pure: all that is known comes in as `Circumstances`, the verdict goes out. agents/decide.py reads
the one and carries out the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from lakehouse_core.domain.maintenance import DESTRUCTIVE, NEXT, State
from lakehouse_core.maintenance.difference import figures_of, is_material, material_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.config.models import MaintenanceConfig
    from lakehouse_core.domain.maintenance import Action, DecisionRequest
    from lakehouse_core.domain.table import LakeTable, TableMetrics

PROPOSER = "lakehelm"  # signs the proposals of the agents
POLICY_PREFIX = "policy:"
DEFAULT_SNOOZE = timedelta(days=7)
LONGEST_SNOOZE = timedelta(days=90)
# A wish nobody answered for so long was made about another state of things.
LONGEST_WAIT = timedelta(minutes=10)
CLOCK_TOLERANCE = timedelta(minutes=1)
# So many times the difference that makes a proposal anew makes an approval void.
MUCH = 5
_TARGETS = {
    "approve": State.APPROVED,
    "reject": State.REJECTED,
    "snooze": State.SNOOZED,
    "cancel": State.CANCELLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a decision is judged by.

    Attributes:
        now: the moment.
        settings: the configuration of maintenance.
        table: the table as last seen; None: it is not known any more.
        metrics: its structure at its current snapshot; None: not collected.
        rewritten_at: when somebody else last replaced files of the table after the evidence.
    """

    now: datetime
    settings: MaintenanceConfig
    table: LakeTable | None = None
    metrics: TableMetrics | None = None
    rewritten_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCircumstances:
    """What an approval is judged by when its turn comes, from a fresh look at the table.

    Attributes:
        rewritten_at: when somebody else last replaced files of the table.
    """

    now: datetime
    settings: MaintenanceConfig
    metrics: TableMetrics
    rewritten_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What comes of a wish.

    Attributes:
        to: the state the action goes to; None: it stays as it is.
        is_granted: whether that is what was asked for.
        answer: for the one who asked, in words.
        changes: other fields of the action that change.
        is_stop: a running action is to be stopped; whoever runs it ends it.
    """

    to: State | None
    is_granted: bool
    answer: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    is_stop: bool = False


class Proposal(Protocol):
    """What is decided about: an action of maintenance, or a trial of routing."""

    @property
    def plan_hash(self) -> str:
        """Of what is approved."""

    @property
    def updated_at(self) -> datetime:
        """When it last changed."""


def why_not_taken(proposal: Proposal, wish: DecisionRequest, now: datetime) -> str | None:
    """Why a wish is refused whatever it is about; None: it may be granted."""
    return next((text for rule in _OF_ALL if (text := rule(proposal, wish, now))), None)


def decide(action: Action, wish: DecisionRequest, around: Circumstances) -> Verdict:
    """What comes of a wish about an action."""
    refusal = why_not_taken(action, wish, around.now) or next(
        (text for rule in _RULES if (text := rule(action, wish, around))), None
    )
    if refusal is not None:
        return _refused(refusal)
    if wish.verb == "cancel" and action.state is State.RUNNING:
        return Verdict(
            to=None, is_granted=True, is_stop=True,
            answer="It is told to stop: it ends before its next commit",
        )  # fmt: skip
    if wish.verb in {"approve", "snooze"}:
        void = why_void(action, around)
        if void is not None:
            return Verdict(
                to=State.EXPIRED,
                is_granted=False,
                answer=f"Not {_past(wish.verb)}: {void}",
                changes={"explanation": void, "ended_at": around.now},
            )
    return _granted(action, wish, around.now)


def why_void(action: Action, around: Circumstances) -> str | None:
    """Why a proposal does not stand any more; None: it does."""
    now = around.now
    if now >= action.expires_at:
        return f"the proposal expired {action.expires_at.isoformat()}"
    if now - action.evidence_at > around.settings.expires_after:
        return f"its evidence is of {action.evidence_at.isoformat()} and too old"
    return _another_table(action, around.table) or _another_state(action, around)


def why_void_now(action: Action, around: StartCircumstances) -> str | None:
    """Why an approval does not hold any more when its turn comes; None: it does.

    Not all that voids a proposal voids an approval: a table that goes on being written has more to
    cure, and is what the approval is about. It is void when somebody else has done the work, when
    much of what it was for is gone, or when the table is so much larger that it costs far more.
    """
    now, settings = around.now, around.settings
    if now - action.evidence_at > settings.expires_after:
        return f"Its evidence is of {action.evidence_at.isoformat()} and too old: it is asked anew"
    if action.kind in DESTRUCTIVE or action.attempts:
        return None  # what is deleted is chosen by rules of its own; a retry meets its own work
    since = around.rewritten_at
    if since is not None and since > action.evidence_at:
        return f"Files of the table were rewritten by somebody else {since.isoformat()}"
    share, figures = MUCH * settings.min_difference, figures_of(around.metrics)
    for change in action.predicted:
        found = figures.get(change.name)
        if found is None or change.before is None:
            continue
        is_worse = found < change.before or change.name == "total_bytes"
        if is_worse and is_material(change.name, change.before, found, share):
            return (
                f"The table is another one than was approved: {change.name.replace('_', ' ')} "
                f"{change.before:,.0f} then, {found:,.0f} now"
            )
    return None


def _another_table(action: Action, table: LakeTable | None) -> str | None:
    if table is None or table.dropped_at is not None:
        return f"table {action.table_id} does not exist any more"
    if table.table_uuid != action.plan.table_uuid:
        return f"{action.table_id} is another table now: it was dropped and made anew"
    if table.error is not None:
        return f"the metadata of {action.table_id} cannot be read: {table.error}"
    return None


def _another_state(action: Action, around: Circumstances) -> str | None:
    if around.rewritten_at is not None and action.kind not in DESTRUCTIVE:
        return f"files of the table were rewritten {around.rewritten_at.isoformat()}"
    if around.metrics is None:
        return f"nothing is known of the structure of {action.table_id}"
    moved = material_difference(
        action.predicted, figures_of(around.metrics), around.settings.min_difference
    )
    return f"the table changed since it was looked at: {moved}" if moved else None


def _state_allows(action: Action, wish: DecisionRequest, _: Circumstances) -> str | None:
    if _TARGETS[wish.verb] in NEXT[action.state] and _is_open(action, wish):
        return None
    return f"An action that is {action.state} cannot be {_past(wish.verb)}"


def _is_open(action: Action, wish: DecisionRequest) -> bool:
    # A proposal is rejected, not cancelled; a decision is used once.
    return wish.verb != "cancel" or action.state not in {State.PROPOSED, State.SNOOZED}


def is_reserved(actor: str) -> bool:
    """Whether a name is nobody's, or one that Lakehelm signs with itself."""
    name = actor.strip().casefold()
    return not name or name.partition(":")[0] == PROPOSER or name.startswith(POLICY_PREFIX)


def _actor_is_somebody(_: Proposal, wish: DecisionRequest, __: datetime) -> str | None:
    if not wish.actor.strip():
        return "Nobody signed it: a decision has a name under it"
    if is_reserved(wish.actor):
        return f"The name {wish.actor!r} is Lakehelm's own: sign with yours"
    return None


def _plan_was_seen(proposal: Proposal, wish: DecisionRequest, _: datetime) -> str | None:
    if wish.plan_hash == proposal.plan_hash:
        return None
    return "The plan is not the one you have seen: look at it again and decide anew"


def _times_make_sense(proposal: Proposal, wish: DecisionRequest, now: datetime) -> str | None:
    if max(wish.asked_at, proposal.updated_at) > now + CLOCK_TOLERANCE:
        return "The clock of this machine was set back: decide again when it is right"
    if now - wish.asked_at > LONGEST_WAIT:
        return f"It was asked {wish.asked_at.isoformat()}, too long ago: ask again"
    return None


def _eyes_are_four(action: Action, wish: DecisionRequest, around: Circumstances) -> str | None:
    is_own = wish.actor.strip().casefold() == action.proposed_by.strip().casefold()
    if wish.verb == "approve" and around.settings.four_eyes and is_own:
        return f"{wish.actor} proposed it: somebody else has to approve it"
    return None


def _confirmed(action: Action, wish: DecisionRequest, _: Circumstances) -> str | None:
    if wish.verb != "approve" or action.kind not in DESTRUCTIVE:
        return None
    if wish.confirmation == action.table_id:
        return None
    return f"It deletes files for good: confirm it by typing the table's name, {action.table_id}"


def _has_reason(_: Proposal, wish: DecisionRequest, __: datetime) -> str | None:
    if wish.verb == "reject" and not (wish.reason or "").strip():
        return "A rejection needs its reason: it is kept, and the proposal is not made again"
    return None


def _snooze_ends(_: Proposal, wish: DecisionRequest, now: datetime) -> str | None:
    if wish.verb != "snooze" or wish.until is None:
        return None
    if not now < wish.until <= now + LONGEST_SNOOZE:
        return f"A proposal sleeps until a time to come, at most {LONGEST_SNOOZE.days} days ahead"
    return None


_OF_ALL: tuple[Callable[[Proposal, DecisionRequest, datetime], str | None], ...] = (
    _actor_is_somebody,
    _times_make_sense,
    _plan_was_seen,
    _has_reason,
    _snooze_ends,
)
_RULES: tuple[Callable[[Action, DecisionRequest, Circumstances], str | None], ...] = (
    _state_allows,
    _eyes_are_four,
    _confirmed,
)


def _granted(action: Action, wish: DecisionRequest, now: datetime) -> Verdict:
    until = (wish.until or now + DEFAULT_SNOOZE) if wish.verb == "snooze" else None
    changes: dict[str, Any] = {
        "decided_by": wish.actor.strip(),
        "decided_at": now,
        "decision_reason": wish.reason,
        "snoozed_until": until,
        "explanation": None,
    }
    to = _TARGETS[wish.verb]
    if not NEXT[to]:
        changes["ended_at"] = now
    answer = f"{_past(wish.verb).capitalize()} by {wish.actor.strip()}"
    if until is not None:
        answer += f" until {until.isoformat()}"
    return Verdict(to=to, is_granted=True, answer=answer, changes=changes)


def _refused(text: str) -> Verdict:
    return Verdict(to=None, is_granted=False, answer=text)


def _past(verb: str) -> str:
    past = {"approve": "approved", "reject": "rejected", "snooze": "snoozed", "cancel": "cancelled"}
    return past[verb]

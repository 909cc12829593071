"""From what would be proposed now to what changes in the ledger: deduplicated, without flapping.

There is one open action per table and kind. It is made anew only when its figures differ by more
than the configured share, and renewed when half of its time is over. What was rejected, failed or
just done is not proposed again before the table is another one: what was done comes back when a
good part of what it brought is lost, or after a pause when the table is critical for it again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.maintenance import Kind, State
from lakehouse_core.maintenance.decisions import MUCH, PROPOSER
from lakehouse_core.maintenance.difference import figures_of, is_material, material_difference
from lakehouse_core.maintenance.states import Step
from lakehouse_core.recommend.after_etl import PROPOSER_AFTER_ETL
from lakehouse_core.recommend.layout_proposals import SCAN_BYTES, is_layout
from lakehouse_core.recommend.propose import dedupe_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from lakehouse_core.config.models import MaintenanceConfig
    from lakehouse_core.domain.maintenance import Action, Change
    from lakehouse_core.recommend.facts import Subject

WAITING = frozenset({State.PROPOSED, State.SNOOZED})
UNDER_WAY = frozenset({State.APPROVED, State.SCHEDULED, State.RUNNING, State.VERIFYING})
# What failed is proposed again the next day, or when the table has changed.
PAUSE = timedelta(days=1)
# A table that is written gets worse by itself: what was done comes back when a quarter is lost.
WAY_BACK = 0.25
# A table that a stream writes to is critical again long before that. So often is enough for it.
COOL_DOWN = timedelta(hours=1)
_USD = "saving_usd_month"
_SNAPSHOTS = "snapshots"
NO_LONGER_NEEDED = "The table does not need it any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the ledger holds, and what was found out about the tables.

    Attributes:
        known: by its key the open action or, where there is none, the newest.
        subjects: tables that were looked at, by id.
        gone: why a table was not looked at, by id.
    """

    known: Mapping[str, Action]
    subjects: Mapping[str, Subject]
    gone: Mapping[str, str]
    settings: MaintenanceConfig
    now: datetime


def reconcile(wanted: Iterable[Action], around: Situation) -> list[Step]:
    """The steps that make the ledger say what is wanted; none when it does already."""
    steps: list[Step] = []
    keys = set()
    for action in wanted:
        keys.add(action.dedupe_key)
        steps += _reconcile_one(action, around)
    steps += [
        _expire(action, why, around.now)
        for key, action in around.known.items()
        if key not in keys and action.state in WAITING and (why := _why_over(action, keys, around))
    ]
    return steps


def _reconcile_one(wanted: Action, around: Situation) -> list[Step]:
    last = around.known.get(wanted.dedupe_key)
    if last is None:
        return [_new(wanted)]
    if last.state in UNDER_WAY or not _is_ours_or_over(last, around):
        return []
    if last.state in WAITING:
        return _refresh(last, wanted, around)
    return [_new(wanted)] if _may_come_back(last, wanted, around) else []


def _is_ours_or_over(action: Action, around: Situation) -> bool:
    """What somebody proposed by hand stands as it is, until its time is over or its table gone."""
    is_over = around.now >= action.expires_at or action.table_id in around.gone
    return action.proposed_by == PROPOSER or is_over


def _why_over(action: Action, wanted_keys: Collection[str], around: Situation) -> str | None:
    """Why a proposal that was not made again is over; None: it stands."""
    if _is_ours_or_over(action, around):
        return around.gone.get(action.table_id, NO_LONGER_NEEDED)
    if action.proposed_by == PROPOSER_AFTER_ETL:
        if dedupe_key(action.table_id, Kind.COMPACT) in wanted_keys:
            return "The whole table is to be compacted, which does this, too"
        subject = around.subjects.get(action.table_id)
        if subject is None:  # a table that somebody else cares for
            return NO_LONGER_NEEDED
        figures = figures_of(subject.metrics)
        return material_difference(action.predicted, figures, around.settings.min_difference)
    return None


def _refresh(last: Action, wanted: Action, around: Situation) -> list[Step]:
    if last.plan.table_uuid != wanted.plan.table_uuid or around.now >= last.expires_at:
        why = "The table was made anew, or the time of the proposal is over"
        return [_expire(last, why, around.now), _new(wanted)]
    is_awake = last.state is State.PROPOSED
    if last.state is State.SNOOZED:
        if last.snoozed_until is not None and around.now < last.snoozed_until:
            return []
        is_awake = False
    moved = _moved(last, wanted, around.settings.min_difference)
    is_old = last.expires_at - around.now < around.settings.expires_after / 2
    if is_awake and moved is None and not is_old:
        return []
    verb = "refreshed" if moved else ("renewed" if is_awake else None)
    fields = _FACTS if moved else _EVIDENCE
    after = replace(
        last,
        state=State.PROPOSED,
        snoozed_until=None,
        **{name: getattr(wanted, name) for name in fields},
    )
    reason = {"reason": moved or "its time is renewed: the table still needs it"}
    return [Step(before=last, after=after, by=PROPOSER, verb=verb, why=reason)]


_EVIDENCE = ("evidence", "evidence_at", "expires_at")
_FACTS = (
    *_EVIDENCE,
    *("title", "reason", "predicted", "risk", "plan", "plan_hash", "gain_usd_month", "cost_usd"),
    "priority",
)


def _moved(last: Action, wanted: Action, share: float) -> str | None:
    """Which figure differs so much that the proposal is made anew."""
    figures = {one.name: one.before for one in wanted.predicted if one.before is not None}
    figures.pop("score", None)
    figures.pop("planning_ms", None)
    found = material_difference(last.predicted, figures, share)
    if found is not None:
        return found
    # Snapshots grow old while the table stands still: what is there is the same, what may go more.
    left, leaving = _predicted(last, _SNAPSHOTS), _predicted(wanted, _SNAPSHOTS)
    if left is not None and leaving is not None and is_material(_SNAPSHOTS, left, leaving, share):
        return f"{left:,.0f} snapshots were to be left, and {leaving:,.0f} now"
    before, now = _predicted(last, _USD), _predicted(wanted, _USD)
    # Money grows with every query that is seen: only a great difference is news.
    if (before is None) != (now is None):
        return "what it saves could be priced, or cannot be any more"
    if before is not None and now is not None and is_material(_USD, before, now, MUCH * share):
        return f"its saving was {before:.2f} USD a month, and is {now:.2f} now"
    return None


def _predicted(action: Action, name: str) -> float | None:
    return next((one.after for one in action.predicted if one.name == name), None)


def _may_come_back(last: Action, wanted: Action, around: Situation) -> bool:
    """Whether what is over may be proposed again."""
    subject, share = around.subjects[last.table_id], around.settings.min_difference
    figures = figures_of(subject.metrics)
    if last.state is State.EXPIRED:
        return True
    if last.plan.table_uuid != subject.table.table_uuid:
        return True
    if last.state is State.REJECTED:
        # What somebody said no to must have become clearly worse.
        return material_difference(last.predicted, figures, MUCH * share) is not None
    if last.state is State.VERIFIED:
        ended = last.ended_at or last.updated_at
        if is_layout(wanted):
            return wanted.evidence_at > ended and _is_read_more(last, wanted)
        is_urgent = around.now - ended >= COOL_DOWN and _is_critical(wanted, subject)
        return _is_bad_again(last, subject, share, way_back=0.0 if is_urgent else WAY_BACK)
    ended = last.ended_at or last.updated_at
    return around.now - ended >= PAUSE or (
        subject.metrics.collected_at > ended
        and material_difference(last.predicted, figures, share) is not None
    )


def _is_critical(wanted: Action, subject: Subject) -> bool:
    """Whether the table is critical for a reason that the action would cure."""
    return any(
        one.state is HealthState.CRITICAL and one.message in wanted.reason
        for one in subject.health.contributors
    )


def _is_bad_again(last: Action, subject: Subject, share: float, *, way_back: float) -> bool:
    """Whether more than a part of what the action brought is lost again, as collected since."""
    ended = last.ended_at or last.updated_at
    if subject.metrics.collected_at <= ended:
        return False
    aims = {one.name for one in last.predicted or last.realised if _is_less(one)} - {"total_bytes"}
    known = {one.name: one for one in (*last.predicted, *last.realised) if one.name in aims}
    for name, now in figures_of(subject.metrics).items():
        change = known.get(name)
        if change is None or change.before is None or change.after is None:
            continue
        lost, brought = now - change.after, max(change.before - change.after, 0.0)
        if lost > way_back * brought and is_material(name, change.after, now, share):
            return True
    return False


def _is_read_more(last: Action, wanted: Action) -> bool:
    """Whether readers lost a part of what a layout brought: newer advice knows what they read now.

    No figure of the table says how sorted it is; and advice that promises more than its rewrite
    kept must not have the table rewritten again and again.
    """
    brought = next((one for one in last.realised if one.name == SCAN_BYTES), None)
    now = next((one.before for one in wanted.predicted if one.name == SCAN_BYTES), None)
    if brought is None or brought.before is None or brought.after is None or now is None:
        return True
    return now - brought.after > WAY_BACK * max(brought.before - brought.after, 0.0)


def _is_less(change: Change) -> bool:
    """Whether a figure was to become less; what grows beside it is not what the action is for."""
    return change.before is not None and change.after is not None and change.after < change.before


def _expire(action: Action, why: str, now: datetime) -> Step:
    after = replace(action, state=State.EXPIRED, explanation=why, ended_at=now)
    return Step(before=action, after=after, by=PROPOSER, why={"reason": why})


def _new(action: Action) -> Step:
    return Step(before=None, after=action, by=action.proposed_by)

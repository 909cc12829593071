"""Trials of routing: proposed, decided, tried step by step, adopted or taken back; all audited."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from agents.wishes import Desk, why
from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.domain.maintenance import Saving
from lakehouse_core.domain.trial import ACTIVE, OPEN, SHARES, RouteTrial, TrialState
from lakehouse_core.maintenance.audit import Note
from lakehouse_core.maintenance.decisions import DEFAULT_SNOOZE, PROPOSER, why_not_taken
from lakehouse_core.maintenance.states import Ledger
from lakehouse_core.recommend.route_advice import EXPIRES_AFTER, Side, judge_step, proposals
from lakehouse_core.routing.trials import said_by
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.measured import measured
from lakehouse_core.views.trials import list_trials, show_trial
from lakehouse_core.views.window import Window, parse_window

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.maintenance import DecisionRequest
    from lakehouse_core.recommend.route_advice import Groups
    from lakehouse_core.store.owner import OwnerStore

WINDOW = "7d"
NOT_AGAIN = timedelta(days=30)  # after a no, or a retreat
LONGEST_LOOK = timedelta(days=7)  # older runs say nothing of today
MONTH = timedelta(hours=730)
LEAST_TIME = timedelta(days=1)
MATERIAL = Decimal("0.2")  # a saving that moved by less is the same proposal
_MICRO = Decimal("0.000001")
WAITING_SQL = """
SELECT * FROM decision_request
WHERE state = 'waiting' AND verb <> 'propose' AND starts_with(action_id, 'route-')
ORDER BY asked_at, request_id LIMIT 100
"""


class TrialLedger:
    """Writes trials, each change with its row of the audit chain."""

    def __init__(self, store: OwnerStore, clock: Clock) -> None:
        self._ledger = Ledger(store, clock)
        self._clock = clock

    def write(
        self,
        trial: RouteTrial,
        *,
        by: str,
        verb: str,
        why: Mapping[str, Any] | None = None,
        beside: Mapping[str, pa.Table] | None = None,
    ) -> RouteTrial:
        """Write a trial as it is now."""
        after = replace(trial, revision=trial.revision + 1, updated_at=self._clock())
        detail = {
            **(why or {}),
            "to": after.state.value,
            "share": after.share,
            "template": after.template_id,
            "from_engine": after.from_engine,
            "to_engine": after.to_engine,
            "plan_hash": after.plan_hash,
            "explanation": after.explanation,
        }
        rows = {"route_trial": to_arrow("route_trial", [after]), **(beside or {})}
        note = Note(actor=by, verb=verb, action_id=after.trial_id, detail=detail)
        self._ledger.note(note, rows)
        return after


def propose(store: OwnerStore, clock: Clock, groups: Groups) -> int:
    """Bring the proposals up to date; returns how many changed."""
    now, ledger = clock(), TrialLedger(store, clock)
    found = measured(store, parse_window(WINDOW, now))
    wanted = {(one.template_id, one.to_engine): one for one in proposals(found, groups, now)}
    written = 0
    busy = set()
    for trial in list_trials(store, "all"):
        if trial.state in ACTIVE or _is_resting(trial, now):
            busy.add(trial.template_id)
        if trial.state not in OPEN:
            continue
        busy.add(trial.template_id)
        fresh = wanted.get((trial.template_id, trial.to_engine))
        after = _renewed(trial, fresh, now)
        if after is not None:
            ledger.write(after, by=PROPOSER, verb=after.state.value)
            written += 1
    for one in wanted.values():
        if one.template_id not in busy:
            ledger.write(one, by=PROPOSER, verb="proposed")
            written += 1
    return written


def _is_resting(trial: RouteTrial, now: datetime) -> bool:
    refused = {TrialState.REJECTED, TrialState.RETREATED, TrialState.CANCELLED}
    return trial.state in refused and now - trial.updated_at < NOT_AGAIN


def _renewed(trial: RouteTrial, fresh: RouteTrial | None, now: datetime) -> RouteTrial | None:
    """An open proposal after another look; None when nothing is new."""
    if trial.state is TrialState.SNOOZED:
        if trial.snoozed_until is not None and trial.snoozed_until > now:
            return None
        trial = replace(trial, state=TrialState.PROPOSED, snoozed_until=None)
    elif fresh is not None and _says_the_same(trial, fresh, now):
        return None
    if fresh is None:
        said = "What was measured since does not bear it out any more"
        return replace(trial, state=TrialState.EXPIRED, explanation=said)
    kept = ("trial_id", "revision", "proposed_at")
    return replace(fresh, **{name: getattr(trial, name) for name in kept})


def _says_the_same(trial: RouteTrial, fresh: RouteTrial, now: datetime) -> bool:
    """Whether a proposal needs no renewal: every renewal is a row of the audit chain."""
    before, after = trial.gain_usd_month or Decimal(0), fresh.gain_usd_month or Decimal(0)
    is_young = trial.expires_at - now > EXPIRES_AFTER / 2
    return is_young and abs(after - before) <= before * MATERIAL


def take_steps(store: OwnerStore, clock: Clock) -> int:
    """Look at every trial in force: go on, go back, keep its saving; returns how many changed."""
    ledger, now = TrialLedger(store, clock), clock()
    changed = 0
    for state in sorted(ACTIVE):
        for trial in list_trials(store, state.value):
            changed += _step(store, ledger, trial, now)
    return changed


def _step(store: OwnerStore, ledger: TrialLedger, trial: RouteTrial, now: datetime) -> int:
    window = Window(max(trial.step_at or now, now - LONGEST_LOOK), now, "this share")
    ran = measured(store, window, template=trial.template_id)
    # What runs there without it, by weights or past the gateway, proves and saves nothing.
    tried = measured(store, window, template=trial.template_id, said=said_by(trial.trial_id))
    sides = {
        name: Side.of(cell for cell in found.cells if cell.engine_id == name)
        for name, found in ((trial.from_engine, ran), (trial.to_engine, tried))
    }
    before = Side.from_json(trial.figures["before"][trial.from_engine])
    since, there = sides[trial.from_engine], sides[trial.to_engine]
    is_enough = since.finished >= before.finished // 4 and since.cost_per_run is not None
    here = since if is_enough and since.finished else before
    verdict = judge_step(trial, here, there)
    if verdict.to == "wait":
        return 0
    figures = trial.figures | {"since": {name: side.to_json() for name, side in sides.items()}}
    if verdict.to == "back":
        after = replace(
            trial, state=TrialState.RETREATED, share=0, figures=figures, explanation=verdict.why
        )
        ledger.write(after, by=PROPOSER, verb="retreated")
        return 1
    if trial.share < SHARES[-1]:
        share = SHARES[SHARES.index(trial.share) + 1]
        after = replace(trial, share=share, step_at=now, figures=figures, explanation=verdict.why)
        ledger.write(after, by=PROPOSER, verb=f"share {share} %")
        return 1
    saving = _saving(trial, there, now)
    rows = {"savings": to_arrow("savings", [saving])}
    if trial.state is TrialState.ADOPTED:
        store.upsert("savings", rows["savings"])
        return 0
    after = replace(
        trial, state=TrialState.ADOPTED, figures=figures, explanation=f"Saving: {verdict.why}"
    )
    ledger.write(after, by=PROPOSER, verb="adopted", beside=rows)
    return 1


def _saving(trial: RouteTrial, there: Side, now: datetime) -> Saving:
    """What the move brought, as measured at its full share.

    Some of what it routes would have gone there anyway, or to a third engine: it counts the part
    that the old engine had before.
    """
    sides = {name: Side.from_json(one) for name, one in trial.figures["before"].items()}
    before, routable = sides[trial.from_engine], sum(one.routable for one in sides.values())
    begun = max(trial.step_at or now, now - LONGEST_LOOK)
    moved = Decimal(there.answers * before.routable) / max(routable, 1)
    per_month = moved * Decimal(MONTH / max(now - begun, LEAST_TIME))
    saved = (before.cost_per_run or Decimal(0)) - (there.cost_per_run or Decimal(0))
    return Saving(
        action_id=trial.trial_id,
        engine_id=trial.to_engine,
        template_id=trial.template_id,
        measured_at=now,
        runs_before=before.finished,
        runs_after=there.finished,
        bytes_per_run_before=None,
        bytes_per_run_after=None,
        ms_per_run_before=_ms(before.seconds_per_run),
        ms_per_run_after=_ms(there.seconds_per_run),
        usd_month=(saved * per_month).quantize(_MICRO),
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1_000


class TrialDecisions:
    """Answers wishes about routing recommendations."""

    def __init__(self, store: OwnerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._desk = Desk(store, clock, WAITING_SQL)
        self._ledger = TrialLedger(store, clock)

    def take_up(self) -> int:
        """Answer all that wait; returns how many there were."""
        return self._desk.take_up(self._answer)

    def _answer(self, wish: DecisionRequest) -> None:
        trial, now = show_trial(self._store, wish.action_id), self._clock()
        self._check(trial, wish, now)
        after, answer = _decided(trial, wish, now)
        self._ledger.write(
            after,
            by=wish.actor.strip(),
            verb=after.state.value,
            why=why(wish),
            beside=self._desk.answered(wish, answer, is_granted=True),
        )

    def _check(self, trial: RouteTrial, wish: DecisionRequest, now: datetime) -> None:
        allowed = ACTIVE if wish.verb == "cancel" else OPEN
        if trial.state not in allowed:
            raise MaintenanceError(f"It is {trial.state}: {wish.verb} does not apply to it")
        refusal = why_not_taken(trial, wish, now)
        if refusal is not None:
            raise MaintenanceError(refusal)
        if wish.verb == "approve" and now >= trial.expires_at:
            raise MaintenanceError(f"The proposal expired {trial.expires_at.isoformat()}")


def _decided(trial: RouteTrial, wish: DecisionRequest, now: datetime) -> tuple[RouteTrial, str]:
    """The trial after a wish that is granted, and the answer in words."""
    signed = replace(
        trial, decided_by=wish.actor.strip(), decided_at=now, decision_reason=wish.reason
    )
    if wish.verb == "approve":
        after = replace(signed, state=TrialState.TRIAL, share=SHARES[0], step_at=now)
        return after, f"Approved: {SHARES[0]} % of its statements go to {trial.to_engine} now"
    if wish.verb == "snooze":
        until = wish.until or now + DEFAULT_SNOOZE
        after = replace(signed, state=TrialState.SNOOZED, snoozed_until=until)
        return after, f"Snoozed until {until.isoformat()}"
    if wish.verb == "cancel":
        after = replace(signed, state=TrialState.CANCELLED, share=0)
        return after, "Cancelled: its statements go where they went before"
    return replace(signed, state=TrialState.REJECTED), "Rejected"

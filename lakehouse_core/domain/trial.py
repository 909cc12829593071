"""A routing recommendation and the trial it becomes: one template, from one engine to another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

ID_PREFIX = "route-"  # tells a trial from an action of maintenance
SHARES = (10, 50, 100)  # percent of the template's statements


class TrialState(StrEnum):
    """Where a trial stands."""

    PROPOSED = "proposed"
    SNOOZED = "snoozed"
    REJECTED = "rejected"
    EXPIRED = "expired"  # what was measured since speaks against it
    TRIAL = "trial"  # a share of the statements goes to the other engine
    ADOPTED = "adopted"  # all of them do, and the saving is measured
    RETREATED = "retreated"  # what was measured contradicts: all as before
    CANCELLED = "cancelled"


OPEN = frozenset({TrialState.PROPOSED, TrialState.SNOOZED})
ACTIVE = frozenset({TrialState.TRIAL, TrialState.ADOPTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTrial:
    """A row of `route_trial`.

    Attributes:
        revision: grows with every change.
        share: percent of the template's statements that go to `to_engine` now.
        gain_usd_month: measured saving of a month like the window; gain_low to gain_high: 80 %.
        runs: measured on both engines.
        figures: per engine what was measured: `before` the proposal, `since` the present share.
        plan_hash: of what is approved.
        step_at: when the present share began.
        explanation: why it is in this state, in words.
    """

    trial_id: str
    revision: int
    template_id: str
    from_engine: str
    to_engine: str
    state: TrialState
    share: int
    title: str
    risk: str
    currency: str
    gain_usd_month: Decimal | None
    gain_low: Decimal | None
    gain_high: Decimal | None
    runs: int
    figures: dict[str, Any]
    plan_hash: str
    proposed_at: datetime
    evidence_at: datetime
    updated_at: datetime
    expires_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None
    decision_reason: str | None = None
    snoozed_until: datetime | None = None
    step_at: datetime | None = None
    explanation: str | None = None

"""Maintenance: what is proposed, who decided, what was done, what it brought.

A recommendation and the action it leads to are one record with one id and one state: it is
proposed, decided, executed and proven. Every step is also a row of the audit chain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """What can be done to a table."""

    COMPACT = "compact"
    SORT = "sort"
    ZORDER = "zorder"
    HILBERT = "hilbert"
    SET_SORT_ORDER = "set_sort_order"
    EXPIRE_SNAPSHOTS = "expire_snapshots"
    REMOVE_ORPHANS = "remove_orphans"
    REWRITE_MANIFESTS = "rewrite_manifests"
    REWRITE_POSITION_DELETES = "rewrite_position_deletes"


# What deletes files cannot be undone: it asks for a typed confirmation.
DESTRUCTIVE = frozenset({Kind.EXPIRE_SNAPSHOTS, Kind.REMOVE_ORPHANS})


class State(StrEnum):
    """Where an action stands."""

    PROPOSED = "proposed"
    SNOOZED = "snoozed"  # proposed again after a while
    REJECTED = "rejected"
    EXPIRED = "expired"  # the evidence is too old, or the table changed in a way that matters
    APPROVED = "approved"
    SCHEDULED = "scheduled"  # waits for its window, its budget or its turn
    RUNNING = "running"
    VERIFYING = "verifying"
    VERIFIED = "verified"
    FAILED = "failed"
    REFUSED = "refused"  # a safety rule forbids it, or it would change nothing
    CANCELLED = "cancelled"


NEXT: dict[State, frozenset[State]] = {
    State.PROPOSED: frozenset({State.APPROVED, State.REJECTED, State.SNOOZED, State.EXPIRED}),
    State.SNOOZED: frozenset({State.PROPOSED, State.APPROVED, State.REJECTED, State.EXPIRED}),
    State.APPROVED: frozenset(
        {State.SCHEDULED, State.RUNNING, State.REFUSED, State.EXPIRED, State.CANCELLED}
    ),
    State.SCHEDULED: frozenset({State.RUNNING, State.REFUSED, State.EXPIRED, State.CANCELLED}),
    # Back to scheduled: the run was killed before it committed, or met a writer.
    State.RUNNING: frozenset(
        {State.VERIFYING, State.FAILED, State.REFUSED, State.CANCELLED, State.SCHEDULED}
    ),
    State.VERIFYING: frozenset({State.VERIFIED, State.FAILED}),
    State.REJECTED: frozenset(),
    State.EXPIRED: frozenset(),
    State.VERIFIED: frozenset(),
    State.FAILED: frozenset(),
    State.REFUSED: frozenset(),
    State.CANCELLED: frozenset(),
}
FINAL = frozenset(state for state, following in NEXT.items() if not following)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One figure before and after; a predicted one says how far it may be off."""

    name: str  # data_files, total_bytes, delete_files, manifests, snapshots, score, …
    unit: str  # files, bytes, ms, points, USD/month
    before: float | None
    after: float | None
    low: float | None = None  # of `after`
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Who pays for the state of the table: one template on one engine within the window."""

    engine_id: str
    template_id: str
    runs: int
    bytes_scanned: int | None
    execution_ms: float | None
    saving_usd_month: Decimal | None  # modelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a plan: what is called, with which arguments, and what it should do."""

    name: str
    procedure: str  # of Iceberg, or `compact_files` of our own
    arguments: dict[str, Any]
    call: str  # the statement as the approver sees it
    estimate: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is done, exactly; it is data, and the approval is of this and nothing else."""

    kind: Kind
    table_id: str
    table_uuid: str
    base_snapshot_id: int | None
    stages: tuple[Stage, ...]
    preconditions: tuple[str, ...]  # ids of the safety rules that are checked before it runs
    input_bytes: int  # what is read and written again, counted against the budget


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as the plan file and the store hold it."""
    return asdict(plan) | {
        "kind": plan.kind.value,
        "stages": [asdict(stage) for stage in plan.stages],
        "preconditions": list(plan.preconditions),
    }


def plan_from_json(document: Mapping[str, Any]) -> Plan:
    """The reverse of `plan_to_json`."""
    return Plan(
        **{
            **document,
            "kind": Kind(document["kind"]),
            "stages": tuple(Stage(**stage) for stage in document["stages"]),
            "preconditions": tuple(document["preconditions"]),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A recommendation and all that came of it; a row of `action`.

    Attributes:
        dedupe_key: table, kind and parameters: there is one open action of each.
        revision: grows with every change; a change is made to the revision it has read.
        plan_hash: of the plan and what was predicted: what was approved.
        gain_usd_month: predicted saving per month; None where nothing is priced.
        priority: gain ÷ cost; the queue's order.
        operation_id: in the summary of every snapshot the action makes.
        realised: figures after it ran, beside `predicted`.
        verification: the checks, each with what was expected and found.
        explanation: why it is in this state, in the user's words.
    """

    action_id: str
    dedupe_key: str
    revision: int
    kind: Kind
    table_id: str
    state: State
    title: str
    reason: str
    evidence: tuple[Evidence, ...]
    evidence_at: datetime
    predicted: tuple[Change, ...]
    risk: str
    plan: Plan
    plan_hash: str
    gain_usd_month: Decimal | None
    cost_usd: Decimal | None
    priority: float
    proposed_by: str
    proposed_at: datetime
    updated_at: datetime
    expires_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None
    decision_reason: str | None = None
    snoozed_until: datetime | None = None
    not_before: datetime | None = None
    attempts: int = 0
    operation_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    result_snapshot_id: int | None = None
    realised: tuple[Change, ...] = ()
    verification: tuple[dict[str, Any], ...] = ()
    explanation: str | None = None


DecisionVerb = Literal["approve", "reject", "snooze", "cancel", "propose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """What somebody wants to happen to an action; a row of `decision_request`.

    Pages and commands write wishes; the agents process checks and answers them.
    """

    request_id: str
    asked_at: datetime
    action_id: str
    verb: DecisionVerb
    actor: str
    reason: str | None
    plan_hash: str  # of what the actor has seen
    confirmation: str | None  # the table's name, typed, for destructive kinds
    until: datetime | None  # of a snooze
    state: Literal["waiting", "done", "refused"]
    answered_at: datetime | None = None
    answer: str | None = None
    proposal: str | None = None  # of a proposal by hand: table, kind and parameters, as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One step of one action; a row of `audit`, chained by hashes."""

    seq: int
    noted_at: datetime
    actor: str
    verb: str
    action_id: str
    detail: str  # canonical JSON
    prev_hash: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLease:
    """Who may change a table now; a row of `table_lease`."""

    table_id: str
    token: int  # grows with every lease of the table: an older holder is told by it
    holder: str
    action_id: str
    acquired_at: datetime
    expires_at: datetime
    released_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What an action brought, as later queries show it; a row of `savings`."""

    action_id: str
    engine_id: str
    template_id: str
    measured_at: datetime
    runs_before: int
    runs_after: int
    bytes_per_run_before: float | None
    bytes_per_run_after: float | None
    ms_per_run_before: float | None
    ms_per_run_after: float | None
    usd_month: Decimal | None

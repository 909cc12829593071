"""Proposals of people: any kind, also those no health rule asks for; the same plan and checks."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import MaintenanceError
from lakehouse_core.domain.maintenance import Action, Evidence, Kind, State
from lakehouse_core.maintenance.plan import build_plan, plan_hash
from lakehouse_core.recommend import model
from lakehouse_core.recommend.cures import expire_snapshots, rewrite_manifests
from lakehouse_core.recommend.cures.compact import RISK as COMPACT_RISK
from lakehouse_core.recommend.propose import SHOWN_READERS, dedupe_key, proposals

if TYPE_CHECKING:
    from lakehouse_core.recommend.facts import Subject

# Ages and numbers that are kept come from the configuration: nobody proposes less.
PARAMETERS = frozenset({"columns", "target_file_bytes"})
MOST_COLUMNS = 8
LEAST_TARGET, MOST_TARGET = 2**20, 2**40
_ORDER_RISK = (
    "Reads and writes the whole table again; rows stay the same. A writer that changes the same "
    "files meanwhile wins, and it is tried again. Undo: roll back to the snapshot before."
)
RISKS: dict[Kind, str] = {
    Kind.COMPACT: COMPACT_RISK,
    Kind.SORT: _ORDER_RISK,
    Kind.ZORDER: _ORDER_RISK,
    Kind.HILBERT: _ORDER_RISK,
    Kind.SET_SORT_ORDER: "Changes the table's properties only: data stays as it is, writers sort "
    "from then on, which costs them time. Undo: set the order it had.",
    Kind.EXPIRE_SNAPSHOTS: expire_snapshots.RISK,
    Kind.REMOVE_ORPHANS: "Deletes files that no snapshot refers to: it cannot be undone. They are "
    "listed first; files younger than the configured age, of unknown age, or in a location that "
    "another table shares are kept.",
    Kind.REWRITE_MANIFESTS: rewrite_manifests.RISK,
    Kind.REWRITE_POSITION_DELETES: "Rewrites delete files only; data files and rows stay the same. "
    "Undo: roll back to the snapshot before.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """What somebody wants to have done: kind, table and parameters of the plan."""

    table_id: str
    kind: Kind
    parameters: dict[str, Any]

    def to_json(self) -> str:
        """As the wish carries it."""
        document = {"table": self.table_id, "kind": self.kind, "parameters": self.parameters}
        return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Idea:
        """Read it back; what is not known is refused, for it came from somebody else.

        Raises:
            MaintenanceError: it is not an idea of ours; says what is wrong.
        """
        try:
            document = json.loads(text)
            table, kind = document["table"], Kind(document["kind"])
            parameters = dict(document.get("parameters") or {})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise MaintenanceError(f"The proposal cannot be understood: {error}") from error
        if not isinstance(table, str):
            raise MaintenanceError("The proposal cannot be understood: it names no table")
        _check(parameters)
        return cls(table_id=table, kind=kind, parameters=parameters)

    @property
    def key(self) -> str:
        """As `dedupe_key`; with parameters it is another action."""
        plain = dedupe_key(self.table_id, self.kind)
        return (
            f"{plain} {json.dumps(self.parameters, sort_keys=True)}" if self.parameters else plain
        )


def propose_by_hand(subject: Subject, idea: Idea, *, by: str, reason: str | None) -> Action:
    """The proposal; predicted is what a cure of ours predicts, else nothing.

    Raises:
        MaintenanceError: the plan cannot be made; says why.
    """
    if not idea.parameters:
        for ours in proposals(subject):
            if ours.kind is idea.kind:
                return replace(ours, proposed_by=by, reason=_joined(reason, ours.reason))
    plan = build_plan(
        idea.kind, subject.table, subject.metrics, subject.config, parameters=idea.parameters
    )
    cost = model.cost_usd(plan.input_bytes, subject.config.prices)
    return Action(
        action_id="",
        dedupe_key=idea.key,
        revision=0,
        kind=idea.kind,
        table_id=idea.table_id,
        state=State.PROPOSED,
        title=_title(idea),
        reason=reason or "Proposed by hand",
        evidence=_evidence(subject),
        evidence_at=subject.now,
        predicted=(),
        risk=RISKS[idea.kind],
        plan=plan,
        plan_hash=plan_hash(plan),
        gain_usd_month=None,
        cost_usd=cost,
        priority=0.0,
        proposed_by=by,
        proposed_at=subject.now,
        updated_at=subject.now,
        expires_at=subject.now + subject.config.maintenance.expires_after,
    )


def _check(parameters: dict[str, Any]) -> None:
    unknown = sorted(set(parameters) - PARAMETERS)
    if unknown:
        known = ", ".join(sorted(PARAMETERS))
        raise MaintenanceError(f"By hand {', '.join(unknown)} cannot be given; known: {known}")
    columns = parameters.get("columns", [])
    is_list = isinstance(columns, list) and len(columns) <= MOST_COLUMNS
    if not is_list or not all(isinstance(one, str) and one for one in columns):
        raise MaintenanceError(f"columns are up to {MOST_COLUMNS} names")
    target = parameters.get("target_file_bytes", LEAST_TARGET)
    if isinstance(target, bool) or not isinstance(target, int):
        raise MaintenanceError("target_file_bytes is a number of bytes")
    if not LEAST_TARGET <= target <= MOST_TARGET:
        raise MaintenanceError(f"target_file_bytes is {LEAST_TARGET:,} to {MOST_TARGET:,}")


def _title(idea: Idea) -> str:
    what = idea.kind.value.replace("_", " ").capitalize()
    columns = ", ".join(idea.parameters.get("columns", ()))
    return f"{what} by {columns}" if columns else what


def _evidence(subject: Subject) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            engine_id=one.engine_id,
            template_id=one.template_id,
            runs=one.runs,
            bytes_scanned=one.bytes_scanned,
            execution_ms=one.execution_ms,
            saving_usd_month=None,
        )
        for one in subject.readers[:SHOWN_READERS]
    )


def _joined(reason: str | None, ours: str) -> str:
    return f"{reason}; {ours}" if reason else ours

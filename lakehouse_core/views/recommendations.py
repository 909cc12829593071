"""Recommendations: what is proposed, in the order of gain over cost; one of them in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import FilterError, NotFoundError
from lakehouse_core.domain.maintenance import DESTRUCTIVE, Action, Kind, State
from lakehouse_core.domain.trial import TrialState
from lakehouse_core.maintenance.audit import AUDIT_SQL, ChainVerdict, read_head, verify_chain
from lakehouse_core.maintenance.records import actions_of, audit_of
from lakehouse_core.views.names import resolve_table
from lakehouse_core.views.rows import records
from lakehouse_core.views.template_texts import template_texts

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lakehouse_core.domain.maintenance import Change
    from lakehouse_core.store.port import TelemetryStore

OPEN = "open"  # what waits for a decision
ALL = "all"
STATES: tuple[str, ...] = (
    OPEN,
    ALL,
    *dict.fromkeys((*(state.value for state in State), *(state.value for state in TrialState))),
)
ROUTE = "route"  # templates that would be cheaper on another engine; views/trials.py
KINDS: tuple[str, ...] = (*(kind.value for kind in Kind), ROUTE)
MOST = 500

LIST_SQL = """
SELECT * FROM action
WHERE list_contains($states::VARCHAR[], state)
  AND ($kind::VARCHAR IS NULL OR kind = $kind::VARCHAR)
  AND ($table::VARCHAR IS NULL OR table_id = $table::VARCHAR)
ORDER BY priority DESC, proposed_at, action_id LIMIT $limit::BIGINT
"""
COUNT_SQL = """
SELECT state, count(*) AS actions FROM action
WHERE ($kind::VARCHAR IS NULL OR kind = $kind::VARCHAR)
  AND ($table::VARCHAR IS NULL OR table_id = $table::VARCHAR)
GROUP BY state
"""
SHOW_SQL = """
SELECT * FROM action WHERE action_id = $action::VARCHAR
"""
STARTS_SQL = """
SELECT action_id FROM action WHERE starts_with(action_id, $action::VARCHAR) LIMIT 3
"""
STEPS_SQL = """
SELECT seq, noted_at, actor, verb, action_id, detail, prev_hash, "hash" FROM audit
WHERE action_id = $action::VARCHAR ORDER BY seq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendationFilters:
    """What to look at; all texts, so that a page's address and a command line hold the same.

    Attributes:
        state: one of `STATES`; `open`: proposed or snoozed.
        kind: one of `KINDS`.
        table: a table's id, or its end when that is unambiguous.
    """

    state: str = OPEN
    kind: str | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        """What nobody knows is refused, not ignored."""
        if self.state not in STATES:
            raise FilterError(f"State {self.state!r} is not known. Use: {', '.join(STATES)}.")
        if self.kind is not None and self.kind not in KINDS:
            raise FilterError(f"Kind {self.kind!r} is not known. Use: {', '.join(KINDS)}.")

    @property
    def states(self) -> list[str]:
        """The states that are meant."""
        if self.state == ALL:
            return [state.value for state in State]
        if self.state == OPEN:
            return [State.PROPOSED.value, State.SNOOZED.value]
        return [self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendations:
    """What was found, the most urgent first, and how many there are in each state."""

    actions: tuple[Action, ...]
    counts: dict[str, int]

    @property
    def total(self) -> int:
        """All of them, in whatever state."""
        return sum(self.counts.values())

    @property
    def waiting(self) -> int:
        """Those that wait for a decision."""
        return self.counts.get(State.PROPOSED.value, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """One template on one engine that reads the table, and what it pays for its state."""

    engine_id: str
    template_id: str
    template: str | None
    runs: int
    bytes_scanned: int | None
    execution_ms: float | None
    saving_usd_month: float | None  # modelled


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStep:
    """One step of an action, as the audit chain has it."""

    seq: int
    noted_at: datetime
    actor: str
    verb: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendationDetail:
    """One recommendation in full."""

    action: Action
    payers: tuple[Payer, ...]
    steps: tuple[HistoryStep, ...]

    @property
    def needs_typing(self) -> bool:
        """Whether an approval wants the table's name typed."""
        return self.action.kind in DESTRUCTIVE

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision."""
        return self.action.state in {State.PROPOSED, State.SNOOZED}


def list_recommendations(
    store: TelemetryStore, filters: RecommendationFilters, *, limit: int = MOST
) -> Recommendations:
    """What is proposed (or in another state), gain over cost first.

    Raises:
        NotFoundError: the table is not known; names the nearest.
    """
    table = resolve_table(store, filters.table) if filters.table else None
    given = {"kind": filters.kind, "table": table}
    rows = store.read(LIST_SQL, states=filters.states, limit=limit, **given)
    counts = store.read(COUNT_SQL, **given).to_pylist()
    return Recommendations(
        actions=actions_of(rows), counts={row["state"]: row["actions"] for row in counts}
    )


def show_recommendation(store: TelemetryStore, action_id: str) -> RecommendationDetail:
    """One recommendation with its evidence, plan and history; an id may be cut short.

    Raises:
        NotFoundError: no such action, or the short id fits several.
    """
    found = actions_of(store.read(SHOW_SQL, action=action_id))
    if not found:
        near = store.read(STARTS_SQL, action=action_id).column("action_id").to_pylist()
        if len(near) != 1 or not action_id:
            hint = (
                f"Did you mean {' or '.join(near)}?" if near else "See `lakehelm recommend list`."
            )
            raise NotFoundError(f"Action {action_id!r} is not known. {hint}")
        found = actions_of(store.read(SHOW_SQL, action=near[0]))
    action = found[0]
    return RecommendationDetail(
        action=action, payers=_payers(store, action), steps=_steps(store, action)
    )


def verify_audit(store: TelemetryStore, store_file: Path) -> ChainVerdict:
    """Whether the audit chain is whole.

    Args:
        store: the store.
        store_file: its file; the head of the chain is kept beside it.
    """
    kept = read_head(store_file)  # first: rows written meanwhile come after it
    return verify_chain(audit_of(store.read(AUDIT_SQL)), kept)


def change_of(action: Action, name: str) -> Change | None:
    """One predicted figure."""
    return next((one for one in action.predicted if one.name == name), None)


def _payers(store: TelemetryStore, action: Action) -> tuple[Payer, ...]:
    texts = template_texts(store, (one.template_id for one in action.evidence))
    return tuple(
        Payer(
            engine_id=one.engine_id,
            template_id=one.template_id,
            template=texts.get(one.template_id),
            runs=one.runs,
            bytes_scanned=one.bytes_scanned,
            execution_ms=one.execution_ms,
            saving_usd_month=None if one.saving_usd_month is None else float(one.saving_usd_month),
        )
        for one in action.evidence
    )


def _steps(store: TelemetryStore, action: Action) -> tuple[HistoryStep, ...]:
    rows = store.read(STEPS_SQL, action=action.action_id)
    kept = [name for name in rows.column_names if name in HistoryStep.__slots__]
    return records(HistoryStep, rows.select(kept))

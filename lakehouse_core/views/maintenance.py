"""Maintenance: what waits, what runs and how far it is, what was done and what it brought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.agent import AgentProgress
from lakehouse_core.domain.errors import FilterError
from lakehouse_core.domain.maintenance import FINAL, Action, Change, Saving, State
from lakehouse_core.maintenance.job import run_of
from lakehouse_core.maintenance.records import actions_of
from lakehouse_core.runtime import logs
from lakehouse_core.views.names import resolve_table
from lakehouse_core.views.recommendations import show_recommendation
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.recommendations import HistoryStep

WAITING = (State.APPROVED, State.SCHEDULED)
RUNNING = (State.RUNNING, State.VERIFYING)
DONE = (State.VERIFIED, State.FAILED)
REFUSED = (State.REFUSED, State.EXPIRED, State.CANCELLED)
GROUPS: dict[str, tuple[State, ...]] = {
    "all": (*WAITING, *RUNNING, *DONE, *REFUSED),
    "waiting": WAITING,
    "running": RUNNING,
    "done": DONE,
    "refused": REFUSED,
}
MOST = 200
LOG_LINES = 40

# A proposal that expired was never decided: it is not part of this story.
LIST_SQL = """
SELECT * FROM action
WHERE list_contains($states::VARCHAR[], state)
  AND (state <> 'expired' OR decided_at IS NOT NULL)
  AND ($table::VARCHAR IS NULL OR table_id = $table::VARCHAR)
ORDER BY state IN ('running', 'verifying') DESC, state IN ('approved', 'scheduled') DESC,
  CASE WHEN state IN ('approved', 'scheduled') THEN priority END DESC,
  coalesce(ended_at, updated_at) DESC, action_id
LIMIT $limit::BIGINT
"""
PROGRESS_SQL = """
SELECT agent, done, total, unit, updated_at FROM agent_progress
WHERE starts_with(agent, 'maintain/')
"""
SAVINGS_SQL = """
SELECT * FROM savings WHERE action_id = $action::VARCHAR ORDER BY usd_month DESC NULLS LAST
"""
SAVED_SQL = """
SELECT action_id, sum(usd_month) AS usd_month FROM savings
WHERE list_contains($actions::VARCHAR[], action_id) GROUP BY action_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceItem:
    """An action on its way or at its end.

    Attributes:
        progress: how far its job is; None when it does not run or has not said.
        saved_usd_month: what queries since then show; None: nobody ran enough of them yet.
    """

    action: Action
    progress: AgentProgress | None = None
    saved_usd_month: float | None = None

    @property
    def group(self) -> str:
        """waiting, running, done or refused."""
        return next(
            name for name, states in GROUPS.items() if name != "all" and self.action.state in states
        )

    @property
    def share(self) -> float | None:
        """How much of its job is done, 0 to 1; None when nobody knows."""
        if self.action.state is State.VERIFYING:
            return 1.0
        if self.progress is None or not self.progress.total:
            return None
        return min(1.0, self.progress.done / self.progress.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """All of it: what runs, then what waits (best first), then what ended (newest first)."""

    items: tuple[MaintenanceItem, ...]

    def of(self, group: str) -> tuple[MaintenanceItem, ...]:
        """Only those of a group."""
        return tuple(item for item in self.items if item.group == group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One figure: before, as predicted, as it became."""

    name: str
    unit: str
    before: float | None
    predicted: float | None
    low: float | None
    high: float | None
    realised: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceDetail:
    """One action in full."""

    item: MaintenanceItem
    figures: tuple[Comparison, ...]
    savings: tuple[Saving, ...]
    steps: tuple[HistoryStep, ...]
    log_file: str | None
    log: str

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.item.action.state in FINAL


def list_maintenance(
    store: TelemetryStore, *, group: str = "all", table: str | None = None, limit: int = MOST
) -> Maintenance:
    """Actions that were approved, and what became of them.

    Args:
        store: the store.
        group: one of `GROUPS`.
        table: a table's id, or its end when that is unambiguous.
        limit: at most so many.

    Raises:
        FilterError: there is no such group.
        NotFoundError: the table is not known; names the nearest.
    """
    if group not in GROUPS:
        raise FilterError(f"State {group!r} is not known. Use: {', '.join(GROUPS)}.")
    resolved = resolve_table(store, table) if table else None
    states = [state.value for state in GROUPS[group]]
    found = actions_of(store.read(LIST_SQL, states=states, table=resolved, limit=limit))
    progress = _progress(store)
    ids = [one.action_id for one in found]
    rows = store.read(SAVED_SQL, actions=ids).to_pylist() if ids else []
    saved = {row["action_id"]: row["usd_month"] for row in rows}
    return Maintenance(
        items=tuple(
            MaintenanceItem(
                action=one,
                progress=_present(one, progress),
                saved_usd_month=_money(saved.get(one.action_id)),
            )
            for one in found
        )
    )


def show_maintenance(store: TelemetryStore, home: Path, action_id: str) -> MaintenanceDetail:
    """One action: predicted beside realised, its checks, its history and its job's log.

    Raises:
        NotFoundError: no such action, or the short id fits several.
    """
    seen = show_recommendation(store, action_id)
    action = seen.action
    savings = records(Saving, store.read(SAVINGS_SQL, action=action.action_id))
    known = [one.usd_month for one in savings if one.usd_month is not None]
    log = run_of(home, action.operation_id).files.log if action.operation_id else None
    return MaintenanceDetail(
        item=MaintenanceItem(
            action=action,
            progress=_present(action, _progress(store)),
            saved_usd_month=float(sum(known)) if known else None,
        ),
        figures=_figures(action),
        savings=savings,
        steps=seen.steps,
        log_file=str(log) if log else None,
        log=logs.tail(log, LOG_LINES) if log else "",
    )


def _progress(store: TelemetryStore) -> dict[str, AgentProgress]:
    rows = records(AgentProgress, store.read(PROGRESS_SQL))
    return {one.agent.removeprefix("maintain/"): one for one in rows}


def _present(action: Action, progress: dict[str, AgentProgress]) -> AgentProgress | None:
    """The progress of the attempt that runs, not of an earlier one."""
    found = progress.get(action.action_id)
    if found is None or action.state not in RUNNING or action.started_at is None:
        return None
    return found if found.updated_at >= action.started_at else None


def _figures(action: Action) -> tuple[Comparison, ...]:
    predicted = {one.name: one for one in action.predicted}
    realised = {one.name: one for one in action.realised}
    return tuple(
        _comparison(name, predicted.get(name), realised.get(name))
        for name in dict.fromkeys([*predicted, *realised])
    )


def _comparison(name: str, predicted: Change | None, realised: Change | None) -> Comparison:
    known = realised or predicted
    return Comparison(
        name=name,
        unit=known.unit if known else "",
        before=known.before if known else None,
        predicted=predicted.after if predicted else None,
        low=predicted.low if predicted else None,
        high=predicted.high if predicted else None,
        realised=realised.after if realised else None,
    )


def _money(value: object) -> float | None:
    return None if value is None else float(str(value))

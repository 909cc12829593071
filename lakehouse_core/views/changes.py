"""What changed in a window: failures that are new, tables and engines in another state.

Each change names the page that holds its evidence and the filters to open it with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lakehouse_core.views import engines, health
from lakehouse_core.views.formatting import count
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.filters import Filters
    from lakehouse_core.views.window import Window

# A failure is known by engine, template and error class. It is new when the window before, of the
# same length, did not have it.
NEW_FAILURES_SQL = """
SELECT engine_id, template_id, error_class, count(*) AS failures, max(submitted_at) AS happened_at,
  arg_max(query_id, submitted_at) AS query_id,
  arg_max(left(error_message, 160), submitted_at) AS error_message,
  arg_max(user_name, submitted_at) AS user_name, count(DISTINCT user_name) AS users
FROM query_event
WHERE submitted_at >= $before::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
  AND status = 'failed' AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
GROUP BY engine_id, template_id, error_class
HAVING min(submitted_at) >= $start::TIMESTAMPTZ
ORDER BY failures DESC, happened_at DESC LIMIT $limit::BIGINT
"""

ChangeKind = Literal["failure", "table", "engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFailure:
    """A kind of failure that the window before did not have."""

    engine_id: str
    template_id: str | None
    error_class: str | None
    failures: int
    happened_at: datetime
    query_id: str
    error_message: str | None
    user_name: str | None
    users: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of "what changed".

    Attributes:
        kind: what changed.
        is_worse: whether somebody should look.
        happened_at: when it was last seen.
        title: what happened, to which object.
        detail: the numbers or the message behind it.
        page: the page with the evidence.
        query: what to open the page with, beside the filter bar, which every link keeps.
    """

    kind: ChangeKind
    is_worse: bool
    happened_at: datetime
    title: str
    detail: str
    page: str
    query: tuple[tuple[str, str], ...]


_GOOD = {"healthy"}


def new_failures(
    store: TelemetryStore, filters: Filters, window: Window, *, limit: int = 3
) -> tuple[NewFailure, ...]:
    """Failures of the window that the window before did not have, most frequent first."""
    table = store.read(
        NEW_FAILURES_SQL,
        before=window.previous().start,
        start=window.start,
        end=window.end,
        engine=filters.engine,
        limit=limit,
    )
    return records(NewFailure, table)


def what_changed(store: TelemetryStore, filters: Filters, window: Window) -> tuple[Change, ...]:
    """All changes of the window: what got worse first, then latest first."""
    found = [
        *(_of_failure(failure) for failure in new_failures(store, filters, window)),
        *(_of_table(change) for change in health.state_changes(store, window)),
        *(_of_engine(change) for change in engines.state_changes(store, filters, window)),
    ]
    found.sort(key=lambda change: (not change.is_worse, -change.happened_at.timestamp()))
    return tuple(found)


def _of_failure(failure: NewFailure) -> Change:
    times = "once" if failure.failures == 1 else f"{count(failure.failures)} times"
    what = failure.error_class or "Unclassified error"
    whom = f"{failure.users} users" if failure.users > 1 else failure.user_name or "somebody"
    return Change(
        kind="failure",
        is_worse=True,
        happened_at=failure.happened_at,
        title=f"{what} on {failure.engine_id}, {times}, by {whom}",
        detail=failure.error_message or "The engine gave no message.",
        page="query_history",
        query=(("status", "failed"), ("query", f"{failure.engine_id}:{failure.query_id}")),
    )


def _of_table(change: health.HealthChange) -> Change:
    return Change(
        kind="table",
        is_worse=change.after not in _GOOD,
        happened_at=change.happened_at,
        title=f"{change.table_id} turned {change.after}",
        detail=f"It was {change.before}; its score is now {count(change.score)} of 100.",
        page="tables",
        query=(("table", change.table_id),),
    )


def _of_engine(change: engines.EngineChange) -> Change:
    return Change(
        kind="engine",
        is_worse=change.after not in _GOOD,
        happened_at=change.happened_at,
        title=f"{change.engine_id} turned {change.after}",
        detail=change.detail or f"It was {change.before}; {_times(change.changes)} in the window.",
        page="engines",
        query=(),
    )


def _times(changes: int) -> str:
    return "one change" if changes == 1 else f"{count(changes)} changes"

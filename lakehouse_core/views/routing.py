"""What the router did: how often each rule decided, how groups served, and one statement's trace.

The gateway keeps a row per statement it was given (`routing_decision`), also of those that no
engine saw.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.routed import RoutedQuery
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.filters import Filters
    from lakehouse_core.views.window import Window

_IN_WINDOW = """
submitted_at >= $start::TIMESTAMPTZ AND submitted_at < $end::TIMESTAMPTZ
  AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
"""


def _within(sql: str) -> str:
    """A statement over the decisions of a window; only constants are put together."""
    return sql.replace("{window}", _IN_WINDOW)


# A statement that was sent again has the rule's step twice: it counts once.
RULES_SQL = _within("""
WITH step AS (
  SELECT gateway_id, submitted_at, json_extract_string(each.value, '$.stage') AS stage,
    json_extract_string(each.value, '$.subject') AS rule,
    json_extract_string(each.value, '$.result') AS result
  FROM routing_decision, json_each(trace) AS each WHERE {window}
)
SELECT rule, count(DISTINCT gateway_id) AS hits,
  count(DISTINCT gateway_id) FILTER (result = 'denied') AS denied, max(submitted_at) AS last_at
FROM step WHERE stage IN ('rule', 'fallback') AND result NOT IN ('no match', 'failed')
GROUP BY rule ORDER BY rule
""")

GROUPS_SQL = _within("""
SELECT cluster_group AS "group", count(*) AS statements,
  count(*) FILTER (denial IS NOT NULL) AS denied,
  count(*) FILTER (status = 'failed' AND denial IS NULL) AS failed,
  count(*) FILTER (attempts > 1) AS sent_again,
  quantile_cont(decision_ms, 0.5) AS decision_p50_ms,
  quantile_cont(queue_ms, 0.95) AS queue_p95_ms,
  max(submitted_at) AS last_at
FROM routing_decision WHERE {window} GROUP BY cluster_group ORDER BY cluster_group
""")

DECISIONS_SQL = _within("""
SELECT gateway_id, submitted_at, user_name, protocol, cluster_group, engine_id, status, denial,
  translation, attempts, decision_ms, queue_ms, engine_ms, fetch_ms, rows_sent
FROM routing_decision
WHERE {window} AND ($user::VARCHAR IS NULL OR user_name = $user::VARCHAR)
ORDER BY submitted_at DESC, gateway_id LIMIT $limit::BIGINT
""")

# What no engine saw has no event: its text, without literals, is in the audit alone.
TRACE_SQL = """
SELECT d.*, e.sql_text, e.translated_sql, e.error_message, a.detail->>'sql' AS audited_sql,
  a.detail->>'denial' AS denial_message
FROM routing_decision AS d
LEFT JOIN query_event AS e
  ON e.engine_id = d.engine_id AND e.query_id = coalesce(d.query_id, d.gateway_id)
LEFT JOIN query_audit AS a ON a.action_id = d.gateway_id
WHERE d.gateway_id = $id::VARCHAR OR d.query_id = $id::VARCHAR
ORDER BY d.submitted_at DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHits:
    """How often a rule decided within a window; `denied` of them refused the statement."""

    rule: str
    hits: int
    denied: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupService:
    """What a group did within a window; `group` None: statements no group was found for."""

    group: str | None
    statements: int
    denied: int
    failed: int
    sent_again: int
    decision_p50_ms: float | None
    queue_p95_ms: float | None
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One statement and where it went."""

    gateway_id: str
    submitted_at: datetime
    user_name: str | None
    protocol: str
    cluster_group: str | None
    engine_id: str | None
    status: str
    denial: str | None
    translation: str | None
    attempts: int
    decision_ms: float | None
    queue_ms: float | None
    engine_ms: float | None
    fetch_ms: float | None
    rows_sent: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingReport:
    """The router's work within a window."""

    window: Window
    rules: tuple[RuleHits, ...]
    groups: tuple[GroupService, ...]
    decisions: tuple[Decided, ...]

    @property
    def statements(self) -> int:
        """Statements the gateway was given."""
        return sum(group.statements for group in self.groups)

    def hits_of(self, rule: str) -> RuleHits | None:
        """What a rule did; None: it decided nothing."""
        return next((one for one in self.rules if one.rule == rule), None)

    def service_of(self, group: str) -> GroupService | None:
        """What a group did; None: nothing."""
        return next((one for one in self.groups if one.group == group), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One step of a decision."""

    stage: str
    subject: str
    result: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTrace:
    """One statement: how it was decided, what was sent where, how long each part took.

    Attributes:
        sql_text: as submitted; of a refused one without its literals.
        translated_sql: as the engine got it; None: as submitted.
    """

    routed: RoutedQuery
    steps: tuple[TraceStep, ...]
    sql_text: str | None
    translated_sql: str | None
    error_message: str | None
    denial_message: str | None


def routing_report(
    store: TelemetryStore,
    filters: Filters,
    clock: Clock,
    *,
    user: str | None = None,
    limit: int = 100,
) -> RoutingReport:
    """What the router did in the window.

    Args:
        store: where the decisions are.
        filters: window and engine.
        clock: what the time is.
        user: only this user's statements in the list of decisions.
        limit: how many decisions to list, newest first.
    """
    window = filters.window_at(clock())
    params = {"start": window.start, "end": window.end, "engine": filters.engine}
    return RoutingReport(
        window=window,
        rules=records(RuleHits, store.read(RULES_SQL, **params)),
        groups=records(GroupService, store.read(GROUPS_SQL, **params)),
        decisions=records(
            Decided, store.read(DECISIONS_SQL, **params, user=user or None, limit=limit)
        ),
    )


def show_trace(store: TelemetryStore, statement_id: str) -> RouteTrace:
    """How one statement was routed.

    Args:
        store: where the decisions are.
        statement_id: the gateway's id of it, or the engine's.

    Raises:
        NotFoundError: no gateway of ours has recorded it.
    """
    found = store.read(TRACE_SQL, id=statement_id.strip()).to_pylist()
    if not found:
        raise NotFoundError(
            f"No statement {statement_id.strip()!r} is recorded: it did not come through the "
            "gateway, its record is still on the way (a second or two), or its history was dropped"
        )
    row = found[0]
    return RouteTrace(
        routed=RoutedQuery(**{field.name: row[field.name] for field in fields(RoutedQuery)}),
        steps=_steps(row["trace"]),
        sql_text=row["sql_text"] or row["audited_sql"],
        translated_sql=row["translated_sql"],
        error_message=row["error_message"],
        denial_message=row["denial_message"],
    )


def _steps(text: str) -> tuple[TraceStep, ...]:
    said: list[dict[str, Any]] = json.loads(text)
    return tuple(TraceStep(**step) for step in said)

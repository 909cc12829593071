"""What the gateway did with a statement: the rows it keeps beside the query's own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedQuery:
    """One statement that was given to the gateway; a row of `routing_decision`.

    Attributes:
        attempts: engines it was sent to; 0 when it was refused.
        trace: the decision, step by step, as JSON.
        decision_ms: routing, translation and guards together.
        queue_ms: waiting for a place.
        engine_ms: from sending it to the first row, or to the end when there was none.
        fetch_ms: from the first row to the last one the client took.
        bytes_sent: of the rows, in memory; what travelled differs by protocol.
    """

    gateway_id: str
    submitted_at: datetime
    ended_at: datetime
    protocol: str
    status: str
    source_dialect: str
    attempts: int
    trace: str
    endpoint: str | None = None
    user_name: str | None = None
    role: str | None = None
    cluster_group: str | None = None
    member: str | None = None
    engine_id: str | None = None
    query_id: str | None = None
    template_id: str | None = None
    target_dialect: str | None = None
    translation: str | None = None
    translation_reason: str | None = None
    denial: str | None = None
    denial_rule: str | None = None
    decision_ms: float | None = None
    queue_ms: float | None = None
    engine_ms: float | None = None
    fetch_ms: float | None = None
    rows_sent: int | None = None
    bytes_sent: int | None = None
    estimated_files: int | None = None
    estimated_bytes: int | None = None
    estimated_cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAudit:
    """One entry of a gateway's audit chain; a row of `query_audit`."""

    chain: str
    seq: int
    noted_at: datetime
    actor: str
    verb: str
    action_id: str
    detail: str
    prev_hash: str
    hash: str

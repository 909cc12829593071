"""One query, wherever it ran: the row every collector produces."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, NewType

EngineId = NewType("EngineId", str)
TemplateId = NewType("TemplateId", str)


class QueryStatus(StrEnum):
    """Where a query is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def revision(self) -> int:
        """Later states win over earlier ones, in whatever order pages of history arrive."""
        return {QueryStatus.QUEUED: 0, QueryStatus.RUNNING: 1}.get(self, 2)


class StatementKind(StrEnum):
    """What a statement does, as far as its tree tells."""

    SELECT = "select"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    MERGE = "merge"
    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    CALL = "call"
    EXPLAIN = "explain"
    DESCRIBE = "describe"
    SESSION = "session"
    OTHER = "other"


GATEWAY_ERROR = "gateway_error"  # the class of what broke in the gateway itself
# Classes of failures that say nothing about the engine: the statement's fault, the history's, ours.
EXCUSED_ERRORS = ("user_error", "user", "history_lost", GATEWAY_ERROR)
Origin = Literal["real", "simulated"]
# Who tells about a query: a guess of ours, our gateway, the engine's history, or the engine itself
# at the moment it happened. The store joins what they say into one row (store/fold.py).
Reporter = Literal["inferred", "gateway", "history", "listener"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEvent:
    """A query as its engine reported it; `None` means the engine did not say, never zero.

    The fields are the columns of the store's `query_event` table, key (engine_id, query_id).
    """

    engine_id: EngineId
    query_id: str
    status: QueryStatus
    submitted_at: datetime
    collected_at: datetime
    revision: int = 0
    dialect: str | None = None
    sql_text: str | None = None
    translated_sql: str | None = None
    statement_kind: StatementKind | None = None
    template_id: TemplateId | None = None
    user_name: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    workload_group: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    queued_ms: float | None = None
    planning_ms: float | None = None
    execution_ms: float | None = None
    elapsed_ms: float | None = None
    cpu_ms: float | None = None
    bytes_scanned: int | None = None
    rows_scanned: int | None = None
    rows_returned: int | None = None
    bytes_written: int | None = None
    rows_written: int | None = None
    peak_memory_bytes: int | None = None
    spilled_bytes: int | None = None
    error_class: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    snapshot_ids: tuple[int, ...] = ()
    gateway_id: str | None = None
    engine_url: str | None = None
    origin: Origin = "real"
    reporter: Reporter = "history"
    default_catalog: str | None = None  # what unqualified table names were completed with
    default_namespace: str | None = None  # as above, its levels joined with dots

    def __post_init__(self) -> None:
        """Derive the revision from the status, so that no mapping can forget it."""
        object.__setattr__(self, "revision", self.status.revision)

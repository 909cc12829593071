"""What one query of DuckDB was, written down as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse_core.domain.errors import EngineError, QueryCancelledError
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from lakehouse_core.sql.redaction import redact

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.engines.base import Statement
    from lakehouse_core.engines.duckdb.instance import Measures

DIALECT = "duckdb"
# Whose fault it is, in the words the other engines' histories use; anything else is the user's.
_ERROR_CLASSES = {
    "OutOfMemoryException": "insufficient_resources",
    "IOException": "external",
    "HTTPException": "external",
    "CATALOG_UNAVAILABLE": "external",
    "TABLE_UNREADABLE": "external",
    "InternalException": "internal_error",
    "FatalException": "internal_error",
}


@dataclass(slots=True)
class QueryRecord:
    """Times, measures and outcome of a query, filled in by the adapter."""

    engine_id: EngineId
    statement: Statement
    clock: Clock
    query_id: str = field(default_factory=lambda: uuid4().hex)
    submitted_at: datetime = field(init=False)
    started_at: datetime | None = None
    snapshot_ids: tuple[int, ...] = ()
    rows_returned: int | None = None
    measures: Measures | None = None
    error: EngineError | None = None

    def __post_init__(self) -> None:
        self.submitted_at = self.clock()

    def to_event(self) -> QueryEvent:
        """The event, as the query stands now: it is over."""
        ended_at = self.clock()
        redacted = redact(self.statement.sql, DIALECT)
        measures = self.measures
        return QueryEvent(
            engine_id=self.engine_id,
            query_id=self.query_id,
            status=self._status(),
            submitted_at=self.submitted_at,
            collected_at=ended_at,
            dialect=DIALECT,
            sql_text=redacted.text,
            user_name=self.statement.user,
            source=self.statement.source,
            tags=self.statement.tags,
            started_at=self.started_at,
            ended_at=ended_at,
            queued_ms=_milliseconds(self.submitted_at, self.started_at)
            if self.started_at
            else None,
            planning_ms=measures.planning_ms if measures else None,
            execution_ms=_milliseconds(self.started_at, ended_at) if self.started_at else None,
            elapsed_ms=_milliseconds(self.submitted_at, ended_at),
            cpu_ms=measures.cpu_ms if measures else None,
            bytes_scanned=measures.bytes_scanned if measures else None,
            rows_returned=self.rows_returned,
            error_class=_ERROR_CLASSES.get(self.error.code or "", "user_error")
            if self.error and self._status() is QueryStatus.FAILED
            else None,
            error_code=self.error.code if self.error else None,
            error_message=redacted.hush(str(self.error)) if self.error else None,
            snapshot_ids=self.snapshot_ids,
            gateway_id=self.statement.gateway_id,
        )

    def _status(self) -> QueryStatus:
        if self.error is None:
            return QueryStatus.FINISHED
        is_cancelled = isinstance(self.error, QueryCancelledError)
        return QueryStatus.CANCELLED if is_cancelled else QueryStatus.FAILED


def _milliseconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds() * 1_000

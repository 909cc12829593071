"""What became of each statement, as rows: the query, how it was routed, an entry of the audit.

Front ends hand over finished flights; a worker turns those that have gathered into rows and makes
them durable in the spool, from where the store's owner fetches them. The store may be away: queries
go on, and their records arrive when it is back. When even the spool cannot be written, the newest
`MOST_WAITING` flights are held in memory and tried again. One of which no rows can be made stops no
other. How many were lost is counted and said.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from dataclasses import asdict
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.errors import EngineError, EngineUnavailableError, StoreError
from lakehouse_core.domain.query import GATEWAY_ERROR, EngineId, QueryEvent, QueryStatus
from lakehouse_core.domain.routed import QueryAudit, RoutedQuery
from lakehouse_core.maintenance.audit import EMPTY, Head, Note, chain
from lakehouse_core.routing.lease import RoutingError
from lakehouse_core.sql.redaction import redact
from lakehouse_core.store.batch import conform
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from lakehouse_core.gateway.flight import Flight

    # Events → rows of the tables that tell about them: query_event, templates, usage.
    Understand = Callable[[Sequence[QueryEvent]], Mapping[str, pa.Table]]
    Keep = Callable[[str, pa.Table], object]

_log = structlog.get_logger(__name__)
MOST_WAITING = 100_000
MOST_AT_ONCE = 2_000
GATHER_SECONDS = 0.5
RETRY_SECONDS = 5.0
_UNAVAILABLE_CLASS = "external"


class SpoolRecorder:
    """A `Recorder`; used from one event loop."""

    def __init__(
        self,
        understand: Understand,
        keep: Keep,
        chain_id: str,
        complete: Callable[[Flight], None] = lambda _: None,
    ) -> None:
        """Record flights.

        Args:
            understand: makes rows of events.
            keep: makes rows durable.
            chain_id: of the audit.
            complete: adds what was too slow for the hot path; called off the event loop.
        """
        self.counts: Counter[tuple[str, str, str]] = Counter()  # by engine, protocol, status
        self.seconds: Counter[tuple[str, str]] = Counter()  # by engine and phase, summed
        self.lost = 0
        self._understand = understand
        self._keep = keep
        self._chain_id = chain_id
        self._complete = complete
        self._head = EMPTY
        self._waiting: deque[Flight] = deque(maxlen=MOST_WAITING)
        self._worker: asyncio.Task[None] | None = None
        self._is_closing = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Statements whose records are not durable yet."""
        return len(self._waiting)

    def note(self, flight: Flight) -> None:
        """See `Recorder.note`."""
        if len(self._waiting) == MOST_WAITING:
            self.lost += 1
        self._waiting.append(flight)
        self._count(flight)
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Write what has gathered."""
        self._is_closing.set()
        if self._worker is not None:
            await self._worker

    def _count(self, flight: Flight) -> None:
        engine = str(flight.decision.engine_id or "") if flight.decision else ""
        self.counts[engine, flight.request.protocol, flight.status.value] += 1
        for phase, duration in _phases(flight).items():
            if duration is not None:
                self.seconds[engine, phase] += duration / 1_000  # type: ignore[assignment] # a sum

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._pause(GATHER_SECONDS)
                size = min(len(self._waiting), MOST_AT_ONCE)
                group = [self._waiting.popleft() for _ in range(size)]
                left = await self._write_parts(group)
                if left:
                    self._waiting.extendleft(reversed(left))
                    if self._is_closing.is_set():
                        return
                    await self._pause(RETRY_SECONDS)
        finally:
            self._worker = None

    async def _write_parts(self, group: list[Flight]) -> list[Flight]:
        """Write a group, in halves where one of it cannot be written; those to be tried again."""
        parts = [group]
        while parts:
            part = parts.pop()
            try:
                await asyncio.to_thread(self._write, part)
            except StoreError as error:
                left = [flight for one in (part, *reversed(parts)) for flight in one]
                _log.warning("records not written", records=len(left), error=str(error))
                return left
            except Exception as error:  # noqa: BLE001 one that cannot be written stops no other
                if len(part) > 1:
                    half = len(part) // 2
                    parts += [part[half:], part[:half]]
                    continue
                self.lost += 1
                gateway_id, why = part[0].request.gateway_id, f"{type(error).__name__}: {error}"
                _log.error("record lost", gateway_id=gateway_id, error=why)
        return []

    async def _pause(self, seconds: float) -> None:
        """Let more gather; not when the process is about to end."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_closing.wait()
        except TimeoutError:
            pass

    def _write(self, flights: Sequence[Flight]) -> None:
        try:
            rows, head = self._rows(flights)
        except StoreError as error:
            # The rows are at fault, not the store: to try again would change nothing.
            raise ValueError(f"No rows can be made of it: {error}") from error
        for table, content in rows.items():
            self._keep(table, content)
        self._head = head  # a group that could not be kept is chained again

    def _rows(self, flights: Sequence[Flight]) -> tuple[dict[str, pa.Table], Head]:
        for flight in flights:
            self._complete(flight)
        events = [event for flight in flights if (event := to_event(flight)) is not None]
        rows = dict(self._understand(events)) if events else {}
        rows["routing_decision"] = to_arrow("routing_decision", [to_routed(f) for f in flights])
        entries, head = self._audit(flights)
        rows["query_audit"] = to_arrow("query_audit", entries)
        for table, content in rows.items():
            conform(table, content)
        return rows, head

    def _audit(self, flights: Sequence[Flight]) -> tuple[list[QueryAudit], Head]:
        head, entries = self._head, []
        for flight in flights:
            (entry,) = chain(head, [_note(flight)], flight.ended_at or flight.submitted_at)
            head = Head(seq=entry.seq, hash=entry.hash)
            entries.append(QueryAudit(chain=self._chain_id, **asdict(entry)))
        return entries, head


def to_event(flight: Flight) -> QueryEvent | None:
    """The query, as far as the gateway knows it; None when no engine got it."""
    decision, request, cost = flight.decision, flight.request, flight.cost
    if decision is None or decision.engine_id is None or flight.attempts == 0:
        return None
    phases = _phases(flight)
    is_translated = decision.sql != request.sql
    error = flight.error
    return QueryEvent(
        engine_id=EngineId(decision.engine_id),
        query_id=flight.query_id or request.gateway_id,
        status=flight.status,
        submitted_at=flight.submitted_at,
        collected_at=flight.ended_at or flight.submitted_at,
        dialect=decision.source_dialect,
        sql_text=request.sql,
        translated_sql=decision.sql if is_translated else None,
        user_name=request.user,
        source=request.source,
        tags=request.tags,
        ended_at=flight.ended_at,
        queued_ms=phases["queue"],
        execution_ms=_sum(phases["engine"], phases["fetch"]),
        elapsed_ms=_between(flight.submitted, flight.ended),
        planning_ms=cost.planning_ms if cost else None,
        cpu_ms=cost.cpu_ms if cost else None,
        bytes_scanned=cost.bytes_scanned if cost else None,
        rows_scanned=cost.rows_scanned if cost else None,
        peak_memory_bytes=cost.peak_memory_bytes if cost else None,
        rows_returned=flight.rows_sent if flight.status is QueryStatus.FINISHED else None,
        snapshot_ids=cost.snapshot_ids if cost else (),
        error_class=_error_class(error) if flight.status is QueryStatus.FAILED else None,
        error_code=_code(flight),
        error_message=str(error) if error is not None else None,
        gateway_id=request.gateway_id,
        reporter="gateway",
        default_catalog=request.catalog,
        default_namespace=request.schema,
    )


def to_routed(flight: Flight) -> RoutedQuery:
    """How the statement was routed."""
    request, decision = flight.request, flight.decision
    phases = _phases(flight)
    denial = decision.denial if decision else None
    estimate = decision.estimate if decision else None
    steps = [*(decision.trace if decision else ()), *flight.steps]
    return RoutedQuery(
        gateway_id=request.gateway_id,
        submitted_at=flight.submitted_at,
        ended_at=flight.ended_at or flight.submitted_at,
        protocol=request.protocol,
        status=flight.status.value,
        source_dialect=request.dialect,
        attempts=flight.attempts,
        trace=_trace(steps, request.sql, request.dialect),
        endpoint=request.endpoint,
        user_name=request.user,
        role=request.role,
        cluster_group=decision.group if decision else None,
        member=decision.member if decision else None,
        engine_id=decision.engine_id if decision else None,
        query_id=flight.query_id,
        template_id=decision.facts.template_id if decision else None,
        target_dialect=decision.target_dialect if decision else None,
        translation=decision.translation if decision else None,
        translation_reason=decision.translation_reason if decision else None,
        denial=denial.kind if denial else None,
        denial_rule=denial.rule if denial else None,
        decision_ms=phases["decision"],
        queue_ms=phases["queue"],
        engine_ms=phases["engine"],
        fetch_ms=phases["fetch"],
        rows_sent=flight.rows_sent,
        bytes_sent=flight.bytes_sent,
        estimated_files=estimate.files if estimate else None,
        estimated_bytes=estimate.bytes if estimate else None,
        estimated_cost_usd=estimate.cost_usd if estimate else None,
    )


def _note(flight: Flight) -> Note:
    request, decision = flight.request, flight.decision
    redacted = redact(request.sql, request.dialect)
    denial = decision.denial if decision else None
    return Note(
        actor=request.user or "unknown",
        verb="denied" if denial else flight.status.value,
        action_id=request.gateway_id,
        detail={
            "sql": redacted.text,
            "protocol": request.protocol,
            "source": request.source,
            "role": request.role,
            "engine": decision.engine_id if decision else None,
            "denial": redacted.hush(denial.message) if denial else None,
            "rule": denial.rule if denial else None,
        },
    )


def _trace(steps: Sequence[object], sql: str, dialect: str) -> str:
    """The steps as JSON; what they quote of the statement has no secret in it."""
    text = json.dumps([asdict(step) for step in steps], ensure_ascii=False)  # type: ignore[call-overload] # steps are dataclasses
    return redact(sql, dialect).hush(text)


def _phases(flight: Flight) -> dict[str, float | None]:
    """How long each part took, in milliseconds; None: it never came to that."""
    first = flight.first_row or (flight.ended if flight.admitted is not None else None)
    return {
        "decision": _between(flight.submitted, flight.decided),
        "queue": _between(flight.decided, flight.admitted),
        "engine": _between(flight.admitted, first),
        "fetch": _between(flight.first_row, flight.ended),
    }


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, (end - start) * 1_000)


def _sum(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _code(flight: Flight) -> str | None:
    error = flight.error
    return flight.error_code or (error.code if isinstance(error, EngineError) else None)


def _error_class(error: BaseException | None) -> str:
    if isinstance(error, EngineUnavailableError):
        return _UNAVAILABLE_CLASS
    return "user_error" if isinstance(error, EngineError | RoutingError) else GATEWAY_ERROR


def uptime_chain_id(pid: int) -> str:
    """A name for the audit chain of one life of one process."""
    return f"gateway-{pid}-{time.time_ns():x}"

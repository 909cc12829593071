"""The query service: what every front end hands its statements to.

    service = QueryService(routing, engines, recorder)
    query = await service.submit(Request(sql="SELECT 1", dialect="trino", user="ana", ...))
    schema = await query.schema()
    async for batch in query: ...

Decide (rules, strategy, translation, guard) → wait for a place → the engine's stream → record. A
reading statement whose engine dies before the first row is run again on another member; after that
it fails clearly. What it knows of protocols is nothing.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from lakehouse_core.domain.errors import EngineError, EngineUnavailableError, QueryCancelledError
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.engines.base import Statement
from lakehouse_core.gateway.flight import Flight
from lakehouse_core.gateway.pipe import BatchPipe
from lakehouse_core.gateway.running import RunningQuery
from lakehouse_core.routing.lease import RoutingError
from lakehouse_core.sql.places import carried

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.engines.base import Engine
    from lakehouse_core.gateway.ports import Recorder, Routing
    from lakehouse_core.routing.breaker import Ending
    from lakehouse_core.routing.lease import Lease
    from lakehouse_core.routing.request import Decision, Request, Sight

_log = structlog.get_logger(__name__)
MOST_ATTEMPTS = 2
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """How much the service holds.

    Attributes:
        buffer_bytes: of one result, for a client that reads slowly.
        batch_bytes: of one batch.
        threads: engine drivers block; one thread per query that runs.
    """

    buffer_bytes: int = 16 * 2**20
    batch_bytes: int = 2 * 2**20
    threads: int = 64


class QueryService:
    """Runs statements; used from one event loop."""

    def __init__(
        self,
        routing: Routing,
        engines: Mapping[EngineId, Engine],
        recorder: Recorder,
        limits: ServiceLimits | None = None,
    ) -> None:
        self._routing = routing
        self._engines = engines
        self._recorder = recorder
        self._limits = limits or ServiceLimits()
        self._threads = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="query")
        # Stopping must work while every thread waits for a slow client.
        self._stoppers = ThreadPoolExecutor(8, thread_name_prefix="stop")
        self._tasks: dict[RunningQuery, asyncio.Task[None]] = {}

    @property
    def running(self) -> int:
        """Statements that are under way."""
        return len(self._tasks)

    # --- for front ends

    async def submit(self, request: Request) -> RunningQuery:
        """Decide at once, and run in the background.

        Raises:
            RoutingError: it may not run, or cannot; it has been recorded.
        """
        return self.run(self.decide(request))

    def sight(self, request: Request) -> Sight:
        """What who asks may know of, for questions about names that no engine answers."""
        return self._routing.sight(request)

    def is_spoken(self, request: Request) -> bool:
        """Whether an engine of the statement's own dialect would take it; nothing is recorded."""
        decision = self._routing.foresee(request)
        return decision.denial is None and decision.target_dialect == request.dialect

    def judge(self, request: Request, forgiven: frozenset[str] = frozenset()) -> None:
        """Refuse a statement that is to run later; it is decided about again when it runs.

        Args:
            request: the statement.
            forgiven: rules that may let it pass by then.

        Raises:
            RoutingError: as `submit`.
        """
        denial = self._routing.foresee(request).denial
        if denial is not None and denial.rule not in forgiven:
            self.decide(request)

    def decide(self, request: Request) -> Flight:
        """Decide where a statement goes; the first half of `submit`.

        Raises:
            RoutingError: as `submit`.
        """
        if not request.gateway_id:
            request = replace(request, gateway_id=new_gateway_id())
        flight = Flight(request=request)
        decision = self._routing.decide(request)
        flight.decided = time.perf_counter()
        flight.decision = decision
        if decision.denial is not None:
            raise self._denied(flight, RoutingError(decision))
        return flight

    def run(self, flight: Flight, lease: Lease | None = None) -> RunningQuery:
        """Run what was decided; the second half of `submit`.

        Args:
            flight: as decided.
            lease: its place, when it has one already.
        """
        loop = asyncio.get_running_loop()
        pipe = BatchPipe(loop, self._limits.buffer_bytes, self._limits.batch_bytes)
        query = RunningQuery(flight, pipe, self._stop)
        task = loop.create_task(self._run(query, pipe, lease))
        self._tasks[query] = task
        task.add_done_callback(lambda _: self._tasks.pop(query, None))
        return query

    def try_admit(self, flight: Flight) -> Lease | None:
        """A place if there is one now; None when the statement has to wait.

        Raises:
            RoutingError: there is none, nor will be; it has been recorded.
        """
        try:
            lease = self._routing.try_acquire(flight.request, _decision(flight))
        except RoutingError as error:
            raise self._denied(flight, error) from None
        return None if lease is None else self._admitted(flight, lease)

    async def admit(self, flight: Flight) -> Lease:
        """Wait for a place.

        Raises:
            RoutingError: there is none; it has been recorded.
        """
        try:
            lease = await self._routing.acquire(flight.request, _decision(flight))
        except RoutingError as error:
            raise self._denied(flight, error) from None
        return self._admitted(flight, lease)

    def redirect(self, flight: Flight, failed: EngineUnavailableError) -> bool:
        """Choose another member for a statement whose engine is gone; False when it must fail."""
        decision = _decision(flight)
        is_last = flight.attempts >= MOST_ATTEMPTS or decision.is_shadow
        if flight.first_row is not None or is_last:
            return False
        other = self._routing.decide_again(flight.request, decision, str(failed))
        if other.denial is not None:
            flight.add_step("retry", str(decision.group), "refused", other.denial.message)
            return False
        flight.decision = other
        return True

    def land(self, flight: Flight, status: QueryStatus, error: BaseException | None = None) -> None:
        """A statement is over; only the first word about it counts."""
        if not flight.is_over:
            flight.end(status, error)
            self._recorder.note(flight)

    async def close(self) -> None:
        """Stop what runs and wait for it."""
        tasks = list(self._tasks.values())
        await asyncio.gather(
            *(self._stop(query, "The gateway is shutting down") for query in list(self._tasks)),
            return_exceptions=True,
        )
        if tasks:
            await asyncio.wait(tasks, timeout=10)
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._stoppers.shutdown(wait=False, cancel_futures=True)

    # --- inside

    def _admitted(self, flight: Flight, lease: Lease) -> Lease:
        flight.decision = lease.decision
        flight.admitted = time.perf_counter()
        flight.attempts += 1
        return lease

    def _denied(self, flight: Flight, error: RoutingError) -> RoutingError:
        flight.decision = error.decision
        self.land(flight, QueryStatus.FAILED, error)
        return error

    async def _run(self, query: RunningQuery, pipe: BatchPipe, lease: Lease | None) -> None:
        try:
            while not await self._attempt(query, pipe, lease):
                lease = None
        except asyncio.CancelledError:
            self._finish(query, QueryCancelledError("The query was cancelled while it waited"))
        except (EngineError, RoutingError) as error:
            # Of a query that we stopped, the engine knows only that it was stopped.
            is_stopped = isinstance(error, QueryCancelledError)
            self._finish(query, (pipe.closed_by if is_stopped else None) or error)
        except Exception as error:  # noqa: BLE001 whoever waits for rows must hear of it
            _log.error(
                "query failed inside the gateway", gateway_id=query.gateway_id, exc_info=error
            )
            self._finish(query, error)
        else:
            self._finish(query, None)

    async def _attempt(self, query: RunningQuery, pipe: BatchPipe, lease: Lease | None) -> bool:
        """Run once; False when it is to be tried again elsewhere."""
        flight = query.flight
        lease = lease or await self.admit(flight)
        ending: Ending = "cancelled"
        reason = ""
        try:
            pipe.check()
            await asyncio.get_running_loop().run_in_executor(self._threads, self._pump, query, pipe)
            ending = "finished"
        except QueryCancelledError:
            raise
        except EngineUnavailableError as error:
            ending, reason = "unavailable", str(error)
            if self.redirect(flight, error):
                return False
            raise
        except EngineError:
            ending = "failed"
            raise
        finally:
            lease.release(ending, reason)
        return True

    def _pump(self, query: RunningQuery, pipe: BatchPipe) -> None:
        """Read the engine; in a thread of its own."""
        flight, loop = query.flight, pipe.loop
        request, decision = flight.request, _decision(flight)
        engine = self._engines[decision.engine_id]  # type: ignore[index] # admitted: it has one
        statement = Statement(
            sql=decision.sql,
            user=request.user or "unknown",
            source=request.source or request.protocol,
            tags=decision.tags or request.tags,
            gateway_id=request.gateway_id,
            catalog=request.catalog,
            schema=request.schema,
        )

        def opened(schema: pa.Schema) -> None:
            flight.mark_first_row()
            loop.call_soon_threadsafe(query.opened, schema)

        with engine.stream(statement) as stream:
            flight.query_id = stream.query_id
            for batch in stream.batches:
                opened(stream.schema)
                pipe.put(batch)
            opened(stream.schema)
            flight.cost = stream.cost

    def _finish(self, query: RunningQuery, error: BaseException | None) -> None:
        status = QueryStatus.FINISHED
        if error is not None:
            is_cancelled = isinstance(error, QueryCancelledError)
            status = QueryStatus.CANCELLED if is_cancelled else QueryStatus.FAILED
            if isinstance(error, EngineError):
                query.flight.query_id = error.query_id or query.flight.query_id
                error.position = _place(error, query.flight)
        self.land(query.flight, status, error)
        query.finished(error)

    async def _stop(self, query: RunningQuery, reason: str) -> None:
        task = self._tasks.get(query)
        query.close(reason)
        if task is None or task.done():
            return
        if query.is_queued:
            task.cancel()
        loop, deadline = asyncio.get_running_loop(), time.monotonic() + STOP_SECONDS
        while not task.done() and time.monotonic() < deadline:
            # Again and again: the statement may not have reached the engine at the first try.
            engine_id = _decision(query.flight).engine_id
            if not query.is_queued and engine_id is not None:
                engine = self._engines[engine_id]
                await loop.run_in_executor(
                    self._stoppers, _stop_on_engine, engine, query.gateway_id
                )
            await asyncio.wait({task}, timeout=0.25)


def new_gateway_id() -> str:
    """An id of ours."""
    return uuid4().hex


def _stop_on_engine(engine: Engine, gateway_id: str) -> None:
    try:
        engine.cancel(gateway_id)
    except EngineError as error:
        _log.warning("query not stopped", gateway_id=gateway_id, error=str(error))


def _place(error: EngineError, flight: Flight) -> tuple[int, int] | None:
    """Where the error is in the text that the client wrote."""
    sent = flight.decision.sql if flight.decision is not None else flight.request.sql
    return carried(error.position, sent, flight.request.sql)


def _decision(flight: Flight) -> Decision:
    if flight.decision is None:
        raise LookupError("The statement has not been decided about")
    return flight.decision

"""The Spark engine, through Spark Connect; what its requests look like is told in `sessions`.

engine = SparkAdapter(EngineId("spark"), config.engines["spark"])
engine.execute(Statement(sql="SELECT count(*) FROM lake.demo.events", user="ana")).rows
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.engine import EngineCapabilities, EngineProbe, ObservedState
from lakehouse_core.domain.errors import (
    EngineError,
    EngineUnavailableError,
    QueryCancelledError,
    QueryFailedError,
)
from lakehouse_core.engines.base import Cost, Result, RowStream, gather
from lakehouse_core.engines.spark.probe import Prober
from lakehouse_core.engines.spark.sessions import GATEWAY_TAG, Caller, Operations, Sessions

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from lakehouse_core.config.models import SparkEngine
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.engines.base import Statement

CAPABILITIES = EngineCapabilities(
    dialect="spark", can_write=True, can_cancel=True, reports_bytes=True, has_own_history=True
)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")
_CANCEL_SECONDS = 10.0
_CANCEL_EVERY_SECONDS = 0.1


class _SessionLostError(Exception):
    """The server does not know our session any more: it was restarted, or we were idle too long."""


@dataclass(eq=False, slots=True)
class _Running:
    """A statement that is under way."""

    gateway_id: str | None
    session: Any
    operations: Operations
    is_over: threading.Event = field(default_factory=threading.Event)

    def answers_to(self, name: str) -> bool:
        return name == self.gateway_id or name in self.operations.ids


class SparkAdapter:
    """An `Engine`; safe to use from many threads."""

    capabilities = CAPABILITIES

    def __init__(self, engine_id: EngineId, engine: SparkEngine, clock: Clock = utc_now) -> None:
        self.engine_id = engine_id
        self._address = f"{engine.host}:{engine.port}"
        self._sessions = Sessions(engine.host, engine.port)
        self._prober = Prober(engine.host, engine.port, engine.ui_port)
        self._clock = clock
        self._running: list[_Running] = []
        self._lock = threading.Lock()

    def execute(self, statement: Statement) -> Result:
        """See `Engine.execute`."""
        with self.stream(statement) as stream:
            return gather(stream)

    @contextmanager
    def stream(self, statement: Statement) -> Iterator[RowStream]:
        """See `Engine.stream`."""
        with ExitStack() as stack:
            try:
                stream = stack.enter_context(self._opened(statement))
            except _SessionLostError:
                # Refused before anything was run: a new session may try.
                try:
                    stream = stack.enter_context(self._opened(statement))
                except _SessionLostError as error:
                    raise EngineUnavailableError(
                        f"Spark at {self._address} does not keep a session: {error}"
                    ) from error
            yield stream

    def probe(self) -> EngineProbe:
        """See `Engine.probe`."""
        started = time.perf_counter()
        version, problem = self._prober.version()
        latency_ms = (time.perf_counter() - started) * 1_000
        return EngineProbe(
            engine_id=self.engine_id,
            probed_at=self._clock(),
            observed=ObservedState.UNHEALTHY if problem else ObservedState.HEALTHY,
            detail=problem,
            version=version,
            latency_ms=latency_ms,
            running_queries=None if problem else self._prober.running_queries(),
        )

    def cancel(self, query_id: str) -> bool:
        """See `Engine.cancel`; reaches the statements sent through this adapter."""
        with self._lock:
            found = [running for running in self._running if running.answers_to(query_id)]
        stopped = [self._interrupt(running) for running in found]
        return any(stopped)

    def close(self) -> None:
        """See `Engine.close`."""
        self._sessions.close()
        self._prober.close()

    @contextmanager
    def _opened(self, statement: Statement) -> Iterator[RowStream]:
        caller = Caller(statement.user, statement.source)
        session = self._sessions.get(caller)
        operations = Operations()
        try:
            with self._noted(statement, session, operations), _tagged(session, statement):
                schema, batches = _open(session, statement.sql)
                try:
                    first = next(batches, None)  # what runs has its id from here on
                    yield RowStream(
                        query_id=operations.query_id or "",
                        schema=schema,
                        batches=_chained(first, batches),
                        cost=Cost(),
                    )
                finally:
                    batches.close()
        except EngineError as error:
            error.query_id = operations.query_id
            raise
        except Exception as error:  # the driver's errors have no root of their own
            raise self._translated(error, caller, session, operations) from error

    @contextmanager
    def _noted(self, statement: Statement, session: Any, operations: Operations) -> Iterator[None]:
        running = _Running(statement.gateway_id, session, operations)
        with self._lock:
            self._running.append(running)
        try:
            with self._sessions.recording(operations):
                yield
        finally:
            running.is_over.set()
            with self._lock:
                self._running.remove(running)

    def _interrupt(self, running: _Running) -> bool:
        """Interrupt until it is over: between two operations there is nothing to interrupt."""
        running.operations.is_cancelled = True
        deadline = time.monotonic() + _CANCEL_SECONDS
        while time.monotonic() < deadline:
            for operation_id in running.operations.ids[-1:]:
                try:
                    running.session.interruptOperation(operation_id)
                except Exception as error:
                    raise self._translated(
                        error, None, running.session, running.operations
                    ) from error
            if running.is_over.wait(_CANCEL_EVERY_SECONDS):
                return True
        return False

    def _translated(
        self, error: Exception, caller: Caller | None, session: Any, operations: Operations
    ) -> Exception:
        """Our error for the driver's; the session is given up when it is of no use any more."""
        from grpc import RpcError, StatusCode  # noqa: PLC0415 comes with the driver
        from pyspark.errors import PySparkException  # noqa: PLC0415 the driver is optional

        if not isinstance(error, PySparkException | RpcError):
            return error
        code, status, message = _facts(error)
        is_lost = (code or "").startswith("INVALID_HANDLE.SESSION") or code == "NO_ACTIVE_SESSION"
        is_down = status is StatusCode.UNAVAILABLE
        if caller is not None and (is_lost or is_down):
            self._sessions.drop(caller, session)
        if is_lost:
            return _SessionLostError(message)
        query_id = operations.query_id
        if is_down:
            return EngineUnavailableError(
                f"Spark at {self._address} does not answer: start it, or see its log", code=code
            )
        if code == "OPERATION_CANCELED" or (
            operations.is_cancelled and status is StatusCode.CANCELLED
        ):
            return QueryCancelledError("The query was cancelled", code=code, query_id=query_id)
        return QueryFailedError(
            message, code=code or type(error).__name__, query_id=query_id, position=_place(message)
        )


@contextmanager
def _tagged(session: Any, statement: Statement) -> Iterator[None]:
    """Put the statement's tags on what this thread sends; tags of a session are per thread."""
    tags = [tag.replace(",", ";") for tag in statement.tags if tag]  # Spark joins them by commas
    if statement.gateway_id:
        tags.append(f"{GATEWAY_TAG}{statement.gateway_id.replace(',', ';')}")
    session.clearTags()
    for tag in tags:
        session.addTag(tag)
    try:
        yield
    finally:
        session.clearTags()


def _open(session: Any, sql: str) -> tuple[pa.Schema, Generator[pa.RecordBatch]]:
    """The statement's columns, and a reader of its rows; a command has run when this returns."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 the driver is optional

    frame = session.sql(sql)
    schema = to_arrow_schema(frame.schema, error_on_duplicated_field_names_in_struct=True)

    def read() -> Generator[pa.RecordBatch]:
        plan = frame._plan  # the driver has no public way to its Arrow batches
        tables = session.client.to_table_as_iterator(
            plan.to_proto(session.client), plan.observations
        )
        for table in tables:
            if isinstance(table, pa.Table):
                yield from table.cast(schema).to_batches()

    return schema, read()


def _chained(
    first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
        yield from rest


def _place(message: str) -> tuple[int, int] | None:
    """Line and column that the words name; Spark counts columns from 0."""
    found = _PLACE.search(message)
    return (int(found[1]), int(found[2]) + 1) if found else None


def _facts(error: Any) -> tuple[str | None, Any, str]:
    """The error's class, its gRPC status and its message, without plan and stack trace."""
    if hasattr(error, "getCondition"):
        status = error.getGrpcStatusCode() if hasattr(error, "getGrpcStatusCode") else None
        message = str(error.getMessage() or error).partition("\n\nJVM stacktrace")[0]
        # Behind the words follows the logical plan, whose root is marked as unresolved.
        return error.getCondition(), status, message.partition(";\n'")[0].strip()
    return None, error.code(), str(error.details() or error)

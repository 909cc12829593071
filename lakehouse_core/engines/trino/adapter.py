"""The Trino engine, through Trino's own Python client.

    engine = TrinoAdapter(EngineId("trino"), config.engines["trino"])
    engine.execute(Statement(sql="SELECT count(*) FROM lake.demo.events", user="ana")).rows

User, source and tags are Trino's own; the gateway id is the trace token, which its history keeps.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.engine import EngineCapabilities, EngineProbe, ObservedState
from lakehouse_core.domain.errors import (
    EngineError,
    EngineUnavailableError,
    QueryCancelledError,
    QueryFailedError,
)
from lakehouse_core.engines.base import Cost, Result, RowStream, gather
from lakehouse_core.engines.trino.arrow import to_batch, to_schema
from lakehouse_core.engines.trino.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from lakehouse_core.config.models import TrinoEngine
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.engines.base import Statement

CAPABILITIES = EngineCapabilities(
    dialect="trino", can_write=True, can_cancel=True, reports_bytes=True, has_own_history=True
)
_CONNECT_SECONDS, _READ_SECONDS = 3.0, 30.0
_CANCEL_SECONDS = 5.0
STREAM_ROWS = 4_096
_PLACE = re.compile(r"^line \d+:\d+: ")  # told apart from the words
_CANCELLED = frozenset({"USER_CANCELED", "ADMINISTRATIVELY_KILLED"})
_UNAVAILABLE = frozenset(
    {"SERVER_STARTING_UP", "SERVER_SHUTTING_DOWN", "NO_NODES_AVAILABLE", "REMOTE_HOST_GONE"}
)


class TrinoAdapter:
    """An `Engine`; safe to use from many threads."""

    capabilities = CAPABILITIES

    def __init__(
        self,
        engine_id: EngineId,
        engine: TrinoEngine,
        password: str | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self.engine_id = engine_id
        self._engine = engine
        self._password = password
        self._url = f"{engine.scheme}://{engine.host}:{engine.port}"
        self._rest = Rest(self._url, engine.user, password)
        self._clock = clock
        self._cursors: dict[str, list[Any]] = {}  # by gateway id, while they run
        self._lock = threading.Lock()

    def execute(self, statement: Statement) -> Result:
        """See `Engine.execute`."""
        with self.stream(statement) as stream:
            return gather(stream)

    @contextmanager
    def stream(self, statement: Statement) -> Iterator[RowStream]:
        """See `Engine.stream`."""
        from trino.exceptions import Error, HttpError  # noqa: PLC0415 the driver is optional

        cursor = self._cursor(statement)
        is_over = False
        try:
            with self._noted(statement.gateway_id, cursor):
                cursor.execute(statement.sql)
                columns = [(column.name, column.type_code) for column in cursor.description or ()]
                cost = Cost()
                yield RowStream(
                    query_id=cursor.query_id,
                    schema=to_schema(columns),
                    batches=_batches(cursor, columns, cost),
                    cost=cost,
                )
                is_over = True
        except (Error, HttpError, ValueError) as error:
            is_over = True
            raise self._translated(error, cursor.query_id) from error
        finally:
            if not is_over and cursor.query_id is not None:
                cursor.cancel()
            cursor.connection.close()

    def probe(self) -> EngineProbe:
        """See `Engine.probe`."""
        started = time.perf_counter()
        observed = ObservedState.HEALTHY
        detail: str | None = None
        version: str | None = None
        running: int | None = None
        queued: int | None = None
        try:
            version, is_starting = self._rest.info()
            if is_starting:
                observed, detail = ObservedState.PENDING, f"Trino at {self._url} is starting"
            else:
                running, queued = self._rest.load()
        except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
            observed = ObservedState.UNHEALTHY
            detail = f"Trino at {self._url} does not answer: {error}"
        return EngineProbe(
            engine_id=self.engine_id,
            probed_at=self._clock(),
            observed=observed,
            detail=detail,
            version=version,
            latency_ms=(time.perf_counter() - started) * 1_000,
            running_queries=running,
            queued_queries=queued,
        )

    def cancel(self, query_id: str) -> bool:
        """See `Engine.cancel`; by Trino's id it reaches any client's query."""
        with self._lock:
            cursors = list(self._cursors.get(query_id, ()))
        ids = [self._id_of(cursor) for cursor in cursors] if cursors else [query_id]
        try:
            stopped = [self._rest.cancel(one) for one in ids if one is not None]
        except (httpx.HTTPError, ValueError) as error:
            raise EngineUnavailableError(
                f"Trino at {self._url} does not answer: {error}"
            ) from error
        return any(stopped)

    def close(self) -> None:
        """See `Engine.close`."""
        self._rest.close()

    def _cursor(self, statement: Statement) -> Any:
        from trino.auth import BasicAuthentication  # noqa: PLC0415 the driver is optional
        from trino.dbapi import connect  # noqa: PLC0415 as above

        headers = {"X-Trino-Trace-Token": _header(statement.gateway_id or "")}
        connection = connect(  # type: ignore[no-untyped-call] # the driver has no types
            host=self._engine.host,
            port=self._engine.port,
            http_scheme=self._engine.scheme,
            auth=BasicAuthentication(self._engine.user, self._password) if self._password else None,
            user=_header(statement.user),
            source=_header(statement.source),
            client_tags=[_header(tag).replace(",", ";") for tag in statement.tags],
            http_headers=headers if statement.gateway_id else None,
            catalog=statement.catalog or self._engine.catalog,
            schema=statement.schema,
            timezone="UTC",
            request_timeout=(_CONNECT_SECONDS, _READ_SECONDS),
            max_attempts=1,  # a repeated POST could run a writing statement twice
        )
        return connection.cursor()

    @contextmanager
    def _noted(self, gateway_id: str | None, cursor: Any) -> Iterator[None]:
        """Let the statement be found by its gateway id while it runs."""
        if gateway_id is None:
            yield
            return
        with self._lock:
            self._cursors.setdefault(gateway_id, []).append(cursor)
        try:
            yield
        finally:
            with self._lock:
                self._cursors[gateway_id].remove(cursor)
                if not self._cursors[gateway_id]:
                    del self._cursors[gateway_id]

    @staticmethod
    def _id_of(cursor: Any) -> str | None:
        """The query's id, which Trino assigns with its first answer."""
        deadline = time.monotonic() + _CANCEL_SECONDS
        while cursor.query_id is None and time.monotonic() < deadline:
            time.sleep(0.02)
        query_id: str | None = cursor.query_id
        return query_id

    def _translated(self, error: Exception, query_id: str | None) -> EngineError:
        from trino.exceptions import TrinoQueryError  # noqa: PLC0415 the driver is optional

        if not isinstance(error, TrinoQueryError):
            return EngineUnavailableError(
                f"Trino at {self._url} does not answer: {error}", query_id=query_id
            )
        code, query_id = error.error_name, error.query_id or query_id
        if code in _CANCELLED:
            return QueryCancelledError("The query was cancelled", code=code, query_id=query_id)
        kind = EngineUnavailableError if code in _UNAVAILABLE else QueryFailedError
        place = (error.failure_info or {}).get("errorLocation")
        position = (place["lineNumber"], place["columnNumber"]) if place else None
        message = _PLACE.sub("", str(error.message)) if place else str(error.message)
        return kind(message, code=code, query_id=query_id, position=position)


def _batches(
    cursor: Any, columns: Sequence[tuple[str, str]], cost: Cost
) -> Iterator[pa.RecordBatch]:
    while rows := cursor.fetchmany(STREAM_ROWS):
        yield to_batch(columns, rows)
    stats = cursor.stats or {}
    cost.cpu_ms, cost.rows_scanned = stats.get("cpuTimeMillis"), stats.get("processedRows")
    cost.bytes_scanned = stats.get("physicalInputBytes")
    cost.peak_memory_bytes = stats.get("peakMemoryBytes")
    cost.warnings = tuple(str(warning.get("message")) for warning in cursor.warnings or ())


def _header(text: str) -> str:
    """A text as an HTTP header can carry it: Latin-1, on one line."""
    return " ".join(text.split()).encode("latin-1", "replace").decode("latin-1")

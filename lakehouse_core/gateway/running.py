"""A query that runs: its columns, its rows as they come, and how to stop it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import EngineError, QueryCancelledError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import pyarrow as pa

    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.pipe import BatchPipe


class RunningQuery:
    """What `QueryService.submit` returns; used from the event loop that made it.

        query = await service.submit(request)
        schema = await query.schema()
        async for batch in query: ...

    Whoever stops reading before the end calls `cancel`: the engine's query is stopped then.
    """

    def __init__(
        self, flight: Flight, pipe: BatchPipe, stop: Callable[[RunningQuery, str], Awaitable[None]]
    ) -> None:
        self.flight = flight
        self._pipe = pipe
        self._stop = stop
        self._schema: asyncio.Future[pa.Schema] = asyncio.get_running_loop().create_future()
        # A client that never asks for the columns must not make asyncio complain.
        self._schema.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.error: BaseException | None = None

    @property
    def gateway_id(self) -> str:
        """Our id of it."""
        return self.flight.request.gateway_id

    @property
    def is_queued(self) -> bool:
        """Whether it waits for a place."""
        return self.flight.admitted is None

    @property
    def is_over(self) -> bool:
        """Whether the engine has nothing more to do for it."""
        return self.flight.is_over

    async def schema(self, seconds: float | None = None) -> pa.Schema:
        """The columns; known when the first rows are.

        Raises:
            TimeoutError: they are not known yet.
            EngineError: the engine failed.
            RoutingError: it got no place.
        """
        done, _ = await asyncio.wait({self._schema}, timeout=seconds)
        if not done:
            raise TimeoutError
        return self._schema.result()

    async def next_batch(self, seconds: float | None = None) -> pa.RecordBatch | None:
        """The next rows; None at the end.

        Raises:
            TimeoutError: none came in time.
            EngineError: the engine failed, or the query was cancelled.
        """
        batch = await self._pipe.get(seconds)
        if batch is None and self.error is not None:
            raise self.error
        if batch is not None:
            flight = self.flight
            flight.rows_sent = (flight.rows_sent or 0) + batch.num_rows
            flight.bytes_sent = (flight.bytes_sent or 0) + batch.nbytes
        return batch

    async def is_drained(self, seconds: float) -> bool:
        """Whether no rows are left, and the query went well; waits a moment to know."""
        return await self._pipe.is_drained(seconds) and self.error is None

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        while (batch := await self.next_batch()) is not None:
            yield batch

    async def cancel(self, reason: str = "The query was cancelled") -> None:
        """Stop it, on the engine too; harmless when it is over."""
        await self._stop(self, reason)

    def close(self, reason: str) -> None:
        """Take no more rows; what the service does first when it stops a query."""
        self._pipe.close(reason)

    # --- the service's side

    def opened(self, schema: pa.Schema) -> None:
        """The columns are known."""
        if not self._schema.done():
            self._schema.set_result(schema)

    def finished(self, error: BaseException | None) -> None:
        """Nothing more will come."""
        self.error = error
        if not self._schema.done():
            self._schema.set_exception(
                error or QueryCancelledError("The query ended without columns")
            )
        self._pipe.end()

    @property
    def position(self) -> tuple[int, int] | None:
        """Line and column of the error in the statement, where the engine told."""
        return self.error.position if isinstance(self.error, EngineError) else None

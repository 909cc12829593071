"""Rows on their way to a client: of a query that runs, or of a table that is there already."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.query import StatementKind
from lakehouse_core.gateway.postgres.types import column_of, encode_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse_core.gateway.postgres.messages import Column
    from lakehouse_core.gateway.running import RunningQuery
    from lakehouse_core.sql.postgres.cursors import Fetch

_INLINE_CELLS = 2_000  # batches up to this size are encoded in the loop: a thread costs more
_BATCH_ROWS = 8_192
_TOO_LATE = "canceling statement due to statement timeout"
_WRITING = {
    StatementKind.INSERT: "INSERT 0",
    StatementKind.UPDATE: "UPDATE",
    StatementKind.DELETE: "DELETE",
    StatementKind.MERGE: "MERGE",
}
_READING = frozenset(
    {StatementKind.SELECT, StatementKind.DESCRIBE, StatementKind.EXPLAIN, StatementKind.OTHER}
)


class Rows:
    """What a portal gives out: columns, then rows as many at a time as are asked for."""

    def __init__(
        self,
        *,
        query: RunningQuery | None = None,
        table: pa.Table | None = None,
        tag: str | None = None,
        formats: Sequence[int] = (),
    ) -> None:
        self._query = query
        self._table = table
        self._batches = iter(table.to_batches(_BATCH_ROWS) if table is not None else ())
        self._tag = tag
        self._formats = formats
        self._left: pa.RecordBatch | None = None
        self._columns: tuple[Column, ...] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._idle_since: float | None = time.monotonic()  # None: its client waits for it
        self.sent = 0
        self.is_over = False

    @property
    def query(self) -> RunningQuery | None:
        """The query behind it, when an engine runs one."""
        return self._query

    @property
    def has_rows(self) -> bool:
        """Whether the client is told columns and rows; a statement that writes has a tag only."""
        return self._query is None or self._kind in _READING

    @property
    def _kind(self) -> StatementKind:
        decision = self._query.flight.decision if self._query is not None else None
        return decision.facts.kind if decision is not None else StatementKind.SELECT

    async def columns(self) -> tuple[Column, ...]:
        """The columns; waits until the engine knows them.

        Raises:
            LakehouseError: the query failed, or got no place.
        """
        if self._columns is None:
            self._columns = tuple(
                column_of(field, is_binary=_format(self._formats, index) == 1)
                for index, field in enumerate(await self.schema())
            )
        return self._columns

    async def schema(self) -> pa.Schema:
        """The columns as the engine has them; raises as `columns`."""
        if self._query is not None:
            with self._asked():
                return await self._query.schema()
        return self._table.schema if self._table is not None else pa.schema([])

    async def take(self, most: int = 0) -> memoryview | None:
        """The messages of the next rows, at most so many (0: as many as come); None at the end.

        Raises:
            LakehouseError: the query failed.
        """
        columns = await self.columns()
        batch = await self.next_batch(most)
        if batch is None:
            self.is_over = True
            return None
        self.sent += batch.num_rows
        if batch.num_rows * batch.num_columns <= _INLINE_CELLS:
            return encode_rows(batch, columns)
        return await asyncio.to_thread(encode_rows, batch, columns)

    async def drain(self) -> int:
        """Take all rows and tell nobody; the number in the first of them, where there is one."""
        count = 0
        while (batch := await self.next_batch()) is not None:
            if (
                batch.num_rows == 1
                and batch.num_columns
                and pa.types.is_integer(batch.schema[0].type)
            ):
                count = int(batch.column(0)[0].as_py() or 0)
        self.is_over = True
        return count

    def tag(self, changed: int = 0) -> str:
        """What the client is told was done."""
        if self._tag is not None:
            return f"{self._tag} {self.sent}" if self._tag == "SELECT" else self._tag
        if self._kind in _WRITING:
            return f"{_WRITING[self._kind]} {changed}"
        return f"SELECT {self.sent}" if self._kind in _READING else self._kind.value.upper()

    def stop_after(self, seconds: float) -> None:
        """Stop the query behind it when it is not over by then."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if not self.is_over:
                self._stopping = loop.create_task(self._expire())

        self._timer = loop.call_later(seconds, stop)

    def stop_never(self) -> None:
        """Let it take its time after all."""
        if self._timer is not None:
            self._timer.cancel()

    def stop_when_idle(self, now: float, seconds: float) -> bool:
        """Stop the query behind it when its client has asked for nothing so long; whether so."""
        if self._idle_since is None or now - self._idle_since <= seconds:
            return False
        work = self.cancel(f"Nobody has asked for {seconds:g} s: abandoned")
        self._stopping = asyncio.get_running_loop().create_task(work)
        return True

    async def cancel(self, reason: str) -> None:
        """Stop the query behind it; harmless when it is over."""
        self.stop_never()
        if self._query is not None and not self.is_over:
            await self._query.cancel(reason)

    async def _expire(self) -> None:
        await self.cancel(_TOO_LATE)

    async def next_batch(self, most: int = 0) -> pa.RecordBatch | None:
        """The next rows, at most so many (0: as many as come); None at the end."""
        batch, self._left = self._left, None
        with self._asked():
            batch = batch if batch is not None else await self._fresh()
        if batch is not None and most and batch.num_rows > most:
            self._left, batch = batch.slice(most), batch.slice(0, most)
        return batch

    async def _fresh(self) -> pa.RecordBatch | None:
        if self._query is not None:
            return await self._query.next_batch()
        return next(self._batches, None)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        self._idle_since = None
        try:
            yield
        finally:
            self._idle_since = time.monotonic()


class Fetched(Rows):
    """Some rows of a cursor, whose query goes on behind them."""

    def __init__(self, source: Rows, fetch: Fetch, formats: Sequence[int]) -> None:
        super().__init__(formats=formats)
        self._source = source
        self._wanted = fetch.most
        self._is_move = fetch.is_move
        self._given = 0

    @property
    def has_rows(self) -> bool:
        """MOVE tells none."""
        return not self._is_move

    async def schema(self) -> pa.Schema:
        """The cursor's."""
        return await self._source.schema()

    async def drain(self) -> int:
        """Pass over the rows; how many there were."""
        while await self.next_batch() is not None:
            pass
        self.is_over = True
        return self._given

    def tag(self, changed: int = 0) -> str:
        """As PostgreSQL has it."""
        return f"MOVE {changed}" if self._is_move else f"FETCH {self.sent}"

    async def cancel(self, reason: str) -> None:
        """The cursor stays."""
        self.stop_never()

    async def _expire(self) -> None:
        await self._source.cancel(_TOO_LATE)

    async def _fresh(self) -> pa.RecordBatch | None:
        left = None if self._wanted is None else self._wanted - self._given
        if left is not None and left <= 0:
            return None
        batch = await self._source.next_batch(left or 0)
        if batch is None:
            self._source.is_over = True
            return None
        self._given += batch.num_rows
        return batch


def _format(formats: Sequence[int], index: int) -> int:
    """The format of a column: none said is text, one said is for all."""
    if len(formats) == 1:
        return formats[0]
    return formats[index] if index < len(formats) else 0

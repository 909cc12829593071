"""From an engine's thread to the event loop: batches, one after the other, never too many.

The engine's driver blocks, so a thread reads it. When the client is slow the thread waits here,
the driver stops fetching, and the engine stops producing: memory is bounded from end to end.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import QueryCancelledError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


class BatchPipe:
    """One producer in a thread, one consumer in the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, buffer_bytes: int, batch_bytes: int
    ) -> None:
        self.loop = loop
        self._buffer_bytes = buffer_bytes
        self._batch_bytes = batch_bytes
        self._changed = threading.Condition()
        self._batches: deque[pa.RecordBatch] = deque()
        self._held_bytes = 0
        self._is_ended = False
        self._is_cut = False  # rows were dropped: what is left is no whole result
        self._closed_by: QueryCancelledError | None = None
        self._news = asyncio.Event()

    # --- the producer's thread

    def put(self, batch: pa.RecordBatch) -> None:
        """Hand a batch over, in pieces when it is large; waits while the buffer is full.

        Raises:
            QueryCancelledError: nobody wants the rest.
        """
        for piece in _pieces(batch, self._batch_bytes):
            size = piece.nbytes
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed_by is not None or self._held_bytes < self._buffer_bytes
                )
                if self._closed_by is not None:
                    raise self._closed_by
                self._batches.append(piece)
                self._held_bytes += size
            self._wake()

    def check(self) -> None:
        """Raise when nobody wants the rest."""
        if self._closed_by is not None:
            raise self._closed_by

    @property
    def closed_by(self) -> QueryCancelledError | None:
        """Why nobody wants the rest; None: somebody does."""
        return self._closed_by

    # --- the consumer, in the loop

    def end(self) -> None:
        """No more batches will come."""
        self._is_ended = True
        self._news.set()

    def close(self, reason: str) -> None:
        """Take no more: what was not read is dropped and the producer is sent home."""
        with self._changed:
            if self._closed_by is None:
                self._closed_by = QueryCancelledError(reason)
            self._is_cut = self._is_cut or bool(self._batches)
            self._batches.clear()
            self._held_bytes = 0
            self._changed.notify_all()

    async def get(self, seconds: float | None = None) -> pa.RecordBatch | None:
        """The next batch; None at the end.

        Raises:
            TimeoutError: none came in time.
            QueryCancelledError: some were dropped when it was closed.
        """
        while True:
            with self._changed:
                if self._batches:
                    batch = self._batches.popleft()
                    self._held_bytes -= batch.nbytes
                    self._changed.notify_all()
                    return batch
            if self._is_ended:
                if self._is_cut:
                    self.check()
                return None
            self._news.clear()
            if self._batches or self._is_ended:  # came between the look and the clearing
                continue
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def is_drained(self, seconds: float) -> bool:
        """Whether the last batch has been taken; waits for news for a moment."""
        if not self._batches and not self._is_ended:
            self._news.clear()
            if not self._batches and not self._is_ended:
                try:
                    async with asyncio.timeout(seconds):
                        await self._news.wait()
                except TimeoutError:
                    return False
        return self._is_ended and not self._batches and not self._is_cut

    def _wake(self) -> None:
        self.loop.call_soon_threadsafe(self._news.set)


def _pieces(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    size = batch.nbytes
    if size <= batch_bytes or batch.num_rows <= 1:
        if batch.num_rows:
            yield batch
        return
    rows = max(1, batch.num_rows * batch_bytes // size)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)

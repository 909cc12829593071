"""Questions that a small DuckDB in this process answers: few at a time, in little time and memory.

Names of the lake are told without an engine, and hence without an engine's queue and limits. What a
client writes into such a question may still be large: it is bounded here, and stopped when its
client leaves.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.errors import QueryCancelledError, QueryFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    import duckdb

    from lakehouse_core.duck import Setting

MOST_AT_ONCE = 4
MOST_WAITING = 64
SECONDS = 10.0
MOST_BYTES = 32 * 2**20
# One thread per question; nothing goes to disk.
SETTINGS: Mapping[str, Setting] = {
    "threads": 1,
    "memory_limit": "256MB",
    "max_temp_directory_size": "0KiB",
    "python_enable_replacements": False,
}
_AGAIN_SECONDS = 0.1
_ROWS = 2_048


class Asked:
    """One question; used by the thread that answers it, stopped from elsewhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Interrupt whatever it does."""
        with self._lock:
            self._is_stopped = True
            if self._connection is not None:
                self._connection.interrupt()

    def read(
        self, connection: duckdb.DuckDBPyConnection, sql: str, params: Mapping[str, object]
    ) -> pa.Table:
        """The rows of a query.

        Raises:
            QueryFailedError: they are too many, or it was stopped.
            duckdb.Error: the query is wrong, or needs more memory than there is.
        """
        with self._on(connection):
            reader = connection.execute(sql, dict(params)).to_arrow_reader(_ROWS)
            batches, size = [], 0
            for batch in reader:
                batches.append(batch)
                size += batch.nbytes
                if size > MOST_BYTES:
                    raise QueryFailedError(
                        f"The answer is larger than {MOST_BYTES // 2**20} MiB: ask for less",
                        code="EXCEEDED_LOCAL_MEMORY_LIMIT",
                    )
            return pa.Table.from_batches(batches, schema=reader.schema)

    @contextmanager
    def _on(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        with self._lock:
            if self._is_stopped:
                raise QueryCancelledError("The question was stopped")
            self._connection = connection
        try:
            yield
        finally:
            with self._lock:
                self._connection = None


class Questions:
    """Answers questions in threads of its own; used from one event loop."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="names")
        self._room = threading.Semaphore(MOST_AT_ONCE + MOST_WAITING)
        self._chases: set[asyncio.Task[None]] = set()

    async def ask(self, work: Callable[[Asked], pa.Table]) -> pa.Table:
        """Run `work` in a thread; it is stopped when it takes too long, or when nobody waits.

        Raises:
            QueryFailedError: too many ask, or it takes too long; or as `work` does.
        """
        if not self._room.acquire(blocking=False):
            raise QueryFailedError(
                f"{MOST_WAITING} questions about names wait already; try again later",
                code="QUERY_QUEUE_FULL",
            )
        asked = Asked()
        future = self._threads.submit(work, asked)
        future.add_done_callback(lambda _: self._room.release())
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise QueryFailedError(
                f"Names are told within {self._seconds:g} s, and this takes longer: ask for less",
                code="EXCEEDED_TIME_LIMIT",
            ) from None
        finally:
            if not future.done():
                asked.stop()  # at once: the loop may be about to end
                chase = asyncio.get_running_loop().create_task(_chase(asked, future))
                self._chases.add(chase)
                chase.add_done_callback(self._chases.discard)


async def _chase(asked: Asked, future: Future[pa.Table]) -> None:
    """Stop a question; again and again, it may just be between two steps."""
    while not future.done():
        asked.stop()
        await asyncio.sleep(_AGAIN_SECONDS)

"""The port every executing adapter implements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from lakehouse_core.domain.engine import EngineCapabilities, EngineProbe
    from lakehouse_core.domain.query import EngineId


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement to run, and on whose behalf."""

    sql: str
    user: str
    source: str = "lakehelm"
    tags: tuple[str, ...] = ()
    gateway_id: str | None = None  # our correlation id, passed on so that histories can be joined
    catalog: str | None = None  # of the client's session: what completes names that are not whole
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came back: the engine's own id of the query and its rows."""

    query_id: str
    rows: pa.Table
    warnings: tuple[str, ...] = field(default=())


@dataclass(slots=True, kw_only=True)
class Cost:
    """What a statement took, filled in when its last row was read; None: the engine did not say."""

    cpu_ms: float | None = None
    planning_ms: float | None = None
    bytes_scanned: int | None = None
    rows_scanned: int | None = None
    peak_memory_bytes: int | None = None
    snapshot_ids: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStream:
    """Rows as they come: nothing is fetched before it is asked for.

    Attributes:
        query_id: the engine's own id of the query.
        schema: of every batch.
        batches: the rows; to be read in the thread that opened the stream. Raises as `execute`.
        cost: complete when `batches` has ended.
    """

    query_id: str
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    cost: Cost


def gather(stream: RowStream) -> Result:
    """All rows of a stream at once."""
    rows = pa.Table.from_batches(stream.batches, schema=stream.schema)
    return Result(query_id=stream.query_id, rows=rows, warnings=stream.cost.warnings)


class Engine(Protocol):
    """An engine that runs SQL on the lake's tables."""

    engine_id: EngineId
    capabilities: EngineCapabilities

    def execute(self, statement: Statement) -> Result:
        """Run to completion.

        Raises:
            QueryFailedError: the engine refused or failed the statement; keeps its code.
            QueryCancelledError: somebody stopped it.
            EngineUnavailableError: the engine is not there.
        """
        ...

    def stream(self, statement: Statement) -> AbstractContextManager[RowStream]:
        """Run, and hand out the rows as they come; leaving early stops the statement.

        Entering it raises as `execute` does.
        """
        ...

    def probe(self) -> EngineProbe:
        """Look whether it can take work now; never raises."""
        ...

    def cancel(self, query_id: str) -> bool:
        """Ask the engine to stop a query; False when it is not running there.

        Args:
            query_id: the engine's own id, or the `gateway_id` the statement was sent with: its
                sender knows that one before the engine answers.
        """
        ...

    def close(self) -> None:
        """Release connections."""
        ...

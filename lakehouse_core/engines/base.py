"""The port every executing adapter implements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came back: the engine's own id of the query and its rows."""

    query_id: str
    rows: pa.Table
    warnings: tuple[str, ...] = field(default=())


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

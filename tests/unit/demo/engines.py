"""An engine in memory for the workload: it notes what it is asked and fails when told to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.engine import EngineCapabilities, EngineProbe, ObservedState
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Result
from tests.factories import NOW, unique

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from lakehouse_core.engines.base import RowStream, Statement


def capabilities(dialect: str, *, can_write: bool = True) -> EngineCapabilities:
    return EngineCapabilities(
        dialect=dialect,
        can_write=can_write,
        can_cancel=True,
        reports_bytes=True,
        has_own_history=True,
    )


class MemoryEngine:
    """Answers every statement with no rows, or with the error that `misbehave` raises."""

    def __init__(self, name: str, misbehave: Callable[[Statement], None] | None = None) -> None:
        self.engine_id = EngineId(name)
        self.capabilities = capabilities("duckdb")
        self.asked: list[Statement] = []
        self.is_healthy = True
        self.is_closed = False
        self._misbehave = misbehave
        self._lock = threading.Lock()

    def execute(self, statement: Statement) -> Result:
        with self._lock:
            self.asked.append(statement)
        if self._misbehave is not None:
            self._misbehave(statement)
        return Result(query_id=unique("q"), rows=pa.table({}))

    def stream(self, statement: Statement) -> AbstractContextManager[RowStream]:
        raise AssertionError(statement)

    def probe(self) -> EngineProbe:
        state = ObservedState.HEALTHY if self.is_healthy else ObservedState.UNHEALTHY
        return EngineProbe(engine_id=self.engine_id, probed_at=NOW, observed=state)

    def cancel(self, query_id: str) -> bool:
        return False

    def close(self) -> None:
        self.is_closed = True

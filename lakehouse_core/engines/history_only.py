"""An engine that Lakehelm only reads the history of: it is known, but nothing is sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.engine import EngineCapabilities, EngineProbe, ObservedState
from lakehouse_core.domain.errors import QueryFailedError

if TYPE_CHECKING:
    from lakehouse_core.config.models import EngineConfig
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.engines.base import Statement

DETAIL = "history only: its history is read, nothing is sent to it"


class HistoryOnlyAdapter:
    """An `Engine` that takes no statement and whose state is not known; it contacts nobody."""

    def __init__(self, engine_id: EngineId, engine: EngineConfig, clock: Clock = utc_now) -> None:
        self.engine_id = engine_id
        self.capabilities = EngineCapabilities(
            dialect=engine.type,
            can_write=False,
            can_cancel=False,
            reports_bytes=True,
            has_own_history=True,
        )
        self._clock = clock

    def execute(self, statement: Statement) -> NoReturn:
        """Refuse.

        Raises:
            QueryFailedError: always.
        """
        self.stream(statement)

    def stream(self, statement: Statement) -> NoReturn:
        """Refuse; as `execute`."""
        del statement
        raise QueryFailedError(
            f"engine {self.engine_id} takes no statements ({DETAIL}); choose another engine"
        )

    def probe(self) -> EngineProbe:
        """Unknown: asking a pay-per-use service whether it is there would wake and bill it."""
        return EngineProbe(
            engine_id=self.engine_id,
            probed_at=self._clock(),
            observed=ObservedState.UNKNOWN,
            detail=DETAIL,
        )

    def cancel(self, query_id: str) -> bool:
        """Nothing of ours runs there."""
        del query_id
        return False

    def close(self) -> None:
        """Nothing is open."""

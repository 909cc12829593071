"""How far running jobs are: noted as often as they like, written once a second at most.

A run that is over before anybody could have looked leaves nothing behind.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.agent import AgentProgress
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

_log = structlog.get_logger(__name__)


class ProgressBoard:
    """The latest word of each job; `flush` writes what is new, in one batch for all jobs."""

    def __init__(self, store: TelemetryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._new: dict[str, AgentProgress] = {}
        self._lock = threading.Lock()

    def reporter(self, agent: str, unit: str) -> Callable[[int, int | None], None]:
        """What a job calls with how much is done, and of how much, if that can be known."""

        def report(done: int, total: int | None) -> None:
            noted = AgentProgress(
                agent=agent, done=done, total=total, unit=unit, updated_at=self._clock()
            )
            with self._lock:
                self._new[agent] = noted

        return report

    def flush(self, running: Collection[str]) -> int:
        """Write what jobs that still run noted since the last time; call it once a second."""
        with self._lock:
            noted = [one for agent, one in self._new.items() if agent in running]
            self._new = {}
        if not noted:
            return 0
        try:
            return self._store.upsert("agent_progress", to_arrow("agent_progress", noted))
        except StoreError as error:  # the next word will say the same and more
            _log.warning("agent.progress_not_written", detail=str(error))
            return 0

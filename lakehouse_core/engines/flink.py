"""Flink: a cluster that is looked at, and that jobs are sent to by others."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.engine import EngineProbe, ObservedState
from lakehouse_core.engines.history_only import HistoryOnlyAdapter

if TYPE_CHECKING:
    from lakehouse_core.config.models import FlinkEngine
    from lakehouse_core.domain.query import EngineId

TIMEOUT_SECONDS = 3.0


class FlinkAdapter(HistoryOnlyAdapter):
    """An `Engine` that takes no statement; asking Flink how it is wakes and bills nobody."""

    def __init__(
        self,
        engine_id: EngineId,
        engine: FlinkEngine,
        password: str | None = None,
        clock: Clock = utc_now,
    ) -> None:
        super().__init__(engine_id, engine, clock)
        # Flink's SQL has no dialect in sqlglot, and its REST has no statement to read.
        self.capabilities = replace(self.capabilities, reports_bytes=False)
        self._client = httpx.Client(
            base_url=engine.url,
            auth=(engine.user, password or "") if engine.user else None,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )

    def probe(self) -> EngineProbe:
        """Healthy when the JobManager answers and has a TaskManager."""
        started = time.perf_counter()
        try:
            overview: dict[str, Any] = self._client.get("/overview").raise_for_status().json()
            workers = int(overview["taskmanagers"])
            detail = (
                f"{overview['slots-available']} of {overview['slots-total']} slots are free"
                if workers
                else "no TaskManager is registered: start one, or see its log"
            )
            running = int(overview["jobs-running"])
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            return EngineProbe(
                engine_id=self.engine_id,
                probed_at=self._clock(),
                observed=ObservedState.UNHEALTHY,
                detail=f"Flink at {self._client.base_url} does not answer as one "
                f"({type(error).__name__}: {error}); check that its JobManager is running",
            )
        return EngineProbe(
            engine_id=self.engine_id,
            probed_at=self._clock(),
            observed=ObservedState.HEALTHY if workers else ObservedState.UNHEALTHY,
            detail=detail,
            version=str(overview.get("flink-version") or "") or None,
            latency_ms=(time.perf_counter() - started) * 1_000,
            running_queries=running,
        )

    def close(self) -> None:
        """Release connections."""
        self._client.close()

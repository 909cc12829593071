"""What the admin endpoints tell: read from the store by named queries, kept for a few seconds."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.domain.query import QueryStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

KEEP_SECONDS = 5.0
ANSWER_SECONDS = 10.0
# A busy machine may miss a round or two; a dead prober misses all of them.
MISSED_ROUNDS = 3
LEAST_PROBE_AGE = timedelta(seconds=60)
ENDED = (QueryStatus.FINISHED, QueryStatus.FAILED, QueryStatus.CANCELLED)

PROBES_SQL = """
SELECT engine_id, max(probed_at) AS probed_at, arg_max(observed, probed_at) AS observed
FROM engine_probe GROUP BY engine_id ORDER BY engine_id
"""
QUERIES_SQL = """
SELECT engine_id, status, count(*) AS queries FROM query_event GROUP BY ALL ORDER BY ALL
"""
COLLECTORS_SQL = """
SELECT substr(agent, 9) AS collector,
  max(started_at) FILTER (outcome IN ('ok', 'partial')) AS succeeded_at
FROM agent_run WHERE starts_with(agent, 'collect:') GROUP BY agent ORDER BY agent
"""
REGRET_SQL = """
SELECT measure, baseline, actual / total - 1 AS ratio,
  compared_runs / nullif(runs, 0) AS evidence FROM route_regret WHERE total > 0 ORDER BY ALL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One reading of the store; `error` is set when it could not be read, and then all is empty."""

    read_at: datetime
    error: str | None = None
    probed_at: dict[str, datetime] = field(default_factory=dict)
    observed: dict[str, str] = field(default_factory=dict)
    queries: dict[tuple[str, str], int] = field(default_factory=dict)
    collected_at: dict[str, datetime] = field(default_factory=dict)
    regret: dict[tuple[str, str], float] = field(default_factory=dict)  # by measure and baseline
    evidence: dict[str, float] = field(default_factory=dict)  # by measure

    @property
    def store_up(self) -> bool:
        """Whether the store answered."""
        return self.error is None

    def probe_age(self, engine_id: str) -> timedelta | None:
        """How old the last look at an engine is; None when there was none."""
        at = self.probed_at.get(engine_id)
        return None if at is None else self.read_at - at

    def is_healthy(self, engine_id: str) -> bool:
        """Whether the last look found the engine fit for work."""
        return self.observed.get(engine_id) == ObservedState.HEALTHY


def read_facts(store: TelemetryStore, clock: Clock) -> Facts:
    """Read the store; a store that does not answer is a fact, not a fault."""
    read_at = clock()
    try:
        probes = store.read(PROBES_SQL).to_pylist()
        queries = store.read(QUERIES_SQL).to_pylist()
        collectors = store.read(COLLECTORS_SQL).to_pylist()
        regret = store.read(REGRET_SQL).to_pylist()
    except StoreError as error:
        return Facts(read_at=read_at, error=str(error))
    return Facts(
        read_at=read_at,
        probed_at={row["engine_id"]: row["probed_at"] for row in probes},
        observed={row["engine_id"]: row["observed"] for row in probes},
        queries={
            (row["engine_id"], row["status"]): row["queries"]
            for row in queries
            if row["status"] in ENDED
        },
        collected_at={
            row["collector"]: row["succeeded_at"] for row in collectors if row["succeeded_at"]
        },
        regret={(row["measure"], row["baseline"]): row["ratio"] for row in regret},
        evidence={row["measure"]: row["evidence"] for row in regret},
    )


def unready_reasons(
    facts: Facts, engines: Collection[str], probe_every: timedelta
) -> dict[str, str]:
    """Why the gateway is not ready, by what is missing; empty when it is."""
    if facts.error is not None:
        return {"store": facts.error}
    oldest = max(LEAST_PROBE_AGE, MISSED_ROUNDS * probe_every)
    reasons = {}
    for engine_id in engines:
        age = facts.probe_age(engine_id)
        if age is None:
            reasons[engine_id] = "not probed yet"
        elif age > oldest:
            reasons[engine_id] = f"last probed {age.total_seconds():.0f} s ago"
    return reasons


class FactsCache:
    """The latest facts; one reading at a time, off the event loop, never waited for too long."""

    def __init__(
        self,
        read: Callable[[], Facts],
        clock: Clock,
        seconds: Callable[[], float] = time.monotonic,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._read = read
        self._clock = clock
        self._seconds = seconds
        self._answer_seconds = answer_seconds
        self._reading: asyncio.Task[Facts] | None = None
        self._latest: Facts | None = None
        self._until = 0.0

    async def get(self) -> Facts:
        """Facts that are a few seconds old at most, or the fact that the store is silent."""
        if self._latest is not None and self._seconds() < self._until:
            return self._latest
        if self._reading is None:
            self._reading = asyncio.create_task(asyncio.to_thread(self._read))
        reading = self._reading
        done, _ = await asyncio.wait({reading}, timeout=self._answer_seconds)
        if not done:
            text = f"the store has not answered for {self._answer_seconds:g} s"
            return Facts(read_at=self._clock(), error=text)
        if self._reading is reading:  # the first of those who waited takes it down
            self._reading = None
            self._latest = reading.result()
            self._until = self._seconds() + KEEP_SECONDS
        return reading.result()

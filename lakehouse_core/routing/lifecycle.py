"""The fleet as the router sees it: what people want of each engine, what the probe saw of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.engine import ConfiguredState, ObservedState
from lakehouse_core.routing.request import EngineStanding

if TYPE_CHECKING:
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.domain.query import EngineId
    from lakehouse_core.store.port import TelemetryStore

FLEET_SQL = """
WITH newest AS (
  SELECT engine_id, max(probed_at) AS probed_at, arg_max(observed, probed_at) AS observed,
    arg_max_null(detail, probed_at) AS detail,
    arg_max_null(running_queries, probed_at) AS running_queries
  FROM engine_probe WHERE probed_at > $since::TIMESTAMPTZ GROUP BY engine_id
)
SELECT e.engine_id, e.configured, e.changed_by, e.reason, n.observed, n.probed_at, n.detail,
  n.running_queries
FROM engine e LEFT JOIN newest n USING (engine_id)
"""
NEVER_SEEN = EngineStanding(observed=ObservedState.UNKNOWN, reason="its state is not known here")
# A busy machine may miss a round or two of probes.
MISSED_ROUNDS = 3
LEAST_AGE = timedelta(seconds=60)


@dataclass(slots=True)
class StoreFleet:
    """The fleet as the store tells it; between readings it stays as it was, also without a store.

    Attributes:
        probe_every: how often engines are looked at; an older look is no look.
    """

    probe_every: timedelta
    clock: Clock = utc_now
    _standings: dict[str, EngineStanding] | None = None

    def standing(self, engine_id: EngineId) -> EngineStanding:
        """What is known of an engine."""
        return (self._standings or {}).get(engine_id, NEVER_SEEN)

    def refresh(self, store: TelemetryStore) -> bool:
        """Read the store; True when something changed.

        Raises:
            StoreError: it cannot be read; what was known stays.
        """
        oldest = self.clock() - max(LEAST_AGE, MISSED_ROUNDS * self.probe_every)
        rows = store.read(FLEET_SQL, since=oldest).to_pylist()
        before, self._standings = (
            self._standings,
            {row["engine_id"]: _standing(row) for row in rows},
        )
        return before != self._standings


def _standing(row: dict[str, object]) -> EngineStanding:
    configured = ConfiguredState(str(row["configured"]))
    observed = ObservedState(str(row["observed"] or ObservedState.UNKNOWN))
    reasons = []
    if configured is not ConfiguredState.ACTIVE:
        reasons.append(f"{configured} by {row['changed_by'] or 'nobody named'}")
        reasons += [str(row["reason"])] if row["reason"] else []
    elif observed is not ObservedState.HEALTHY:
        reasons.append(str(row["detail"] or "not looked at lately"))
    running = row["running_queries"]
    return EngineStanding(
        configured=configured,
        observed=observed,
        reason=": ".join(reasons),
        running=running if isinstance(running, int) else None,
    )

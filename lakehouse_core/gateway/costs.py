"""Cost counters for Prometheus: settled hours only, by engine, workload, kind and basis.

An hour that may still change is not counted yet: a counter must not fall. Where a bill takes the
place of what was modelled, only what the engine's spend grew by is added, to the series that grew:
the series of an engine add up to its spend, not to bill and model together. What is older than
`SETTLED` is taken as it was read, so what retention drops stays counted in this process.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from lakehouse_core.domain.errors import StoreError
from lakehouse_core.finops.spend import Spend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.finops.groups import GroupRules
    from lakehouse_core.store.port import TelemetryStore

EVERY = timedelta(minutes=1)
SETTLED = timedelta(days=62)  # bills come by the month
_DAY = timedelta(days=1)
_EVER = datetime(2000, 1, 1, tzinfo=UTC)
Key = tuple[str, ...]
Costs = dict[Key, Decimal]
LABELS = ("engine", "workload", "kind", "basis", "currency")
COSTS_SQL = """
SELECT {engine} AS engine, {workload} AS workload, kind, coalesce(basis, 'unknown') AS basis,
  currency, sum(cost) AS cost
FROM spend LEFT JOIN placed USING (label_id)
WHERE NOT coalesce(is_provisional, false) AND basis NOT IN ('unpriced', 'pending')
GROUP BY ALL
"""


class CostCounters:
    """Reads the sums once a minute at most; not to be called on the event loop."""

    def __init__(self, store: TelemetryStore, rules: GroupRules, clock: Clock) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock
        self._read_at: datetime | None = None
        self._floor = _EVER  # what was before it is in `_before`
        self._before: Costs = {}
        self._counted: Costs = {}
        self._reading = threading.Lock()

    def refresh(self) -> None:
        """Read again when it is time; a store that does not answer leaves what is known."""
        if self._reading.acquire(blocking=False):  # a scrape does not wait for another one's read
            try:
                self._refresh()
            finally:
                self._reading.release()

    def _refresh(self) -> None:
        now = self._clock()
        if self._read_at is not None and now - self._read_at < EVERY:
            return
        try:
            self._settle(now)
            truth = _plus(self._before, self._sums(self._floor, now))
        except StoreError:
            return
        is_first = self._read_at is None
        self._read_at = now
        added = truth if is_first else _growth(self._counted, truth)
        self._counted = _plus(self._counted, added)

    def _settle(self, now: datetime) -> None:
        """Move the floor to `SETTLED` ago, by whole days; what lies before it is not read again."""
        floor = now - SETTLED
        floor -= (floor - _EVER) % _DAY
        if floor > self._floor:
            self._before = _plus(self._before, self._sums(self._floor, floor))
            self._floor = floor

    def _sums(self, start: datetime, end: datetime) -> Costs:
        asked = Spend.of(self._store, self._rules, start, end)
        rows = self._store.read(asked.sql(COSTS_SQL), **asked.params).to_pylist()
        return {tuple(row[name] for name in LABELS): row["cost"] for row in rows}

    def collector(self) -> CostCollector:
        """The sums as a metric family; none before the first reading."""
        return CostCollector(self._counted)


def _plus(one: Costs, other: Costs) -> Costs:
    zero = Decimal(0)
    return {key: one.get(key, zero) + other.get(key, zero) for key in one.keys() | other.keys()}


def _growth(counted: Costs, truth: Costs) -> Costs:
    """What is to be added: per engine and currency its growth, to the series that fell behind."""
    missing = _plus(truth, {key: -cost for key, cost in counted.items()})
    left: dict[Key, Decimal] = {}
    for key, cost in missing.items():
        whose = key[0], key[-1]
        left[whose] = left.get(whose, Decimal(0)) + cost
    added: Costs = {}
    for key, cost in sorted(missing.items(), key=lambda one: (-one[1], one[0])):
        whose = key[0], key[-1]
        part = min(cost, left[whose])
        if part > 0:
            added[key] = part
            left[whose] -= part
    return added


class CostCollector(Collector):
    """One reading."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs

    def collect(self) -> Iterator[Metric]:
        """The family, in a fixed order."""
        family = CounterMetricFamily(
            "lakehouse_cost", "Cost of settled hours, in the currency named.", labels=LABELS
        )
        for key, cost in sorted(self._costs.items()):
            family.add_metric(key, float(cost))
        yield family

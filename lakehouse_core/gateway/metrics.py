"""Metrics in Prometheus text: one prefix, base units, no label that grows without bound."""

from __future__ import annotations

import platform
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client import Metric

    from lakehouse_core.gateway.facts import Facts


class Steady:
    """Makes counters of counts that shrink when the store drops old rows.

    A counter that falls looks like a restart to Prometheus, which then counts everything again.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}
        self._dropped: dict[tuple[str, str], int] = {}

    def update(self, counts: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
        """The counts as if nothing had ever been dropped since this process started."""
        for key in self._last.keys() | counts.keys():
            now = counts.get(key, 0)
            fallen = self._last.get(key, 0) - now
            if fallen > 0:
                self._dropped[key] = self._dropped.get(key, 0) + fallen
            self._last[key] = now
        return {key: now + self._dropped.get(key, 0) for key, now in self._last.items()}


class FactsCollector(Collector):
    """One reading of the store as metric families."""

    def __init__(
        self,
        facts: Facts,
        queries: Mapping[tuple[str, str], int],
        ingested: Mapping[tuple[str, str], int],
    ) -> None:
        self._facts = facts
        self._queries = queries
        self._ingested = ingested

    def collect(self) -> Iterator[Metric]:
        """The families, in a fixed order."""
        facts = self._facts
        yield InfoMetricFamily(
            "lakehouse_build",
            "Version of Lakehelm and of Python.",
            {"version": version("lakehelm"), "python": platform.python_version()},
        )
        yield GaugeMetricFamily(
            "lakehouse_store_up", "1 when the telemetry store answers.", float(facts.store_up)
        )
        up = GaugeMetricFamily(
            "lakehouse_engine_up", "1 when the last probe found it healthy.", labels=["engine"]
        )
        age = GaugeMetricFamily(
            "lakehouse_engine_probe_age_seconds", "Age of the last probe.", labels=["engine"]
        )
        for engine, at in facts.probed_at.items():
            up.add_metric([engine], float(facts.is_healthy(engine)))
            age.add_metric([engine], (facts.read_at - at).total_seconds())
        yield up
        yield age
        queries = CounterMetricFamily(
            "lakehouse_queries", "Queries that have ended.", labels=["engine", "status"]
        )
        for (engine, status), count in sorted(self._queries.items()):
            queries.add_metric([engine, status], count)
        yield queries
        ingested = CounterMetricFamily(
            "lakehouse_ingest_events",
            "What was pushed to this process, by what became of it.",
            labels=["source", "outcome"],
        )
        for (source, outcome), count in sorted(self._ingested.items()):
            ingested.add_metric([source, outcome], count)
        yield ingested
        lag = GaugeMetricFamily(
            "lakehouse_collector_lag_seconds",
            "Time since the start of the last run that succeeded.",
            labels=["collector"],
        )
        for collector, at in facts.collected_at.items():
            lag.add_metric([collector], (facts.read_at - at).total_seconds())
        yield lag
        yield from _regret(facts)


def _regret(facts: Facts) -> Iterator[Metric]:
    regret = GaugeMetricFamily(
        "lakehouse_routing_regret_ratio",
        "Spent above a baseline in the last 7 days, as a ratio of it; measured templates only.",
        labels=["measure", "baseline"],
    )
    for (measure, baseline), ratio in facts.regret.items():
        regret.add_metric([measure, baseline], ratio)
    yield regret
    evidence = GaugeMetricFamily(
        "lakehouse_routing_evidence_ratio",
        "Share of the reads of the last 7 days that at least two engines have measured.",
        labels=["measure"],
    )
    for measure, share in facts.evidence.items():
        evidence.add_metric([measure], share)
    yield evidence


def render(
    facts: Facts,
    steady: Steady,
    accept: str,
    ingested: Mapping[tuple[str, str], int] = MappingProxyType({}),
    more: Sequence[Collector] = (),
) -> tuple[bytes, str]:
    """The metrics in the format the scraper asked for, and its content type."""
    # Without the store there are no counts: leaving them out says "unknown", zero would lie.
    queries = steady.update(facts.queries) if facts.store_up else {}
    registry = CollectorRegistry(auto_describe=False)
    for collector in (FactsCollector(facts, queries, ingested), *more):
        registry.register(collector)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type

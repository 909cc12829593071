"""Which jobs a configuration asks for, wired to the store and the outside world."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from agents import collect, health, probe, retention
from agents.runs import Result, record_run
from agents.scheduler import ScheduledJob
from collectors.registry import build_source, collect_settings, source_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.probe import EnginePool
    from collectors.base import Source
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.agent import AgentRun
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore


@dataclass(slots=True)
class Workshop:
    """What the jobs of one process share."""

    config: Config
    store: OwnerStore
    clock: Clock
    engines: EnginePool
    is_stopping: Callable[[], bool]
    _sources: dict[str, Source] = field(default_factory=dict)

    def source(self, name: str) -> Source:
        """A source, built when first needed and kept for what it remembers."""
        if name not in self._sources:
            self._sources[name] = build_source(name, self.config, self.store, self.clock)
        return self._sources[name]

    def close(self) -> None:
        """Release engines and sources."""
        self.engines.close()
        for source in self._sources.values():
            close = getattr(source, "close", None)  # files have nothing to release
            if close is not None:
                close()


def scheduled_jobs(shop: Workshop) -> list[ScheduledJob]:
    """One job per source, and the jobs that always run."""
    config, store, clock = shop.config, shop.store, shop.clock
    own = config.agents
    collecting = [
        ScheduledJob(
            name=f"collect:{name}",
            every=collect_settings(config, name).every,
            run=_recorded(shop, f"collect:{name}", partial(_collect, shop, name)),
        )
        for name in source_names(config)
    ]
    return [
        *collecting,
        ScheduledJob(
            name="probe",
            every=own.probe_every,
            run=_recorded(shop, "probe", lambda: probe.run_once(shop.engines, store, clock)),
        ),
        ScheduledJob(
            name="health",
            every=own.health_every,
            run=_recorded(shop, "health", lambda: health.run_once(store, config.health, clock)),
        ),
        ScheduledJob(
            name="retention",
            every=own.retention_every,
            run=_recorded(shop, "retention", lambda: retention.run_once(store, config, clock)),
        ),
    ]


def _recorded(shop: Workshop, agent: str, work: Callable[[], Result]) -> Callable[[], AgentRun]:
    return lambda: record_run(shop.store, shop.clock, agent, work)


def _collect(shop: Workshop, name: str) -> Result:
    report = collect.run_once(
        shop.source(name),
        shop.store,
        shop.clock,
        timeout=collect_settings(shop.config, name).timeout,
        is_stopping=shop.is_stopping,
    )
    return report.result

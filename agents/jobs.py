"""Which jobs a configuration asks for, wired to the store and the outside world."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from agents import (
    backup,
    budgets,
    collect,
    costs,
    finops,
    health,
    layout,
    learn,
    maintain,
    pipeline,
    probe,
    recommend,
    retention,
    rollup,
    route,
)
from agents.runs import Ended, Result, run_job
from agents.scheduler import ScheduledJob
from agents.watch import Lease, Watch
from collectors.registry import build_source, collect_settings, source_names
from lakehouse_core.views.freshness import (
    COSTS_EVERY,
    ROUTE_EVERY,
    SAVINGS_EVERY,
    look_for_backup_every,
)
from lakehouse_core.views.hourly import ROLLUP_EVERY

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.probe import EnginePool
    from agents.progress import ProgressBoard
    from collectors.base import Source
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

GRACE = timedelta(seconds=30)
LIMIT = timedelta(minutes=10)  # of jobs that work on our own store
BACKUP_LIMIT = timedelta(hours=1)  # all of a large store is copied


@dataclass(slots=True)
class Workshop:
    """What the jobs of one process share."""

    config: Config
    store: OwnerStore
    clock: Clock
    engines: EnginePool
    is_stopping: Callable[[], bool]
    progress: ProgressBoard
    _sources: dict[str, Source] = field(default_factory=dict)

    def source(self, name: str) -> Source:
        """A source, built when first needed and kept for what it remembers."""
        if name not in self._sources:
            self._sources[name] = build_source(name, self.config, self.store, self.clock)
        return self._sources[name]

    def forget_source(self, name: str) -> None:
        """Let the next run build the source anew: a run that hangs has this one in its hands."""
        self._sources.pop(name, None)

    def close(self) -> None:
        """Release engines and sources."""
        self.engines.close()
        for source in self._sources.values():
            release(source)


def release(source: Source) -> None:
    """Close a source, if it has something to close."""
    close = getattr(source, "close", None)  # files have nothing to release
    if close is not None:
        close()


def watched_job(
    shop: Workshop,
    name: str,
    every: timedelta,
    limit: timedelta,
    work: Callable[[Lease], Result],
    on_abandon: Callable[[], None] = lambda: None,
) -> ScheduledJob:
    """A job whose runs are recorded, and given up when they take longer than the limit."""
    watch = Watch(name, limit, on_abandon=on_abandon)

    def run() -> Ended:
        return run_job(shop.store, shop.clock, name, lambda: watch.call(work))

    return ScheduledJob(
        name=name,
        every=every,
        run=run,
        abandoned=lambda: watch.abandoned,
        open_after=shop.config.agents.circuit_opens_after,
    )


def scheduled_jobs(shop: Workshop) -> list[ScheduledJob]:
    """One job per source, and the jobs that always run."""
    config, store, clock = shop.config, shop.store, shop.clock
    own = config.agents
    sums = rollup.Rollup(store, clock)
    return [
        *(_collect_job(shop, name) for name in source_names(config)),
        watched_job(
            shop,
            "probe",
            own.probe_every,
            LIMIT,
            lambda _: probe.run_once(shop.engines, store, clock),
        ),
        watched_job(
            shop,
            "health",
            own.health_every,
            LIMIT,
            lambda _: health.run_once(store, config.health, clock),
        ),
        watched_job(shop, "rollup", ROLLUP_EVERY, LIMIT, lambda _: sums.run_once()),
        watched_job(
            shop,
            "retention",
            own.retention_every,
            LIMIT,
            lambda _: retention.run_once(store, config, clock),
        ),
        watched_job(
            shop,
            "backup",
            look_for_backup_every(config),
            BACKUP_LIMIT,
            lambda _: backup.run_once(store, config, clock),
        ),
        *_spend_jobs(shop),
        watched_job(
            shop, "route", ROUTE_EVERY, LIMIT, lambda _: route.run_once(store, config, clock)
        ),
        watched_job(
            shop, "learn", own.learn_every, LIMIT, lambda _: learn.run_once(store, config, clock)
        ),
        *([_pipeline_job(shop)] if config.pipeline.enabled else ()),
        *(_maintenance_jobs(shop) if config.maintenance.enabled else ()),
        *([_layout_job(shop)] if config.maintenance.enabled and config.layout.enabled else ()),
    ]


def _spend_jobs(shop: Workshop) -> list[ScheduledJob]:
    days = costs.DayCosts(shop.store, shop.clock)

    def split(lease: Lease) -> Result:
        return finops.run_once(shop.store, shop.config, shop.clock, lease)

    return [
        watched_job(shop, "finops", COSTS_EVERY, LIMIT, split),
        watched_job(shop, "costs", COSTS_EVERY, LIMIT, lambda _: days.run_once()),
        watched_job(
            shop,
            "budgets",
            shop.config.finops.every,
            LIMIT,
            lambda _: budgets.run_once(shop.store, shop.config, shop.clock),
        ),
    ]


def _maintenance_jobs(shop: Workshop) -> list[ScheduledJob]:
    settings = shop.config.maintenance
    worker = maintain.Maintain(shop.store, shop.config, shop.clock, shop.is_stopping)
    ledger = maintain.Savings(shop.store, shop.config, shop.clock)
    report = shop.progress.reporter("maintain", "steps")

    def work(lease: Lease) -> Result:
        lease.on_progress = report
        return worker.run_once(lease)

    # The run ends its Spark job itself when the time is up; this is for one that cannot.
    limit = settings.timeout + LIMIT
    return [
        _recommend_job(shop),
        watched_job(shop, "maintain", settings.every, limit, work, worker.forget),
        watched_job(shop, "savings", SAVINGS_EVERY, LIMIT, lambda _: ledger.run_once()),
    ]


def _recommend_job(shop: Workshop) -> ScheduledJob:
    return watched_job(
        shop,
        "recommend",
        shop.config.maintenance.recommend_every,
        LIMIT,
        lambda _: recommend.run_once(shop.store, shop.config, shop.clock),
    )


def _layout_job(shop: Workshop) -> ScheduledJob:
    settings = shop.config.layout

    def work(lease: Lease) -> Result:
        return layout.run_once(shop.store, shop.config, shop.clock, lease, shop.is_stopping)

    limit = settings.tables_per_run * settings.timeout + LIMIT
    return watched_job(shop, "layout", settings.every, limit, work)


def _pipeline_job(shop: Workshop) -> ScheduledJob:
    settings = shop.config.pipeline
    report = shop.progress.reporter("pipeline", "stages")

    def work(lease: Lease) -> Result:
        lease.on_progress = report
        return pipeline.run_once(shop.store, shop.config, shop.clock, lease, shop.is_stopping)

    # The run ends its Spark job itself when the time is up; this is for one that cannot.
    return watched_job(shop, "pipeline", settings.every, settings.timeout + LIMIT, work)


def _collect_job(shop: Workshop, name: str) -> ScheduledJob:
    settings = collect_settings(shop.config, name)
    agent = f"collect:{name}"
    report = shop.progress.reporter(agent, "rows")

    def work(lease: Lease) -> Result:
        source = shop.source(name)
        lease.on_progress = report
        found = collect.run_once(
            source,
            shop.store,
            shop.clock,
            timeout=settings.timeout,
            is_stopping=shop.is_stopping,
            lease=lease,
        )
        if lease.is_lost:
            release(source)
        return found.result

    # A pull ends itself between two batches when its time is up; this is for one that cannot.
    limit = settings.timeout + min(settings.timeout, GRACE)
    return watched_job(shop, agent, settings.every, limit, work, lambda: shop.forget_source(name))

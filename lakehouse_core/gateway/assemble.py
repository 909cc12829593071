"""From the configuration to a SQL port: engines, router, service, front end."""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lakehouse_core.catalog import open_catalog
from lakehouse_core.catalog.estimate_live import LakeBounds
from lakehouse_core.config.models import HistoryOnlyEngine, TrinoEngine
from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.registry import open_engine
from lakehouse_core.gateway.auth import Authenticator, read_users, token_check
from lakehouse_core.gateway.keeping import NewsOnly, SpoolKeeper
from lakehouse_core.gateway.learning import make_learning
from lakehouse_core.gateway.record import SpoolRecorder, uptime_chain_id
from lakehouse_core.gateway.routing import RouteDesk
from lakehouse_core.gateway.service import QueryService, ServiceLimits
from lakehouse_core.gateway.shadow import ShadowingRecorder, ShadowRuns
from lakehouse_core.gateway.sqlport import SqlParts, SqlPort
from lakehouse_core.gateway.trino.metadata import Metadata
from lakehouse_core.gateway.upkeep import Job
from lakehouse_core.gateway.upstream import Target, Upstream
from lakehouse_core.governance.guard import make_guard
from lakehouse_core.governance.relations import LakeRelations
from lakehouse_core.routing.build import make_plan, make_ports, remake_plan, routing_of
from lakehouse_core.routing.features_scan import LakeScanEstimator
from lakehouse_core.routing.lifecycle import StoreFleet
from lakehouse_core.routing.router import Router
from lakehouse_core.routing.trials import TrialBook
from lakehouse_core.store.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from decimal import Decimal

    from lakehouse_core.config.gateway import SqlConfig
    from lakehouse_core.config.models import Config, EngineConfig
    from lakehouse_core.gateway.flight import Flight
    from lakehouse_core.gateway.record import Understand
    from lakehouse_core.routing.request import ScanEstimator
    from lakehouse_core.store.port import TelemetryStore

BOUNDS_SECONDS = 5.0
# Tables whose rows come along with every event of a template.
BY_TEMPLATE = ("query_template", "template_table", "column_usage", "column_literal")


def assemble(
    config: Config,
    store: TelemetryStore,
    understand: Understand,
    reread: Callable[[], Config] | None = None,
) -> SqlPort:
    """Put the port together; nothing listens and nothing is asked yet.

    Args:
        config: the configuration.
        store: where the engines' states are.
        understand: what the collectors make of query events.
        reread: the configuration as it stands now, for a reload of the rules.

    Raises:
        ConfigError: routing, users, tokens or an engine are configured wrongly.
    """
    usable = _usable(config)
    engines = {name: open_engine(name, config) for name in usable}
    fleet = StoreFleet(config.agents.probe_every)
    guard = make_guard(config)
    catalogs = {name: open_catalog(name, catalog) for name, catalog in config.catalogs.items()}
    lake = LakeRelations(catalogs)
    bounds = LakeBounds(catalogs, config.home / "cache" / "iceberg")
    estimator = LakeScanEstimator(bounds.memory)
    learning = make_learning(config, store, estimator)
    ports = make_ports(
        config, fleet, guard=guard, estimator=estimator, predictor=learning.predictor
    )
    trials = TrialBook()
    router = Router(make_plan(config), replace(ports, trials=trials))

    def refresh() -> bool:
        lake.tell(guard)
        trials.refresh(store)
        return fleet.refresh(store)

    recorder = _recorder(config, understand, estimator)
    sql = config.gateway.sql
    noted = ShadowingRecorder(learning.recorder(recorder))
    service = QueryService(router, engines, noted, _limits(sql, usable))
    noted.shadows = shadows = ShadowRuns(router, service, learning.book, learning.price_of)
    return SqlPort(
        sql,
        SqlParts(
            service=service,
            recorder=recorder,
            engines=engines,
            upstreams={
                name: _upstream(engine)
                for name, engine in usable.items()
                if isinstance(engine, TrinoEngine)
            },
            metadata=Metadata(catalogs),
            catalogs=catalogs,
            auth=authenticator(sql),
            refresh=refresh,
            refreshed=router.fleet_changed,
            refresh_seconds=min(5.0, config.agents.probe_every.total_seconds()),
            endpoints=ways_in(config),
            desk=RouteDesk(
                router,
                lambda: remake_plan(config, reread() if reread is not None else config),
                estimator,
                config.prices.tb_scanned,
            ),
            shadows=shadows.counts,
            upkeep=(Job("file bounds", bounds.refresh, BOUNDS_SECONDS), *learning.jobs),
            close=bounds.close,
        ),
    )


def _recorder(config: Config, understand: Understand, estimator: ScanEstimator) -> SpoolRecorder:
    keep = NewsOnly(SpoolKeeper(Spool(config.store.spool)), BY_TEMPLATE)
    complete = partial(complete_estimate, estimator, config.prices.tb_scanned)
    return SpoolRecorder(understand, keep, uptime_chain_id(os.getpid()), complete)


def _usable(config: Config) -> dict[EngineId, EngineConfig]:
    return {
        EngineId(name): engine
        for name, engine in config.engines.items()
        if engine.enabled and not isinstance(engine, HistoryOnlyEngine)
    }


def _limits(sql: SqlConfig, usable: Mapping[EngineId, EngineConfig]) -> ServiceLimits:
    return ServiceLimits(
        buffer_bytes=sql.buffer_bytes,
        batch_bytes=sql.page_bytes,
        threads=sum(engine.max_running for engine in usable.values()) + 8,
    )


def complete_estimate(
    estimator: ScanEstimator, per_terabyte_usd: Mapping[str, Decimal], flight: Flight
) -> None:
    """Say what a statement was to read where its strategy did not ask for it."""
    decision = flight.decision
    if decision is None or decision.estimate is not None or not decision.facts.tables:
        return
    found = estimator.estimate(flight.request, decision.facts)
    price = per_terabyte_usd.get(decision.engine_id or "")
    flight.decision = replace(decision, estimate=found.priced(price))


def authenticator(sql: SqlConfig) -> Authenticator:
    """What asks clients who they are.

    Raises:
        ConfigError: the users file or the key cannot be read.
    """
    users = read_users(sql.users) if sql.users is not None else None
    check = token_check(sql.jwt, resolve_secret(sql.jwt.key)) if sql.jwt is not None else None
    return Authenticator(users, check)


def ways_in(config: Config) -> dict[str | int, str]:
    """Names of endpoints by the path and the port they have of their own."""
    routing, _ = routing_of(config)
    return {
        way: name
        for name, endpoint in routing.endpoints.items()
        for way in (endpoint.path, endpoint.port)
        if way is not None
    }


def _upstream(engine: TrinoEngine) -> Upstream:
    authorization = None
    if engine.password is not None:
        pair = f"{engine.user}:{resolve_secret(engine.password)}".encode()
        authorization = f"Basic {base64.b64encode(pair).decode()}"
    tls = ssl.create_default_context() if engine.scheme == "https" else None
    return Upstream(
        Target(host=engine.host, port=engine.port, tls=tls, authorization=authorization)
    )

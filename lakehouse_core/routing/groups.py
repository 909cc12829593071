"""Groups, members and endpoints as the router works with them, made from the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakehouse_core.config.models import HistoryOnlyEngine
from lakehouse_core.config.routing import (
    AuthorizationConfig,
    BreakerConfig,
    GroupConfig,
    PlainStrategy,
    ShadowConfig,
)
from lakehouse_core.domain.query import EngineId
from lakehouse_core.routing.request import Terms
from lakehouse_core.routing.strategies import Predicted, Strategy, make_strategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lakehouse_core.config.models import EngineConfig
    from lakehouse_core.config.routing import (
        ClusterConfig,
        EndpointConfig,
        PredictionConfig,
        RoutingConfig,
        StrategyConfig,
    )
    from lakehouse_core.domain.engine import EngineCapabilities
    from lakehouse_core.routing.request import Request

DEFAULT_GROUP = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An engine as a group knows it.

    Attributes:
        name: QueryFlux's cluster name, or the engine's own id.
        engine_id: the engine behind it.
        catalog: the catalog whose tables it reads.
        limit: statements at a time over all groups; None: no limit.
        unusable: why nothing can be sent to it at all; empty when something can.
    """

    name: str
    engine_id: EngineId
    engine_type: str
    dialect: str
    catalog: str | None = None
    can_write: bool = True
    limit: int | None = None
    unusable: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    """A group with its members in order.

    Attributes:
        member_limit: statements of this group at a time on each member.
        limits: the same by member, its own limit counted in.
        total_limit: over all members; None: no limit.
    """

    name: str
    members: tuple[Member, ...]
    strategy: Strategy
    strategy_name: str
    limits: Mapping[str, int | None] = field(init=False)
    total_limit: int | None = field(init=False)
    is_enabled: bool = True
    member_limit: int | None = None
    queue_limit: int | None = None
    wait_seconds: float = 300
    priority: int = 0
    fallback: str | None = None
    authorization: AuthorizationConfig = field(default_factory=AuthorizationConfig)
    default_tags: Mapping[str, str | None] = field(default_factory=dict)
    breaker: BreakerConfig = field(default_factory=BreakerConfig)
    shadow: ShadowConfig = field(default_factory=ShadowConfig)

    def __post_init__(self) -> None:
        """Work out the limits once: every decision asks for them."""
        self.limits = {m.name: _least(m.limit, self.member_limit) for m in self.members}
        known = [limit for limit in self.limits.values() if limit is not None]
        self.total_limit = sum(known) if len(known) == len(self.members) else None

    @property
    def is_predicted(self) -> bool:
        """Whether its strategy chooses by the past."""
        return isinstance(self.strategy, Predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A named way in."""

    name: str
    settings: EndpointConfig
    group: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All groups and endpoints of a configuration."""

    groups: Mapping[str, Group]
    endpoints: Mapping[str, Endpoint]
    fallback: str | None
    catalogs: frozenset[str]


def is_allowed(authorization: AuthorizationConfig, request: Request) -> bool:
    """Whether a group or endpoint takes this user."""
    users, groups = authorization.allowUsers, authorization.allowGroups
    if not users and not groups:
        return True
    return request.user in users or any(group in groups for group in request.groups)


def lay_out(
    routing: RoutingConfig,
    engines: Mapping[str, EngineConfig],
    capabilities: Mapping[str, EngineCapabilities],
    catalogs: Iterable[str] = (),
) -> Layout:
    """Make the groups ready; without any configured, every engine is one.

    Raises:
        ConfigError: a strategy's script is wrong.
    """
    members = {member.name: member for member in _members(routing, engines, capabilities)}
    configured = routing.clusterGroups or _groups_of(engines)
    fallback = routing.routingFallback or (None if routing.clusterGroups else DEFAULT_GROUP)
    groups = {
        name: _group(name, group, members, f"routing.clusterGroups.{name}")
        for name, group in configured.items()
    }
    endpoints = {}
    for name, endpoint in routing.endpoints.items():
        target = endpoint.group
        if endpoint.pool:
            target = f"endpoint:{name}"
            pool = GroupConfig(members=endpoint.pool, strategy=endpoint.strategy)
            groups[target] = _group(target, pool, members, f"routing.endpoints.{name}")
        endpoints[name] = Endpoint(name=name, settings=endpoint, group=target)
    return Layout(
        groups=groups, endpoints=endpoints, fallback=fallback, catalogs=frozenset(catalogs)
    )


def _groups_of(engines: Mapping[str, EngineConfig]) -> dict[str, GroupConfig]:
    """One group for each engine that takes statements, and one of all of them."""
    usable = tuple(
        name
        for name, engine in engines.items()
        if engine.enabled and not isinstance(engine, HistoryOnlyEngine)
    )
    groups = {name: GroupConfig(members=(name,)) for name in usable}
    if usable:
        best = PlainStrategy(type="latencyOptimized")
        groups[DEFAULT_GROUP] = GroupConfig(members=usable, strategy=best)
    return groups


def _group(name: str, group: GroupConfig, members: Mapping[str, Member], where: str) -> Group:
    names = (*group.members, *(cluster.name for cluster in group.clusters))
    own = tuple(members[member] for member in names if member in members)
    return Group(
        name=name,
        members=own,
        strategy=make_strategy(
            group.strategy, tuple(names), f"{where}.strategy", _terms(name, group.prediction)
        ),
        strategy_name=_strategy_name(group.strategy),
        is_enabled=group.enabled,
        member_limit=group.maxRunningQueries,
        queue_limit=group.maxQueuedQueries,
        wait_seconds=group.wait_seconds,
        priority=group.priority,
        fallback=group.fallbackGroup,
        authorization=group.authorization,
        default_tags=group.defaultTags,
        breaker=group.circuitBreaker,
        shadow=group.shadow,
    )


def _terms(name: str, prediction: PredictionConfig) -> Terms:
    return Terms(
        group=name,
        latency_seconds=prediction.latencyBoundSecs,
        explore_share=prediction.exploreShare,
        explore_budget=prediction.exploreBudget,
    )


def _strategy_name(strategy: StrategyConfig | None) -> str:
    return "roundRobin" if strategy is None else strategy.type


def _members(
    routing: RoutingConfig,
    engines: Mapping[str, EngineConfig],
    capabilities: Mapping[str, EngineCapabilities],
) -> Iterator[Member]:
    for name, engine in engines.items():
        yield _of_engine(name, name, engine, capabilities)
    for name, cluster in _clusters(routing):
        engine_id = _engine_of(name, cluster, engines)
        if engine_id is None:
            kind = cluster.engine_type or "unknown"
            yield Member(
                name=name,
                engine_id=EngineId(name),
                engine_type=kind,
                dialect=kind,
                limit=cluster.maxRunningQueries,
                unusable="no engine of its name or address is configured under `engines`",
            )
            continue
        member = _of_engine(name, engine_id, engines[engine_id], capabilities)
        if not cluster.enabled:
            member = replace(member, unusable="it is switched off (enabled: false)")
        yield replace(member, limit=_least(member.limit, cluster.maxRunningQueries))


def _of_engine(
    name: str,
    engine_id: str,
    engine: EngineConfig,
    capabilities: Mapping[str, EngineCapabilities],
) -> Member:
    can = capabilities.get(engine_id)
    unusable = "" if engine.enabled else f"it is switched off (engines.{engine_id}.enabled: false)"
    if isinstance(engine, HistoryOnlyEngine):
        unusable = "its history is read, nothing is sent to it"
    return Member(
        name=name,
        engine_id=EngineId(engine_id),
        engine_type=engine.type,
        dialect=engine.type if can is None else can.dialect,
        catalog=engine.catalog,
        can_write=can is None or can.can_write,
        limit=engine.max_running,
        unusable=unusable,
    )


def _clusters(routing: RoutingConfig) -> Iterator[tuple[str, ClusterConfig]]:
    for name, cluster in routing.clusters.items():
        for variant in cluster.variants:
            limit = variant.maxRunningQueries or variant.overrides.get("maxRunningQueries")
            changed = {"maxRunningQueries": limit or cluster.maxRunningQueries}
            yield f"{name}::{variant.name}", cluster.model_copy(update=changed)
        if not cluster.variants:
            yield name, cluster
    for group in routing.clusterGroups.values():
        for inner in group.clusters:
            kind = inner.engine or group.engine
            yield inner.name, inner.model_copy(update={"engine": kind})


def _engine_of(
    name: str, cluster: ClusterConfig, engines: Mapping[str, EngineConfig]
) -> str | None:
    if cluster.engineId is not None:
        return cluster.engineId
    if name in engines:
        return name
    alike = [key for key, engine in engines.items() if engine.type == cluster.engine_type]
    address = (cluster.endpoint or "").rstrip("/")
    if not address:  # an embedded engine has none; then the type tells, if it can
        return alike[0] if len(alike) == 1 else None
    return next((key for key in alike if engines[key].url == address), None)


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)

"""What in the routing refers to what: members, groups, fallbacks; each problem with its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config import routing as shape
from lakehouse_core.config.problems import Finding, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from lakehouse_core.config.problems import KeyPath
    from lakehouse_core.config.routing import RoutingConfig


def check_routing(routing: RoutingConfig, engines: Collection[str]) -> Iterator[Finding]:
    """Everything that does not fit; paths are below the `routing` section."""
    members = {*engines, *cluster_names(routing)}
    groups = set(routing.clusterGroups)
    yield from _clusters(routing, engines)
    yield from _groups(routing, members, groups)
    yield from check_targets(routing)
    yield from _endpoints(routing, members, groups)


def check_targets(routing: RoutingConfig) -> Iterator[Finding]:
    """Routers, and the fallback, that lead to groups nobody defined."""
    groups = set(routing.clusterGroups)
    for path, target in _targets(routing):
        yield from _known(path, target, groups, "group")
    if groups and routing.routingFallback:
        yield from _known(("routingFallback",), routing.routingFallback, groups, "group")


def cluster_names(routing: RoutingConfig) -> Iterator[str]:
    """The names members may have, beside those of engines."""
    for name, cluster in routing.clusters.items():
        if cluster.variants:
            yield from (f"{name}::{variant.name}" for variant in cluster.variants)
        else:
            yield name
    for group in routing.clusterGroups.values():
        yield from (cluster.name for cluster in group.clusters)


def _clusters(routing: RoutingConfig, engines: Collection[str]) -> Iterator[Finding]:
    for name, cluster in routing.clusters.items():
        if cluster.engineId is not None:
            yield from _known(
                ("clusters", name, "engineId"), cluster.engineId, set(engines), "engine"
            )


def _groups(routing: RoutingConfig, members: set[str], groups: set[str]) -> Iterator[Finding]:
    for name, group in routing.clusterGroups.items():
        at: KeyPath = ("clusterGroups", name)
        for index, member in enumerate(group.members):
            yield from _known((*at, "members", index), member, members, "cluster or engine")
        own = {*group.members, *(cluster.name for cluster in group.clusters)}
        if isinstance(group.strategy, shape.WeightedStrategy):
            for member in group.strategy.weights:
                yield from _known((*at, "strategy", "weights", member), member, own, "member")
        if group.fallbackGroup is not None:
            yield from _known((*at, "fallbackGroup"), group.fallbackGroup, groups, "group")
    yield from _circles(routing)


def _circles(routing: RoutingConfig) -> Iterator[Finding]:
    after = {
        name: group.fallbackGroup
        for name, group in routing.clusterGroups.items()
        if group.fallbackGroup is not None
    }
    for name in after:
        if _returns(name, after):
            yield Finding(
                path=("clusterGroups", name, "fallbackGroup"),
                message="leads back to the group itself; a statement would go in circles",
            )


def _returns(start: str, after: Mapping[str, str]) -> bool:
    seen, name = {start}, after.get(start)
    while name is not None and name not in seen:
        seen.add(name)
        name = after.get(name)
    return name == start


def _targets(routing: RoutingConfig) -> Iterator[tuple[KeyPath, str]]:
    for index, router in enumerate(routing.routers):
        at: KeyPath = ("routers", index)
        match router:
            case shape.ProtocolRouter():
                named = {name: getattr(router, name) for name in shape.PROTOCOLS}
                yield from _of_mapping(at, {k: v for k, v in named.items() if v is not None})
            case shape.HeaderRouter():
                yield from _of_mapping((*at, "headerValueToGroup"), router.headerValueToGroup)
            case shape.UserRouter():
                yield from _of_mapping((*at, "userToGroup"), router.userToGroup)
            case shape.HeaderRulesRouter() | shape.RegexRouter() | shape.TagsRouter():
                yield from _of_rules((*at, "rules"), router.rules)
            case shape.CompoundRouter():
                if router.targetGroup is not None:
                    yield (*at, "targetGroup"), router.targetGroup
            case shape.ScriptRouter() | shape.TrinoGatewayRouter():
                pass  # what they answer is known when they answer


def _of_mapping(at: KeyPath, mapping: Mapping[str, str]) -> Iterator[tuple[KeyPath, str]]:
    yield from (((*at, key), group) for key, group in mapping.items())


def _of_rules(at: KeyPath, rules: Iterable[shape.Outcome]) -> Iterator[tuple[KeyPath, str]]:
    for index, rule in enumerate(rules):
        if rule.targetGroup is not None:
            yield (*at, index, "targetGroup"), rule.targetGroup


def _endpoints(routing: RoutingConfig, members: set[str], groups: set[str]) -> Iterator[Finding]:
    places: dict[str | int, str] = {}
    for name, endpoint in routing.endpoints.items():
        at: KeyPath = ("endpoints", name)
        for index, member in enumerate(endpoint.pool):
            yield from _known((*at, "pool", index), member, members, "cluster or engine")
        if endpoint.group is not None and groups:
            yield from _known((*at, "group"), endpoint.group, groups, "group")
        if endpoint.fallbackGroup is not None and groups:
            yield from _known((*at, "fallbackGroup"), endpoint.fallbackGroup, groups, "group")
        for key in ("path", "port"):
            place = getattr(endpoint, key)
            if place is not None and places.setdefault(place, name) != name:
                yield Finding(path=(*at, key), message=f"is that of endpoint {places[place]} too")


def _known(path: KeyPath, word: str, known: set[str], what: str) -> Iterator[Finding]:
    if word not in known:
        yield Finding(
            path=path,
            message=f"no such {what}",
            allowed=", ".join(sorted(known)) or "none is defined",
            nearest=nearest(word, known),
        )

"""The routers, made ready once: each answers with a group, a refusal, or nothing.

They are asked in order; the first that answers decides, as in QueryFlux.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse_core.config import routing as shape
from lakehouse_core.routing.request import Step
from lakehouse_core.routing.scripts import load_function
from lakehouse_core.routing.tags import tags_of
from lakehouse_core.routing.trino_gateway import read_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lakehouse_core.routing.request import Request, StatementFacts

REFUSED = "Query denied by routing rule"


@dataclass(frozen=True, slots=True)
class Hit:
    """A router's answer.

    Attributes:
        group: where the statement goes; None: it is refused.
        detail: which of the router's rules answered.
        message: what a refused client reads.
    """

    group: str | None
    detail: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A router that could not answer; the next one is asked."""

    detail: str


Ask = Callable[["Request", "StatementFacts"], "Hit | Failure | None"]
_Test = Callable[["Request"], bool]


@dataclass(slots=True)
class Rule:
    """One router of the configuration.

    Attributes:
        name: its place and type: `routers[2] queryRegex`.
        ask: its answer to a request.
        missed: what the trace says when it has none.
        says: what the configuration says of it.
        hits: how often it decided.
    """

    name: str
    ask: Ask
    missed: Step
    says: Mapping[str, Any]
    hits: int = 0


def compile_rules(routers: Iterable[shape.RouterConfig]) -> tuple[Rule, ...]:
    """Make the routers ready.

    Raises:
        ConfigError: a script or a rule file is wrong; says which, where and why.
    """
    rules = []
    for index, router in enumerate(routers):
        name = f"routers[{index}] {router.type}"
        missed = Step("rule", name, "no match")
        make = _MAKERS[type(router)]
        says = router.model_dump(mode="json", exclude_none=True, exclude={"type"})
        rules.append(Rule(name, make(router, f"routing.routers[{index}]"), missed, says))
    return tuple(rules)


# --- the types -----------------------------------------------------------------------------------


def _by_protocol(router: shape.ProtocolRouter, _: str) -> Ask:
    named = {name: getattr(router, name) for name in shape.PROTOCOLS}
    hits = {name: Hit(group, name) for name, group in named.items() if group is not None}
    return lambda request, _: hits.get(request.protocol)


def _by_header(router: shape.HeaderRouter, _: str) -> Ask:
    name = router.headerName.lower()
    hits = {
        value: Hit(group, f"{router.headerName}: {value}")
        for value, group in router.headerValueToGroup.items()
    }
    return lambda request, _: hits.get(request.headers.get(name, ""))


def _by_headers(router: shape.HeaderRulesRouter, _: str) -> Ask:
    return _first(
        (_header_is(rule.header, rule.value), rule, f"{rule.header}: {rule.value}")
        for rule in router.rules
    )


def _by_regex(router: shape.RegexRouter, _: str) -> Ask:
    return _first((_found(rule.regex), rule, rule.regex) for rule in router.rules)


def _by_conditions(router: shape.CompoundRouter, _: str) -> Ask:
    return _first([(_compound(router), router, f"{router.combine} of the conditions")])


def _by_user(router: shape.UserRouter, _: str) -> Ask:
    hits = {user: Hit(group, f"user {user}") for user, group in router.userToGroup.items()}
    return lambda request, _: hits.get(request.user or "")


def _by_tags(router: shape.TagsRouter, _: str) -> Ask:
    rules = [(rule.tags, _hit(rule, _said(rule.tags))) for rule in router.rules]

    def ask(request: Request, _: StatementFacts) -> Hit | None:
        if not request.tags and not request.session:
            return None
        tags = tags_of(request)
        return next((hit for wanted, hit in rules if _has(tags, wanted)), None)

    return ask


def _by_script(router: shape.ScriptRouter, where: str) -> Ask:
    route = load_function(router, "route", where)

    def ask(request: Request, _: StatementFacts) -> Hit | Failure | None:
        try:
            group = route(request.sql, _context(request))
        except Exception as error:  # noqa: BLE001 a script may raise anything; the next router goes on
            return Failure(f"route() failed: {type(error).__name__}: {error}")
        if group is None:
            return None
        if not isinstance(group, str):
            return Failure(f"route() gave a {type(group).__name__}, not the name of a group")
        return Hit(group, "route()")

    return ask


def _context(request: Request) -> dict[str, Any]:
    """What a script is told; tokens and tags are not in it, as in QueryFlux."""
    secrets = ("authorization", "cookie", "proxy-authorization")
    extra = {name: value for name, value in request.headers.items() if name not in secrets}
    auth = None
    if request.user is not None:
        roles = [] if request.role is None else [request.role]
        auth = {"user": request.user, "groups": list(request.groups), "roles": roles}
    return {
        "protocol": request.protocol,
        "user": request.user,
        "database": request.catalog,
        "extra": extra,
        "auth": auth,
    }


def _by_trino_gateway(router: shape.TrinoGatewayRouter, _: str) -> Ask:
    rules = read_rules(router.rulesFile)

    def ask(request: Request, facts: StatementFacts) -> Hit | Failure | None:
        verdict = rules.evaluate(request, facts)
        if verdict.group is not None:
            return Hit(verdict.group, verdict.detail)
        return Failure(verdict.detail) if verdict.has_failed else None

    return ask


# --- what they are made of -----------------------------------------------------------------------


def _first(rules: Iterable[tuple[_Test, shape.Outcome, str]]) -> Ask:
    """Rules of which the first that matches answers."""
    ready = [(test, _hit(outcome, detail)) for test, outcome, detail in rules]

    def ask(request: Request, _: StatementFacts) -> Hit | None:
        for test, hit in ready:
            if test(request):
                return hit
        return None

    return ask


def _hit(outcome: shape.Outcome, detail: str) -> Hit:
    if outcome.action == "deny":
        return Hit(None, detail, outcome.error or REFUSED)
    return Hit(outcome.targetGroup, detail)


def _found(regex: str) -> _Test:
    search = re.compile(regex).search
    return lambda request: search(request.sql) is not None


def _header_is(name: str, value: str) -> _Test:
    key = name.lower()
    return lambda request: request.headers.get(key) == value


def _compound(router: shape.CompoundRouter) -> _Test:
    tests = [_test(condition) for condition in router.conditions]
    if not tests:
        return lambda _: False
    combined = all if router.combine == "all" else any
    return lambda request: combined(test(request) for test in tests)


def _test(condition: shape.Condition) -> _Test:
    match condition:
        case shape.ProtocolCondition():
            return lambda request: request.protocol == condition.protocol
        case shape.HeaderCondition():
            return _header_is(condition.headerName, condition.headerValue)
        case shape.UserCondition():
            return lambda request: request.user == condition.username
        case shape.TagCondition():
            return lambda request: condition.tag in request.tags
        case shape.RegexCondition():
            return _found(condition.regex)


def _has(tags: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> bool:
    return all(
        key in tags and (value is None or tags[key] == value) for key, value in wanted.items()
    )


def _said(tags: Mapping[str, str | None]) -> str:
    return ", ".join(key if value is None else f"{key}:{value}" for key, value in tags.items())


_MAKERS: dict[type, Callable[[Any, str], Ask]] = {
    shape.ProtocolRouter: _by_protocol,
    shape.HeaderRouter: _by_header,
    shape.HeaderRulesRouter: _by_headers,
    shape.UserRouter: _by_user,
    shape.RegexRouter: _by_regex,
    shape.TagsRouter: _by_tags,
    shape.CompoundRouter: _by_conditions,
    shape.ScriptRouter: _by_script,
    shape.TrinoGatewayRouter: _by_trino_gateway,
}

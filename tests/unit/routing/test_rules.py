"""The routers: QueryFlux's types with its semantics; the first that answers decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.routing import RoutingConfig
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.routing.request import StatementFacts, Step
from lakehouse_core.routing.rules import Failure, Hit, compile_rules
from tests.unit.routing.conftest import statement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakehouse_core.routing.router import Router

FACTS = StatementFacts("t", "select")
GROUPS = {"a": {"members": ["trino"]}, "b": {"members": ["spark"]}, "z": {"members": ["duckdb"]}}


def ask(router: dict[str, Any], **request: Any) -> str | None:
    """The group a router names; `denied: …`, `failed: …` or None."""
    (rule,) = compile_rules(RoutingConfig.model_validate({"routers": [router]}).routers)
    answer = rule.ask(statement(**request), FACTS)
    if isinstance(answer, Failure):
        return f"failed: {answer.detail}"
    if isinstance(answer, Hit) and answer.group is None:
        return f"denied: {answer.message}"
    return answer.group if answer else None


def test_a_protocol_that_is_not_mapped_goes_on() -> None:
    router = {"type": "protocolBased", "trinoHttp": "a"}
    assert ask(router) == "a"
    assert ask(router, protocol="postgresWire") is None


@pytest.mark.parametrize(
    ("headers", "group"), [({"x-target": "one"}, "a"), ({"x-target": "three"}, None), ({}, None)]
)
def test_a_header_is_compared_whole(headers: dict[str, str], group: str | None) -> None:
    router = {"type": "header", "headerName": "X-Target", "headerValueToGroup": {"one": "a"}}
    assert ask(router, headers=headers) == group


def test_headers_of_the_older_form_are_rules_in_order() -> None:
    rules = [
        {"header": "X-Kind", "value": "bi", "targetGroup": "a"},
        {"header": "X-Team", "value": "etl", "targetGroup": "b"},
    ]
    router = {"type": "headerBased", "rules": rules}
    assert ask(router, headers={"x-kind": "bi", "x-team": "etl"}) == "a"
    assert ask(router, headers={"x-kind": "no", "x-team": "etl"}) == "b"
    assert ask(router) is None


def test_a_user_has_a_group() -> None:
    router = {"type": "userGroup", "userToGroup": {"ana": "a"}}
    assert (ask(router), ask(router, user="ben"), ask(router, user=None)) == ("a", None, None)


def test_the_first_regex_found_anywhere_in_the_text_decides() -> None:
    rules = [
        {"regex": r"(?i)\borders\b", "targetGroup": "a"},
        {"regex": "JOIN", "targetGroup": "b"},
    ]
    router = {"type": "queryRegex", "rules": rules}
    assert ask(router, sql="SELECT * FROM Orders JOIN x") == "a"
    assert ask(router, sql="SELECT * FROM c JOIN x") == "b"
    assert ask(router, sql="SELECT 1") is None


def test_a_regex_sees_literals() -> None:
    router = {"type": "queryRegex", "rules": [{"regex": r"LIMIT \d+$", "targetGroup": "a"}]}
    assert ask(router, sql="SELECT 1 LIMIT 10") == "a"
    assert ask(router, sql="SELECT 1 LIMIT x") is None


def test_a_denial_has_its_message_or_the_usual_one() -> None:
    deny = {"regex": "DROP", "action": "deny"}
    assert ask({"type": "queryRegex", "rules": [deny]}, sql="DROP TABLE t") == (
        "denied: Query denied by routing rule"
    )
    said = {"type": "queryRegex", "rules": [deny | {"error": "no writes"}]}
    assert ask(said, sql="DROP TABLE t") == "denied: no writes"


@pytest.mark.parametrize(
    ("tags", "group"),
    [
        (("team:eng", "env:prod"), "a"),
        (("team:eng",), None),
        (("batch",), "b"),
        (("batch:nightly",), "b"),
        (("team:eng", "env:test", "batch"), "b"),
        ((), None),
    ],
)
def test_tags_must_all_be_there_and_null_takes_any_value(
    tags: tuple[str, ...], group: str | None
) -> None:
    rules = [
        {"tags": {"team": "eng", "env": "prod"}, "targetGroup": "a"},
        {"tags": {"batch": None}, "targetGroup": "b"},
    ]
    assert ask({"type": "tags", "rules": rules}, tags=tags) == group


@pytest.mark.parametrize("said", ["team:eng,x", '{"team": "eng", "x": null}'])
def test_tags_may_come_as_a_session_property(said: str) -> None:
    router = {"type": "tags", "rules": [{"tags": {"team": "eng"}, "targetGroup": "a"}]}
    assert ask(router, session={"query_tags": said}) == "a"
    assert ask(router, session={"query_tags": "{broken"}) is None


CONDITIONS = [
    {"type": "protocol", "protocol": "trinoHttp"},
    {"type": "header", "headerName": "X-Env", "headerValue": "prod"},
    {"type": "user", "username": "ana"},
    {"type": "clientTag", "tag": "etl"},
    {"type": "queryRegex", "regex": "FROM t"},
]
MATCHING = {"headers": {"x-env": "prod"}, "tags": ("etl",), "sql": "SELECT 1 FROM t"}


def test_all_conditions_or_any() -> None:
    both = {"type": "compound", "combine": "all", "conditions": CONDITIONS, "targetGroup": "a"}
    either = both | {"combine": "any"}
    assert ask(both, **MATCHING) == "a"
    for key, other in {"headers": {}, "tags": (), "sql": "SELECT 1", "user": "ben"}.items():
        assert ask(both, **MATCHING | {key: other}) is None
        assert ask(either, **MATCHING | {key: other}) == "a"
    nothing = {"user": "ben", "protocol": "postgresWire"}
    assert ask(either, **nothing) is None


@pytest.mark.parametrize("combine", ["all", "any"])
def test_no_conditions_never_match(combine: str) -> None:
    router = {"type": "compound", "combine": combine, "conditions": [], "targetGroup": "a"}
    assert ask(router) is None


def test_a_compound_rule_may_deny() -> None:
    router = {
        "type": "compound",
        "conditions": [{"type": "user", "username": "ana"}],
        "action": "deny",
        "error": "not you",
    }
    assert ask(router) == "denied: not you"


SCRIPT = """
def route(query, ctx):
    if ctx["user"] == "crash":
        raise KeyError("oops")
    if ctx["user"] == "number":
        return 7
    assert "authorization" not in ctx["extra"]
    assert ctx["auth"] == {"user": "ana", "groups": ["g"], "roles": ["analyst"]}
    return ctx["extra"].get("x-group")
"""


def test_a_script_is_told_what_queryflux_tells_it_but_no_secrets() -> None:
    router = {"type": "pythonScript", "script": SCRIPT}
    given = {"groups": ("g",), "role": "analyst"}
    secret = {"authorization": "Bearer x", "x-group": "a"}
    assert ask(router, headers=secret, **given) == "a"
    assert ask(router, **given) is None


def test_a_script_that_fails_is_named_and_passed_over(route: Callable[..., Router]) -> None:
    router = {"type": "pythonScript", "script": SCRIPT}
    assert ask(router, user="crash") == "failed: route() failed: KeyError: 'oops'"
    assert ask(router, user="number") == "failed: route() gave a int, not the name of a group"
    made = route(routers=[router], clusterGroups=GROUPS, routingFallback="a")
    decision = made.decide(statement(user="crash"))
    assert decision.group == "a"
    assert decision.trace[0].result == "failed"


def test_a_script_file_wins_over_the_script(tmp_path: Path) -> None:
    file = tmp_path / "route.py"
    file.write_text("def route(query, ctx):\n    return 'a'\n")
    both = {"type": "pythonScript", "script": SCRIPT, "scriptFile": file}
    assert ask(both) == "a"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("x = 1", r"routing.routers\[0\]: defines no function route"),
        ("import no_such_module", r"routing.routers\[0\]: ModuleNotFoundError"),
    ],
)
def test_a_script_that_cannot_work_is_an_error_at_load(script: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ask({"type": "pythonScript", "script": script})


def test_the_first_router_that_answers_decides_and_every_one_is_in_the_trace(
    route: Callable[..., Router],
) -> None:
    router = route(
        clusterGroups=GROUPS,
        routingFallback="z",
        routers=[
            {"type": "userGroup", "userToGroup": {"ben": "b"}},
            {"type": "queryRegex", "rules": [{"regex": "FROM t", "targetGroup": "a"}]},
            {"type": "protocolBased", "trinoHttp": "b"},
        ],
    )
    decision = router.decide(statement("SELECT 1 FROM t"))
    assert decision.group == "a"
    assert decision.trace[:2] == (
        Step("rule", "routers[0] userGroup", "no match"),
        Step("rule", "routers[1] queryRegex", "group a", "FROM t"),
    )
    assert router.decide(statement("SELECT 2", protocol="console")).group == "z"
    assert [rule.hits for rule in router.plan.rules] == [0, 1, 0]


def test_a_denied_statement_gets_no_engine(route: Callable[..., Router]) -> None:
    deny = {"regex": "(?i)^drop", "action": "deny", "error": "nothing is dropped here"}
    router = route(
        clusterGroups=GROUPS, routingFallback="a", routers=[{"type": "queryRegex", "rules": [deny]}]
    )
    decision = router.decide(statement("DROP TABLE t"))
    assert decision.denial is not None
    assert (decision.denial.kind, decision.denial.message) == ("rule", "nothing is dropped here")
    assert (decision.engine_id, decision.sql) == (None, "DROP TABLE t")


def test_without_a_rule_or_a_fallback_nothing_runs(route: Callable[..., Router]) -> None:
    denial = route(clusterGroups=GROUPS).decide(statement()).denial
    assert denial is not None
    assert denial.kind == "no_route"

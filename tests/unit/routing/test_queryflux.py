"""QueryFlux's files load as they are; what is wrong in one is told with its line and key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.models import DuckDBEngine, TrinoEngine
from lakehouse_core.config.problems import InvalidConfigError
from lakehouse_core.config.routing_file import read_routing_file
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.routing.decide import Plan, Ports
from lakehouse_core.routing.groups import lay_out
from lakehouse_core.routing.router import Router
from lakehouse_core.routing.rules import compile_rules
from tests.unit.routing.conftest import Fleet, statement

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import EngineConfig

# The shape of the example in QueryFlux's configuration reference.
DOCUMENTED = """
queryflux:
  externalAddress: http://localhost:8080
  frontends:
    trinoHttp: {enabled: true, port: 8080}
  persistence: {type: inMemory}
auth: {provider: oidc, required: true}
clusters:
  trino-1:
    engine: trino
    endpoint: http://trino-host:8080
    enabled: true
    auth: {type: basic, username: user, password: pass-word-1}
  duckdb-1:
    engine: duckDb
    enabled: true
    databasePath: /data/queryflux.duckdb
clusterGroups:
  trino-default:
    maxRunningQueries: 100
    members: [trino-1]
  duckdb-local:
    maxRunningQueries: 4
    members: [duckdb-1]
routers:
  - type: protocolBased
    snowflakeHttp: trino-default
    snowflakeSqlApi: trino-default
  - type: header
    headerName: x-target-engine
    headerValueToGroup:
      duckdb: duckdb-local
routingFallback: trino-default
"""
# The shape of its config.example.yaml: clusters inside groups, a router to a group not there.
OLDER = """
queryflux: {externalAddress: http://localhost:8080}
clusterGroups:
  duckdb-local:
    engine: duckDb
    maxRunningQueries: 4
    clusters:
      - name: duckdb-1
translation: {errorOnUnsupported: false}
catalogProvider:
  type: null
routers:
  - type: protocolBased
    postgresWire: trino-default
routingFallback: duckdb-local
"""
HEADER_BASED = """
clusters:
  trino-prod: {engine: trino, endpoint: "http://trino-host:8080"}
  duckdb-local: {engine: duckDb, databasePath: /data/lakehouse.duckdb}
clusterGroups:
  interactive:
    members: [trino-prod, duckdb-local]
    maxRunningQueries: 200
    strategy: {type: leastLoaded}
  governed: {members: [trino-prod], maxRunningQueries: 100, strategy: {type: costOptimized}}
routers:
  - type: headerBased
    rules:
      - {header: X-Workload-Type, value: bi-dashboard, targetGroup: governed}
  - type: protocolBased
    trinoHttp: interactive
routingFallback: interactive
"""
VARIANTS = """
clusters:
  wh:
    engine: adbc
    driver: snowflake
    uri: svc@account/db
    auth: {type: keyPair, username: SVC, privateKeyPem: key}
    healthCheckQuery: "SHOW WAREHOUSES LIKE '{{sub_resource}}'"
    variants:
      - name: analytics
        overrides: {warehouse: A_WH}
      - {name: etl, overrides: {warehouse: E_WH, maxRunningQueries: 5}}
clusterGroups:
  pool: {maxRunningQueries: 20, members: ["wh::analytics", "wh::etl"]}
routingFallback: pool
"""
ENGINES: dict[str, EngineConfig] = {
    "warehouse": TrinoEngine(type="trino", catalog="lake", host="trino-host", port=8080),
    "duck": DuckDBEngine(type="duckdb", catalog="lake"),
}


def router_of(text: str, folder: Path) -> Router:
    file = folder / "queryflux.yaml"
    file.write_text(text)
    routing = read_routing_file(file, ENGINES).routing
    layout = lay_out(routing, ENGINES, {}, ("lake",))
    plan = Plan(rules=compile_rules(routing.routers), layout=layout)
    return Router(plan, Ports(fleet=Fleet()))


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, ("trino-default", "trino-1", "warehouse")),
        ({"protocol": "snowflakeHttp"}, ("trino-default", "trino-1", "warehouse")),
        (
            {"headers": {"x-target-engine": "duckdb"}, "dialect": "duckdb"},
            ("duckdb-local", "duckdb-1", "duck"),
        ),
        ({"headers": {"x-target-engine": "other"}}, ("trino-default", "trino-1", "warehouse")),
    ],
)
def test_the_documented_example_routes_as_documented(
    tmp_path: Path, request_: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    decision = router_of(DOCUMENTED, tmp_path).decide(statement(**request_))
    assert decision.denial is None
    assert (decision.group, decision.member, decision.engine_id) == expected


def test_credentials_in_it_are_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "queryflux.yaml"
    file.write_text(DOCUMENTED)
    assert "pass-word-1" not in repr(read_routing_file(file, ENGINES))


def test_clusters_may_stand_inside_their_group(tmp_path: Path) -> None:
    router = router_of(OLDER, tmp_path)
    decision = router.decide(statement(dialect="duckdb"))
    assert (decision.group, decision.member, decision.engine_id) == (
        *("duckdb-local", "duckdb-1"),
        "duck",
    )
    denial = router.decide(statement(protocol="postgresWire")).denial
    assert denial is not None
    assert denial.message == "There is no group 'trino-default'"


def test_a_router_to_a_group_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "queryflux.yaml"
    file.write_text(OLDER)
    (warning,) = read_routing_file(file, ENGINES).warnings
    assert str(warning) == (
        f'{file}:14: routers[0].postgresWire = "trino-default": no such group '
        "(allowed: duckdb-local)"
    )


def test_header_rules_of_the_older_form(tmp_path: Path) -> None:
    router = router_of(HEADER_BASED, tmp_path)
    bi = statement(headers={"x-workload-type": "bi-dashboard"})
    assert router.decide(bi).group == "governed"
    assert router.decide(statement()).group == "interactive"


def test_variants_are_clusters_of_their_own(tmp_path: Path) -> None:
    group = router_of(VARIANTS, tmp_path).plan.layout.groups["pool"]
    assert group.limits == {"wh::analytics": 20, "wh::etl": 5}
    assert {member.unusable for member in group.members} == {
        "no engine of its name or address is configured under `engines`"
    }


BROKEN = """
clusters:
  trino-1: {engine: trino}
clusterGroups:
  one:
    members: [trino-1, trino-7]
    strategy: {type: leastLoded}
  two:
    members: [trino-1]
    maxRuningQueries: 7
routers:
  - type: queryRegex
    rules:
      - regex: "(unclosed"
        targetGroup: one
      - regex: fine
  - type: pythonScript
    script: "def route(:"
  - type: protocolBasd
"""


def test_everything_wrong_is_told_at_once_with_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(BROKEN)
    with pytest.raises(InvalidConfigError) as error:
        read_routing_file(file, ENGINES)
    places = [(p.place.rpartition(":")[2], p.key) for p in error.value.problems]
    assert places == [
        ("7", "clusterGroups.one.strategy.type"),
        ("10", "clusterGroups.two.maxRuningQueries"),
        ("14", "routers[0].rules[0].regex"),
        ("16", "routers[0].rules[1]"),
        ("18", "routers[1].script"),
        ("19", "routers[2].type"),
    ]
    assert "did you mean maxRunningQueries?" in str(error.value)


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("clusterGroups: {a: {members: [trnio]}}", "clusterGroups.a.members[0]", "no such cluster"),
        (
            "clusterGroups: {a: {members: [duck], fallbackGroup: b}}",
            "clusterGroups.a.fallbackGroup",
            "no such group",
        ),
        (
            "clusterGroups: {a: {members: [duck], fallbackGroup: a}}",
            "clusterGroups.a.fallbackGroup",
            "in circles",
        ),
        (
            "clusterGroups: {a: {members: [duck], strategy: {type: weighted, weights: {x: 1}}}}",
            "clusterGroups.a.strategy.weights.x",
            "no such member",
        ),
        (
            "endpoints: {bi: {path: /bi, pool: [nobody]}}",
            "endpoints.bi.pool[0]",
            "no such cluster",
        ),
        ("endpoints: {bi: {path: /v1/x}}", "endpoints.bi.path", "choose another"),
        ("endpoints: {bi: {group: x}}", "endpoints.bi", "give path or port"),
        (
            "endpoints: {a: {path: /x}, b: {path: /x}}",
            "endpoints.b.path",
            "is that of endpoint a too",
        ),
        ("clusterGroups: {a: {members: []}}", "clusterGroups.a", "members is missing"),
    ],
)
def test_what_refers_to_nothing_is_an_error(tmp_path: Path, text: str, key: str, said: str) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(text)
    with pytest.raises(InvalidConfigError) as error:
        read_routing_file(file, ENGINES)
    (problem,) = error.value.problems
    assert problem.key == key
    assert said in problem.message
    assert problem.place == f"{file}:1"


def test_a_file_that_is_not_there_or_no_yaml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_routing_file(tmp_path / "nothing.yaml", ENGINES)
    file = tmp_path / "bad.yaml"
    file.write_text("routers: [")
    with pytest.raises(ConfigError, match="YAML syntax error"):
        read_routing_file(file, ENGINES)

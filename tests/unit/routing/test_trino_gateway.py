"""Rule files of trino-gateway: all rules that match fire, by priority, and the last word stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.config.problems import InvalidConfigError
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.routing.facts import Facts
from lakehouse_core.routing.trino_gateway import read_rules
from tests.unit.routing.conftest import statement

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakehouse_core.routing.router import Router
    from lakehouse_core.routing.trino_gateway import Verdict

AIRFLOW = """---
name: airflow
description: from airflow
priority: {first}
condition: 'request.getHeader("X-Trino-Source") == "airflow"'
actions:
  - 'result.put("routingGroup", "etl")'
---
name: airflow special
priority: {second}
condition: |
  request.getHeader("X-Trino-Source") == "airflow"
  && request.getHeader("X-Trino-Client-Tags") contains "label=special"
actions:
  - 'result.put(FileBasedRoutingGroupSelector.RESULTS_ROUTING_GROUP_KEY, "etl-special")'
"""
STATE = """---
name: initialize state
priority: 0
condition: "true"
actions:
  - |
    state.put("triggeredRules",new HashSet())
---
name: airflow
priority: 1
condition: |
  request.getHeader("X-Trino-Source") == "airflow"
actions:
  - |
    result.put("routingGroup", "etl")
  - |
    state.get("triggeredRules").add("airflow")
---
name: airflow special
priority: 2
condition: |
  state.get("triggeredRules").contains("airflow")
  && request.getHeader("X-Trino-Client-Tags") contains "label=special"
actions:
  - |
    result.put("routingGroup", "etl-special")
"""
BRANCHES = r"""---
name: "airflow rules"
condition: "request.getHeader(\"X-Trino-Source\") == \"airflow\""
actions:
  - "if (request.getHeader(\"X-Trino-Client-Tags\") contains \"label=foo\") {
      result.put(\"routingGroup\", \"etl-foo\")
    }
    else if (request.getHeader(\"X-Trino-Client-Tags\") contains \"label=bar\") {
      result.put(\"routingGroup\", \"etl-bar\")
    }
    else {
      result.put(\"routingGroup\", \"etl\")
    }"
"""
AIRFLOW_HEADERS = {"x-trino-source": "airflow"}
SPECIAL = AIRFLOW_HEADERS | {"x-trino-client-tags": "x,label=special"}


def evaluated(text: str, folder: Path, **request: Any) -> Verdict:
    file = folder / "rules.yml"
    file.write_text(text)
    asked = statement(**request)
    return read_rules(file).evaluate(asked, Facts().of(asked))


def rule(condition: str, group: str = "hit") -> str:
    return (
        f"---\nname: one\ncondition: |\n  {condition}\nactions:\n"
        f'  - result.put("routingGroup", "{group}")\n'
    )


@pytest.mark.parametrize(
    ("first", "second", "group"),
    [(0, 1, "etl-special"), (1, 0, "etl"), (0, 0, "etl-special")],
)
def test_all_that_match_fire_and_the_last_word_stands(
    tmp_path: Path, first: int, second: int, group: str
) -> None:
    verdict = evaluated(AIRFLOW.format(first=first, second=second), tmp_path, headers=SPECIAL)
    assert verdict.group == group
    assert sorted(verdict.detail.removeprefix("fired: ").split(", ")) == [
        *("airflow", "airflow special"),
    ]


def test_a_rule_without_priority_has_0_as_in_its_code(tmp_path: Path) -> None:
    text = AIRFLOW.format(first=-1, second=1).replace("priority: 1\n", "")
    assert evaluated(text, tmp_path, headers=SPECIAL).group == "etl-special"
    assert [r.priority for r in read_rules(tmp_path / "rules.yml").rules] == [-1, 0]


def test_one_rule_passes_state_to_the_next(tmp_path: Path) -> None:
    assert evaluated(STATE, tmp_path, headers=SPECIAL).group == "etl-special"
    assert evaluated(STATE, tmp_path, headers=AIRFLOW_HEADERS).group == "etl"
    tagged = {"x-trino-client-tags": "label=special"}
    assert evaluated(STATE, tmp_path, headers=tagged).group is None


@pytest.mark.parametrize(
    ("tags", "group"),
    [("label=foo", "etl-foo"), ("label=bar", "etl-bar"), ("label=x", "etl"), (None, "etl")],
)
def test_actions_may_branch(tmp_path: Path, tags: str | None, group: str) -> None:
    headers = AIRFLOW_HEADERS | ({"x-trino-client-tags": tags} if tags else {})
    assert evaluated(BRANCHES, tmp_path, headers=headers).group == group


QUERY = "SELECT * FROM catx.schemx.tblx, schemy.tbly, tblz"
DEFAULTS = {"sql": QUERY, "catalog": "cat_default", "schema": "schem_default"}


@pytest.mark.parametrize(
    ("condition", "request_"),
    [
        ('trinoRequestUser.userExistsAndEquals("ana")', {}),
        ('trinoRequestUser.getUser().isPresent() && trinoRequestUser.getUser().get() == "ana"', {}),
        ('trinoQueryProperties.tablesContains("cat_default.schem_default.tblz")', DEFAULTS),
        ('trinoQueryProperties.tablesContains("cat_default.schemy.tbly")', DEFAULTS),
        ('trinoQueryProperties.getSchemas().contains("schemy")', DEFAULTS),
        ('trinoQueryProperties.getCatalogs.contains("catx")', DEFAULTS),
        ('trinoQueryProperties.getCatalogSchemas.contains("catx.schemx")', DEFAULTS),
        (
            'trinoQueryProperties.getDefaultCatalog().equals(java.util.Optional.of("cat_default"))',
            DEFAULTS,
        ),
        (
            'trinoQueryProperties.getQueryType().toLowerCase.equals("insert")',
            {"sql": "INSERT INTO a.b.c SELECT 1"},
        ),
        (
            'trinoQueryProperties.getResourceGroupQueryType() == "DATA_DEFINITION"',
            {"sql": "CREATE TABLE a.b.c (x INTEGER)"},
        ),
        (
            'trinoQueryProperties.getResourceGroupQueryType() == "INSERT"',
            {"sql": "CREATE TABLE a.b.c AS SELECT 1 AS x"},
        ),
        ('request.getHeader("x-nobody") == null', {}),
        ('!(request.getHeader("x-nobody") contains "x")', {}),
        ('["ana", "ben"] contains request.getHeader("X-Trino-User")', {}),
        ('request.getHeader("X-Trino-User") in ["ana"]', {}),
        ('request.getHeader("X-Trino-User") ~= "a.a"', {}),
        ("trinoQueryProperties.getBody().length() > 5 ? true : false", {}),
        ('who = "an" + "a"; who == request.getHeader("X-Trino-User")', {}),
    ],
)
def test_what_rules_may_ask(tmp_path: Path, condition: str, request_: dict[str, Any]) -> None:
    verdict = evaluated(rule(condition), tmp_path, **request_)
    assert (verdict.group, verdict.detail) == ("hit", "fired: one")


def test_a_rule_that_fails_does_not_fire_and_is_named(tmp_path: Path) -> None:
    text = rule('request.getHeader("X-Nobody").contains("x")') + rule("true", "other")
    verdict = evaluated(text, tmp_path)
    assert verdict.group == "other"
    assert verdict.detail == "fired: one; rule 'one' failed: contains() was called on null"


@pytest.mark.parametrize(
    "condition",
    [
        "java.lang.System.exit(0)",
        'Runtime.getRuntime().exec("id")',
        "request.__class__",
        'new File("/etc/passwd")',
        'request.getClass().forName("x")',
        "new HashSet<String>()",
        'import("os")',
        'request.getHeader("x"',
        "request.getHeader(",
        "1 ===== 2",
        "",
    ],
)
def test_nothing_but_the_rules_own_language_is_read(tmp_path: Path, condition: str) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(rule(condition or "}"))
    with pytest.raises(InvalidConfigError) as error:
        read_rules(file)
    (problem,) = error.value.problems
    assert (problem.place, problem.key) == (f"{file}:3", "condition")


def test_everything_wrong_in_a_file_is_told_with_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(
        "---\nname: one\ncondition: 'true'\nactions: nothing\n"
        "---\nname: two\npriority: soon\ncondition: 'tru'\nactions: ['result.push(1)']\n"
        "---\nnmae: three\ncondition: 'true'\nactions: []\n"
    )
    with pytest.raises(InvalidConfigError) as error:
        read_rules(file)
    found = [(p.place.rpartition(":")[2], p.key) for p in error.value.problems]
    assert found == [
        ("4", "actions"),
        ("8", "condition"),
        ("9", "actions[0]"),
        ("7", "priority"),
        ("11", "nmae"),
        ("11", "name"),
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rules\.yml: cannot be read"):
        read_rules(tmp_path / "rules.yml")


def test_as_a_router_it_names_the_group_or_lets_the_next_one_go_on(
    tmp_path: Path, route: Callable[..., Router]
) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(AIRFLOW.format(first=0, second=1))
    router = route(
        routers=[{"type": "trinoGateway", "rulesFile": file}],
        clusterGroups={"etl": {"members": ["spark"]}, "adhoc": {"members": ["trino"]}},
        routingFallback="adhoc",
    )
    decision = router.decide(statement(headers=AIRFLOW_HEADERS, dialect="spark"))
    assert (decision.group, decision.trace[0].detail) == ("etl", "fired: airflow")
    assert router.decide(statement()).group == "adhoc"

"""`lakehelm route`: decisions, rules and foreign rule files from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

CONFIG = """
version: 1
catalogs: {lake: {type: sqlite, path: c.db, warehouse: w}}
engines:
  duckdb: {type: duckdb, catalog: lake}
  trino: {type: trino, catalog: lake}
routing:
  clusterGroups:
    fast: {members: [duckdb, trino], strategy: {type: latencyOptimized}}
    writes: {members: [trino]}
  routers:
    - type: queryRegex
      rules:
        - {regex: "(?i)^insert", targetGroup: writes}
        - {regex: "(?i)^drop", action: deny, error: nothing is dropped here}
    - {type: header, headerName: X-Group, headerValueToGroup: {w: writes}}
  routingFallback: fast
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "routing.yaml"
    path.write_text(CONFIG)
    return str(path)


def test_explain_tells_engine_trace_and_capacity_and_runs_nothing(run: Run, config: str) -> None:
    done = run("route", "explain", "--sql", "SELECT 1", "--json", "--config", config)
    assert done.code == 0
    assert (done.data["group"], done.data["engine_id"]) == ("fast", "trino")
    stages = [step["stage"] for step in done.data["trace"]]
    assert stages == ["rule", "rule", "fallback", "strategy"]
    assert done.data["capacity"]["member_limit"] == 4
    assert "states are not known" in done.err  # nothing runs here


def test_circumstances_are_options(run: Run, config: str, tmp_path: Path) -> None:
    file = tmp_path / "statement.sql"
    file.write_text("SELECT 1")
    done = run(
        *("route", "explain", "--file", str(file), "--header", "x-group=w", "--user", "ana"),
        *("--tag", "etl", "--group", "bi", "--json", "--config", config),
    )
    assert done.data["group"] == "writes"


def test_a_denied_statement_is_exit_code_1(run: Run, config: str) -> None:
    done = run("route", "explain", "--sql", "DROP TABLE t", "--config", config)
    assert done.code == 1
    assert "Denied (rule): nothing is dropped here" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--sql"),
        (("--sql", "x", "--file", "y"), "--sql"),
        (("--file", "/nowhere"), "cannot be read"),
        (("--sql", "x", "--header", "x"), "expected name=value"),
    ],
)
def test_a_wrong_question_is_exit_code_2(
    run: Run, config: str, options: tuple[str, ...], said: str
) -> None:
    done = run("route", "explain", *options, "--config", config)
    assert done.code == 2
    assert said in done.err


def test_rules_are_shown_in_order_with_groups(run: Run, config: str) -> None:
    done = run("route", "rules", "--json", "--config", config)
    assert [rule["rule"] for rule in done.data["rules"]] == [
        *("routers[0] queryRegex", "routers[1] header"),
    ]
    assert {group["group"] for group in done.data["groups"]} == {"fast", "writes"}
    assert done.data["routing_fallback"] == "fast"
    assert run("route", "rules", "--config", config).code == 0


def test_a_wrong_rule_is_told_with_file_line_and_key(run: Run, config: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(CONFIG.replace("(?i)^insert", "(insert"))
    done = run("route", "rules", "--config", str(bad))
    assert done.code == 2
    assert f"{bad}:14: routing.routers[0].rules[0].regex" in done.err


def test_a_file_of_trino_gateway_is_checked_and_told_how_to_use(
    run: Run, config: str, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(
        "---\nname: b\npriority: 2\ncondition: 'true'\nactions: []\n"
        "---\nname: a\npriority: 1\ncondition: 'true'\nactions: []\n"
    )
    done = run("route", "import", "trino-gateway", str(file), "--json", "--config", config)
    assert [rule["name"] for rule in done.data["rules"]] == ["a", "b"]
    assert done.data["router"] == {"type": "trinoGateway", "rulesFile": str(file)}
    shown = run("route", "import", "trino-gateway", str(file), "--config", config)
    assert f"rulesFile: {file}" in shown.out
    file.write_text("---\nname: b\ncondition: 'System.exit(1)'\nactions: []\n")
    wrong = run("route", "import", "trino-gateway", str(file), "--config", config)
    assert (wrong.code, f"{file}:3: condition" in wrong.err) == (2, True)


def test_a_file_of_queryflux_is_checked_and_told_how_to_use(
    run: Run, config: str, tmp_path: Path
) -> None:
    file = tmp_path / "queryflux.yaml"
    file.write_text(
        "queryflux: {}\nclusters: {t: {engine: trino, endpoint: 'http://127.0.0.1:8085'}}\n"
        "clusterGroups: {g: {members: [t], maxRunningQueries: 3}}\nroutingFallback: g\n"
    )
    plain = tmp_path / "plain.yaml"
    plain.write_text(CONFIG.partition("routing:")[0])
    done = run("route", "import", "queryflux", str(file), "--json", "--config", str(plain))
    (group,) = done.data["groups"]
    assert (group["group"], group["members"], group["running_limit"]) == ("g", ["t"], 3)
    assert group["unusable"] == {}
    plain.write_text(CONFIG.partition("routing:")[0] + f"routing: {{file: {file}}}\n")
    used = run("route", "explain", "--sql", "SELECT 1", "--json", "--config", str(plain))
    assert (used.data["member"], used.data["engine_id"]) == ("t", "trino")

"""`lakehelm demo` as a user meets it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.cli.output import ExitCode
from lakehouse_core.demo.personas import PERSONAS
from tests.unit.demo.test_endpoint import answer
from tests.unit.views.server import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKEHELM_HOME", str(tmp_path))
    return tmp_path


def test_without_a_lake_the_workload_says_how_to_build_one(run: Run, home: Path) -> None:
    ended = run("demo", "workload", "--minutes", "1")

    assert ended.code == ExitCode.FAILURE
    assert f"no demo lake in {home}: build it with `lakehelm demo build`" in ended.err


@pytest.mark.parametrize("wrong", [(), ("--minutes", "1", "--forever")])
def test_how_long_must_be_said_once(run: Run, home: Path, wrong: tuple[str, ...]) -> None:
    ended = run("demo", "workload", *wrong)

    assert home.exists()
    assert ended.code == ExitCode.USAGE
    assert "either --minutes N or --forever" in ended.err


def test_an_engine_that_is_not_configured_is_refused(run: Run, home: Path) -> None:
    (home / "lake").mkdir()
    (home / "lake" / "BUILT.json").write_text(json.dumps({"anchor": "2026-11-01T00:00:00Z"}))

    ended = run("demo", "workload", "--minutes", "1", "--engines", "duckdb,presto")

    assert ended.code == ExitCode.USAGE
    assert "presto" in ended.err


@pytest.mark.duckdb
def test_a_workload_reports_what_became_of_its_statements(run: Run, home: Path) -> None:
    """There is no catalog here, so the engine is away; the run goes on to its end all the same."""
    (home / "lake").mkdir()
    (home / "lake" / "BUILT.json").write_text(json.dumps({"anchor": "2026-11-01T00:00:00Z"}))

    ended = run(
        *("demo", "workload", "--minutes", "0.02", "--rate", "20"), "--engines", "duckdb", "--json"
    )

    (tally,) = ended.data
    assert ended.code == ExitCode.OK
    assert tally["engine"] == "duckdb"
    assert tally["is_away"] is True
    assert tally["skipped_away"] > 0
    assert "duckdb is away, going on without it" in ended.err


@pytest.mark.duckdb
@pytest.mark.slow
def test_a_workload_uses_the_sql_endpoint_when_it_answers(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "lake").mkdir()
    (home / "lake" / "BUILT.json").write_text(json.dumps({"anchor": "2026-11-01T00:00:00Z"}))
    monkeypatch.setenv("LAKEHELM__ENGINES__SPARK__ENABLED", "false")
    monkeypatch.setenv("LAKEHELM__ENGINES__TRINO__ENABLED", "false")
    monkeypatch.setenv("LAKEHELM__GATEWAY__SQL__ENABLED", "false")
    asked = ("demo", "workload", "--minutes", "0.01", "--rate", "30", "--json")

    without = run(*asked)
    assert [tally["engine"] for tally in without.data] == ["duckdb"]
    assert "everybody asks the engines directly: gateway.sql.enabled is false" in without.err

    with serving(answer) as server:
        monkeypatch.setenv("LAKEHELM__GATEWAY__SQL__ENABLED", "true")
        monkeypatch.setenv("LAKEHELM__GATEWAY__SQL__PORT", server.url.rpartition(":")[2])
        ended = run(*asked)
    engine, endpoint = ended.data
    assert (engine["engine"], endpoint["engine"]) == ("duckdb", "SQL endpoint")
    assert endpoint["finished"] > 0
    users = {h["X-Trino-User"] for method, _, h in server.asked if method == "POST"}
    assert users <= {persona.user for persona in PERSONAS if persona.is_routed}

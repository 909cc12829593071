from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.bootstrap import open_store
from lakehouse_core.cli import main
from lakehouse_core.config import load_config
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.store.rows import to_arrow
from tests.commands import command_line, reading
from tests.factories import snapshot_commit
from tests.ui.conftest import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = pytest.mark.duckdb  # the store is served over Quack


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    found = Place.below(tmp_path_factory.mktemp("home"), repository)
    with found.served(filled=True):
        yield found


@pytest.fixture
def run(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    return command_line(place.environ, monkeypatch, capsys)


@pytest.fixture
def read(run: Callable[..., tuple[int, str, str]]) -> Callable[..., Any]:
    return reading(run)


def test_engines_have_both_states_and_their_service(read: Callable[..., Any]) -> None:
    rows = {row["engine_id"]: row for row in read("engines")}
    assert set(rows) == {"duckdb", "spark", "trino"}
    assert rows["trino"]["configured"] == "active"
    assert rows["trino"]["observed"] == "healthy"
    assert rows["duckdb"]["queries"] > 0
    assert 0 < rows["duckdb"]["p50_ms"] <= rows["duckdb"]["p95_ms"]


def test_queries_are_limited_filtered_and_newest_first(read: Callable[..., Any]) -> None:
    rows = read("queries", "--limit", "5")
    assert len(rows) == 5
    times = [row["submitted_at"] for row in rows]
    assert times == sorted(times, reverse=True)
    assert times[0].endswith("Z")
    failed = read("queries", "--window", "7d", "--status", "failed", "--engine", "trino")
    assert {(row["status"], row["engine_id"]) for row in failed} == {("failed", "trino")}


@pytest.mark.parametrize("args", [("tables",), ("tables", "list")])
def test_tables_are_listed_with_and_without_the_word(
    read: Callable[..., Any], args: tuple[str, ...]
) -> None:
    rows = read(*args)
    assert rows[0]["table_id"] == "lake.demo.events"
    assert "lake.demo.gone" not in {row["table_id"] for row in rows}


def test_table_shows_its_structure(read: Callable[..., Any]) -> None:
    row = read("tables", "show", "lake.demo.events")
    assert row["data_files"] == 1_344
    wanted = "data_files total_bytes small_files delete_files manifests snapshots partitions skew"
    assert all(isinstance(row[name], int | float) for name in wanted.split())


def test_health_of_events_is_worse_than_of_the_healthy_table(read: Callable[..., Any]) -> None:
    events, healthy = read("health", "lake.demo.events"), read("health", "demo.healthy")
    assert (events["state"], healthy["state"]) == ("critical", "healthy")
    assert events["score"] < healthy["score"]
    lost = [item["points_lost"] for item in events["contributors"]]
    assert lost == sorted(lost, reverse=True)
    assert lost


def test_json_may_stand_before_the_command_of_a_group(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = run("tables", "--json", "show", "events")
    assert code == 0
    assert json.loads(out)["table_id"] == "lake.demo.events"


def test_unknown_table_ends_with_1_and_names_the_nearest(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    for args in (("health", "lake.demo.evnts"), ("tables", "show", "lake.demo.evnts")):
        code, out, err = run(*args, "--json")
        assert (code, out) == (1, "")
        assert "lake.demo.events" in err


def test_wrong_filters_end_with_2(run: Callable[..., tuple[int, str, str]]) -> None:
    for args in (("queries", "--window", "banana"), ("queries", "--status", "done")):
        code, out, err = run(*args)
        assert (code, out) == (2, "")
        assert "Use" in err


def test_unknown_engine_ends_with_2_and_names_the_known(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    for command in (("engines",), ("queries",), ("workloads",), ("usage", "events")):
        code, out, err = run(*command, "--engine", "trinoo", "--json")
        assert (code, out) == (2, ""), command
        assert "duckdb, spark, trino" in err


def test_agents_tell_circuit_lag_and_what_is_due(read: Callable[..., Any]) -> None:
    rows = {row["agent"]: row for row in read("agents")}
    assert rows["collect:trino"]["circuit"] == "closed"
    assert rows["collect:trino"]["lag_seconds"] > 0
    assert rows["collect:trino"]["newest_event_age_seconds"] > 0
    assert rows["collect:duckdb"]["dead_letters"] == 2
    assert rows["health"]["next_run"].endswith("Z")
    assert read("agents", "list") is not None


def test_a_run_is_asked_for_once_and_not_waited_for(read: Callable[..., Any]) -> None:
    first, second = read("agents", "run", "health"), read("agents", "run", "health")
    assert first["state"] == "waiting"
    assert second["request_id"] == first["request_id"]


def test_a_run_that_nobody_takes_up_is_waited_for_no_longer_than_asked(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = run("agents", "run", "probe", "--wait", "--timeout", "1", "--json")
    assert code == 3
    assert json.loads(out)["state"] == "waiting"


def test_a_job_that_is_not_scheduled_ends_with_1_and_names_the_nearest(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, _, err = run("agents", "run", "trino")
    assert code == 1
    assert "collect:trino" in err


def test_people_get_a_table(run: Callable[..., tuple[int, str, str]]) -> None:
    for command in ("agents", "engines", "queries", "tables", "health"):
        code, out, _ = run(command)
        assert code == 0
        assert "│" in out
    code, out, _ = run("health", "lake.demo.events")
    assert "smaller than 32 MiB" in out


def test_without_an_owner_the_command_says_what_to_start(
    tmp_path: Path,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    away = Place.below(tmp_path, repository)
    with away.served(filled=False):
        pass
    for name, value in away.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main(["engines", "--json"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (3, "")
    assert "lakehelm up" in err


def test_before_the_first_start_the_command_says_that_we_do_not_run(
    tmp_path: Path,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in Place.below(tmp_path / "new", repository).environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main(["queries"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (3, "")
    assert "does not run" in err
    assert "lakehelm up" in err


def test_statements_not_understood_are_counted_by_reason(
    read: Callable[..., Any], run: Callable[..., tuple[int, str, str]]
) -> None:
    found = read("sql", "unparsed", "--window", "7d")
    assert found["inspected"] <= found["queries"]
    assert found["unparsed"] == sum(row["queries"] for row in found["reasons"])
    code, _, err = run("sql", "unparsed")
    assert code == 0
    assert "inspected queries were not understood" in err


def test_streams_shows_what_flink_jobs_committed(read: Callable[..., Any], place: Place) -> None:
    store = open_store(load_config(environ=place.environ).config, role="writer")
    now = utc_now()
    try:
        commits = [
            snapshot_commit(
                table_id="lake.demo.events",
                committed_at=now - timedelta(seconds=seconds),
                flink_job_id="a" * 32,
                flink_checkpoint_id=100 - seconds,
            )
            for seconds in (30, 20, 10)
        ]
        store.upsert("snapshot_commit", to_arrow("snapshot_commit", commits))
    finally:
        store.close()
    (row,) = read("streams", "--window", "1h", "--table", "events")
    assert (row["commits"], row["median_gap_ms"], row["committed_checkpoint"]) == (3, 10_000, 90)
    assert (row["job_name"], row["slot_seconds"]) == (None, None)


def test_a_statement_of_the_gateway_is_traced(
    read: Callable[..., Any], run: Callable[..., tuple[int, str, str]]
) -> None:
    seen = read("route", "trace", "gw-read-0")
    assert seen["routed"]["engine_id"] == "duckdb"
    assert [step["stage"] for step in seen["steps"]] == ["rule", "fallback", "strategy"]
    code, _, err = run("route", "trace", "nobody")
    assert code == 1
    assert "'nobody' is recorded" in err

"""What a new user sees: one command, real engines, real figures, and it survives being hurt."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.e2e.browser import check_every_page, chromium
from tests.e2e.stack import COLLECTED_SECONDS, Stack, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

SMALL_FILE_BYTES = 32 * 2**20


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    running = Stack(tmp_path_factory.mktemp("stack") / "home")
    try:
        running.up()
        yield running
    finally:
        left = running.down()
    assert left == [], f"still running after the stop: {left}"


def running_engines(stack: Stack) -> list[dict[str, Any]]:
    return [engine for engine in stack.json("engines") if engine["observed"] == "healthy"]


def finished_per_engine(stack: Stack) -> dict[str, int]:
    counts: dict[str, int] = {}
    for query in stack.json("queries", "--limit", "500"):
        if query["status"] == "finished":
            counts[query["engine_id"]] = counts.get(query["engine_id"], 0) + 1
    return counts


def newest_query_at(stack: Stack) -> str:
    (newest,) = stack.collected("queries", "--limit", "1")
    return str(newest["submitted_at"])


def test_real_queries_of_every_running_engine_are_in_the_history(stack: Stack) -> None:
    def seen() -> dict[str, int] | None:
        healthy = {engine["engine_id"] for engine in running_engines(stack)}
        counts = finished_per_engine(stack)
        return counts if {"duckdb", "spark"} <= healthy <= counts.keys() else None

    counts = wait_for("queries of every healthy engine", seen, COLLECTED_SECONDS)
    assert all(count > 0 for count in counts.values())


def test_a_query_carries_who_asked_what_and_how_long_it_took(stack: Stack) -> None:
    wait_for("finished queries", lambda: finished_per_engine(stack), COLLECTED_SECONDS)
    finished = [q for q in stack.json("queries", "--limit", "500") if q["status"] == "finished"]
    for query in finished:
        assert query["user_name"], query
        assert query["sql_text"], query
        assert query["elapsed_ms"] is not None, query
        assert query["origin"] == "real", query
    assert any(query["template_id"] for query in finished)


def test_doctor_finds_nothing_wrong_while_everything_runs(stack: Stack) -> None:
    checks = stack.json("doctor")
    assert [check for check in checks if check["status"] == "fail"] == []
    assert {"python", "java-spark", "store"} <= {check["id"] for check in checks}


def inspected(table: Table) -> dict[str, Any]:
    """What pyiceberg itself says about the table's current snapshot."""
    look = table.inspect
    sizes = look.data_files()["file_size_in_bytes"].to_pylist()
    per_partition = look.partitions()["total_data_file_size_in_bytes"].to_pylist()
    return {
        "data_files": len(sizes),
        "total_bytes": sum(sizes),
        "small_files": sum(size < SMALL_FILE_BYTES for size in sizes),
        "delete_files": look.delete_files().num_rows,
        "manifests": look.manifests().num_rows,
        "snapshots": look.snapshots().num_rows,
        "partitions": len(per_partition),
        "skew": pytest.approx(max(per_partition) * len(per_partition) / sum(per_partition)),
    }


@pytest.mark.parametrize("name", ["events", "orders_cdc", "skewed", "churn", "healthy"])
def test_table_structure_equals_pyicebergs_own_inspection(stack: Stack, name: str) -> None:
    catalog = SqlCatalog(
        "lake",
        uri=f"sqlite:///{stack.home / 'lake' / 'catalog.db'}",
        warehouse=f"file://{stack.home / 'lake' / 'warehouse'}",
    )

    def both_of_one_snapshot() -> tuple[dict[str, Any], dict[str, Any]] | None:
        # The workload goes on writing: only figures of one and the same metadata file compare.
        shown = stack.collected("tables", "show", f"lake.demo.{name}")
        table = catalog.load_table(f"demo.{name}")
        is_same = shown["metadata_location"] == table.metadata_location
        return (shown, inspected(table)) if is_same else None

    shown, expected = wait_for(
        f"figures of the newest snapshot of {name}", both_of_one_snapshot, COLLECTED_SECONDS
    )
    assert {key: shown[key] for key in expected} == expected


def test_events_is_worse_than_the_healthy_table_and_says_why(stack: Stack) -> None:
    events = stack.collected("health", "lake.demo.events")
    healthy = stack.collected("health", "lake.demo.healthy")
    assert healthy["state"] == "healthy"
    assert events["state"] == "critical"
    assert events["score"] < healthy["score"]
    assert events["contributors"], "a bad score without a reason"


def test_liveness_readiness_and_metrics_are_served(stack: Stack) -> None:
    for path in ("/livez", "/readyz"):
        with urllib.request.urlopen(stack.admin_url + path, timeout=10) as answer:  # noqa: S310 loopback
            assert answer.status == 200
    with urllib.request.urlopen(stack.admin_url + "/metrics", timeout=10) as answer:  # noqa: S310 loopback
        text = answer.read().decode()
    assert 'lakehouse_engine_up{engine="duckdb"} 1.0' in text


def test_what_people_ask_at_the_sql_endpoint_is_routed(stack: Stack) -> None:
    def hits() -> int:
        with urllib.request.urlopen(stack.admin_url + "/v1/route/rules", timeout=10) as answer:  # noqa: S310 loopback
            rules = json.load(answer)["rules"]
        return sum(rule["hits"] for rule in rules if rule["rule"].endswith(" tags"))

    wait_for("dashboards and questions by their tags", hits, COLLECTED_SECONDS)


def test_tokens_are_nowhere_but_in_their_files(stack: Stack) -> None:
    tokens = [path.read_text().strip() for path in (stack.home / "secrets").iterdir()]
    assert tokens
    shown = stack.run("config", "show").stdout + stack.run("config", "show", "--json").stdout
    logs = "".join(log.read_text(errors="replace") for log in (stack.home / "logs").glob("*.log"))
    for token in tokens:
        assert token not in shown
        assert token not in logs


@pytest.mark.parametrize("name", ["agents", "gateway", "ui"])
def test_a_killed_process_comes_back_and_collecting_goes_on(stack: Stack, name: str) -> None:
    before = stack.process(name)
    os.kill(before["pid"], signal.SIGKILL)

    def is_back() -> bool:
        now = stack.process(name)
        return now["state"] == "ready" and now["pid"] != before["pid"]

    wait_for(f"{name} to come back", is_back, 90)
    first = newest_query_at(stack)
    wait_for(
        "newer queries in the history", lambda: newest_query_at(stack) > first, COLLECTED_SECONDS
    )


@pytest.mark.browser
def test_every_page_of_the_running_demo_opens_without_an_error_box(stack: Stack) -> None:
    wait_for("finished queries", lambda: finished_per_engine(stack), COLLECTED_SECONDS)
    with chromium() as browser:
        check_every_page(browser, stack.ui_url, "light")


def test_a_second_up_on_the_same_home_says_who_runs_there(stack: Stack) -> None:
    second = stack.run("up")
    assert second.code != 0
    assert str(stack.status()["supervisor_pid"]) in second.stderr + second.stdout

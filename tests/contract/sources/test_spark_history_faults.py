"""What a history server can do to us, and what we make of it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.collect import run_once
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError
from tests.contract.sources.coordinator import answer
from tests.contract.sources.history_server import (
    API,
    APP,
    HistoryServer,
    history_source,
    moment,
)
from tests.contract.sources.tallies import letters
from tests.contract.sources.worlds import BYTES
from tests.factories import NOW, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.server import BaseHTTPRequestHandler

    from agents.collect import CollectReport
    from lakehouse_core.store.owner import OwnerStore

    Fault = Callable[[str, BaseHTTPRequestHandler], bool]

pytestmark = pytest.mark.slow

OPERATION = "SparkConnect_OperationTag_User_ana_Session_s_Operation_op-1"


@pytest.fixture
def server() -> Iterator[HistoryServer]:
    made = HistoryServer()
    made.start()
    yield made
    made.close()


def collect(server: HistoryServer, store: OwnerStore) -> CollectReport:
    return run_once(history_source(server.url), store, lambda: NOW, timeout=timedelta(minutes=1))


def queries(store: OwnerStore) -> dict[str, dict[str, Any]]:
    return {row["query_id"]: row for row in store.read("FROM query_event").to_pylist()}


def on(path: str, code: int, body: bytes) -> Fault:
    return lambda asked, handler: asked == path and answer(handler, code, body)


@pytest.mark.parametrize(
    ("fault", "said"), [(on(API, 503, b""), "503"), (on(f"{API}/{APP}/sql", 500, b""), "500")]
)
def test_a_server_in_trouble_is_tried_again_later(
    server: HistoryServer, fault: Fault, said: str
) -> None:
    server.fault = fault
    with pytest.raises(SourceUnavailableError, match=said):
        list(history_source(server.url).pull(None))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (on(API, 200, b"<html>"), "not JSON.*history server"),
        (on(API, 200, b"{}"), "a dict, not a list"),
        (on(API, 404, b""), "404.*history server"),
        (on(API, 403, b""), "may not read"),
    ],
)
def test_what_is_no_history_server_is_not_retried_blindly(
    server: HistoryServer, fault: Fault, said: str
) -> None:
    server.fault = fault
    with pytest.raises(SourceError, match=said) as caught:
        list(history_source(server.url).pull(None))
    assert not isinstance(caught.value, SourceUnavailableError)


def test_a_server_that_never_answers_is_given_up(server: HistoryServer) -> None:
    server.fault = lambda _path, _handler: server.release.wait(30)
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        list(history_source(server.url, seconds=0.2).pull(None))


def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(SourceUnavailableError, match="check that Spark's history server"):
        list(history_source(f"http://127.0.0.1:{free_port()}").pull(None))


def test_all_pages_are_read(server: HistoryServer, store: OwnerStore) -> None:
    for number in range(9):
        server.execute(f"SELECT {number} AS n")
        server.finish(number)
    assert collect(server, store).error is None
    assert len(queries(store)) == 9
    assert server.asked.count(f"{API}/{APP}/sql") == 3


def test_an_application_without_sql_is_nothing_to_report(
    server: HistoryServer, store: OwnerStore
) -> None:
    server.touch(completed=True, endTime=moment(NOW))
    report = collect(server, store)
    assert (report.error, report.dead_letters, queries(store)) == (None, 0, {})
    server.asked.clear()
    collect(server, store)
    assert server.asked == [API]  # it is over: not asked about again


def test_what_still_ran_when_its_application_ended_has_failed(
    server: HistoryServer, store: OwnerStore
) -> None:
    server.execute("SELECT v FROM lake.demo.t")
    collect(server, store)
    assert queries(store)[f"{APP}:0"]["status"] == "running"
    server.touch(completed=True, endTime=moment(NOW + timedelta(seconds=9)))
    collect(server, store)
    row = queries(store)[f"{APP}:0"]
    assert (row["status"], row["ended_at"]) == ("failed", NOW + timedelta(seconds=9))
    assert "ended before this query did" in row["error_message"]


def test_an_application_that_expired_before_it_was_read_is_a_gap_and_leaves_none_running(
    server: HistoryServer, store: OwnerStore
) -> None:
    server.execute("SELECT v FROM lake.demo.t")
    collect(server, store)
    server.apps.clear()
    collect(server, store)
    row = queries(store)[f"{APP}:0"]
    assert (row["status"], row["error_class"]) == ("failed", "history_lost")
    assert [f"{APP}: the history server dropped" in reason for reason in letters(store)] == [True]


def test_one_that_expired_after_it_was_read_is_not(
    server: HistoryServer, store: OwnerStore
) -> None:
    server.execute("SELECT v FROM lake.demo.t")
    server.finish(0)
    server.touch(completed=True, endTime=moment(NOW))
    collect(server, store)
    server.apps.clear()
    assert collect(server, store).dead_letters == 0


def test_a_404_while_it_is_read_is_told(server: HistoryServer, store: OwnerStore) -> None:
    server.execute("SELECT v FROM lake.demo.t")
    server.fault = on(f"{API}/{APP}/sql", 404, b"no such app")
    report = collect(server, store)
    assert (report.error, report.dead_letters) == (None, 1)
    assert "dropped while it was read" in letters(store)[0]


@pytest.mark.parametrize("body", [b"{", b"{}", b"[7]", b'[{"jobId":"x"}]'])
def test_jobs_that_cannot_be_read_now_are_read_the_next_time(
    server: HistoryServer, store: OwnerStore, body: bytes
) -> None:
    server.execute("SELECT v FROM lake.demo.t")
    server.finish(0)
    server.fault = on(f"{API}/{APP}/jobs", 200, body)
    report = collect(server, store)
    assert (report.error, report.dead_letters, queries(store)) == (None, 1, {})
    server.fault = None
    collect(server, store)
    assert queries(store)[f"{APP}:0"]["bytes_scanned"] == BYTES


def test_figures_of_which_the_server_dropped_a_part_are_not_known(
    server: HistoryServer, store: OwnerStore
) -> None:
    server.execute("SELECT v FROM lake.demo.t")
    server.finish(0)
    server.apps[APP]["stages"].clear()
    collect(server, store)
    row = queries(store)[f"{APP}:0"]
    assert (row["status"], row["bytes_scanned"], row["cpu_ms"]) == ("finished", None, None)


def test_executions_of_one_connect_operation_are_one_query_with_its_id_user_and_tags(
    server: HistoryServer, store: OwnerStore
) -> None:
    session = "SparkConnect_SessionTag_User_ana_Session_s_Tag_"
    for number in range(2):
        server.execute("Spark Connect - session_id")
        server.apps[APP]["jobs"][number]["jobTags"] = [
            OPERATION,
            f"{session}team=bi",
            f"{session}lakehelm-gateway-id:gw-7",
        ]
        server.finish(number)
    collect(server, store)
    (row,) = queries(store).values()
    assert (row["query_id"], row["user_name"], row["source"]) == ("op-1", "ana", None)
    assert (row["tags"], row["gateway_id"]) == (["team=bi"], "gw-7")
    assert (row["bytes_scanned"], row["snapshot_ids"]) == (2 * BYTES, [7, 8])
    assert row["sql_text"] is None


@pytest.mark.parametrize(
    ("description", "sql"),
    [
        ("SELECT v FROM lake.demo.t", "SELECT v FROM lake.demo.t"),
        ("count at NativeMethodAccessorImpl.java:0", None),
        ("nightly load", None),
        ("", None),
    ],
)
def test_a_description_is_sql_only_when_it_is_a_statement(
    server: HistoryServer, store: OwnerStore, description: str, sql: str | None
) -> None:
    server.execute(description)
    server.finish(0)
    collect(server, store)
    row = queries(store)[f"{APP}:0"]
    assert (row["sql_text"], row["user_name"], row["source"]) == (sql, "etl", "nightly")


def test_a_failure_says_why_its_stage_failed(server: HistoryServer, store: OwnerStore) -> None:
    server.execute("SELECT 1/0")
    server.finish(0, "FAILED")
    server.apps[APP]["stages"][0]["failureReason"] = (
        "Job aborted: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n\tat org.x(Y.java:1)"
    )
    collect(server, store)
    row = queries(store)[f"{APP}:0"]
    assert (row["status"], row["error_code"]) == ("failed", "DIVIDE_BY_ZERO")
    assert "\tat " not in row["error_message"]


def test_an_entry_of_the_list_that_is_no_application_is_a_letter(
    server: HistoryServer, store: OwnerStore
) -> None:
    server.execute("SELECT v FROM lake.demo.t")
    server.finish(0)
    server.apps["odd"] = {"attempt": {"lastUpdated": "soon"}}
    report = collect(server, store)
    assert (report.error, report.dead_letters, len(queries(store))) == (None, 1, 1)


def test_a_query_links_to_its_page_of_the_server(server: HistoryServer, store: OwnerStore) -> None:
    execution = server.execute("SELECT 1 FROM t")["id"]
    server.finish(execution)
    collect(server, store)
    (row,) = queries(store).values()
    assert row["engine_url"] == f"{server.url}/history/{APP}/SQL/execution/?id={execution}"

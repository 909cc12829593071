"""What a coordinator can do to us, and what we make of it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agents.collect import run_once
from collectors.trino.config import TrinoSettings
from collectors.trino.listener import ListenerSettings, TrinoIntake
from collectors.trino.source import TrinoSource
from collectors.understanding import Understanding
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.gateway.intake import Delivery
from tests.contract.sources.coordinator import Coordinator, answer
from tests.contract.sources.tallies import letters
from tests.factories import NOW, free_port
from tests.unit.collectors.trino.test_listener import completed, to_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.server import BaseHTTPRequestHandler

    from lakehouse_core.store.owner import OwnerStore

    Fault = Callable[[str, BaseHTTPRequestHandler], bool]

pytestmark = pytest.mark.slow

QUERY = "20261116_000000_{:05}_world"


@pytest.fixture
def trino() -> Iterator[Coordinator]:
    made = Coordinator()
    yield made
    made.close()


def source(url: str, *, seconds: float = 5.0, user: str = "lakehelm") -> TrinoSource:
    settings = TrinoSettings(
        engine_id=EngineId("trino"),
        url=url,
        user=user,
        call_timeout=timedelta(seconds=seconds),
        batch_queries=10,
    )
    return TrinoSource(settings, Understanding(), lambda: NOW)


def on_list(code: int, body: bytes, **headers: str) -> Fault:
    def fault(path: str, handler: BaseHTTPRequestHandler) -> bool:
        if path != "/v1/query":
            return False
        return answer(handler, code, body, **headers)

    return fault


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (on_list(429, b"slow down", Retry_After="7"), "429.*7 s"),
        (on_list(500, b"boom"), "500.*log"),
        (on_list(503, b"starting"), "503"),
    ],
)
def test_a_coordinator_in_trouble_is_tried_again_later(
    trino: Coordinator, fault: Fault, said: str
) -> None:
    trino.fault = fault
    with pytest.raises(SourceUnavailableError, match=said) as caught:
        list(source(trino.url).pull(None))
    assert trino.url in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (on_list(200, b"<html>"), "not JSON.*coordinator"),
        (on_list(200, b'{"a": 1}'), "not a list"),
        (on_list(404, b"nothing here"), "404.*coordinator"),
        (on_list(403, b"no"), "lakehelm.*may not"),
        (on_list(401, b"no"), "lakehelm.*may not"),
    ],
)
def test_what_is_no_coordinator_or_refuses_us_is_not_retried_blindly(
    trino: Coordinator, fault: Fault, said: str
) -> None:
    trino.fault = fault
    with pytest.raises(SourceError, match=said) as caught:
        list(source(trino.url).pull(None))
    assert not isinstance(caught.value, SourceUnavailableError)


def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(SourceUnavailableError, match="check that Trino's coordinator is running"):
        list(source(f"http://127.0.0.1:{free_port()}").pull(None))


def test_a_coordinator_that_never_answers_is_given_up(trino: Coordinator) -> None:
    def hang(_path: str, _handler: BaseHTTPRequestHandler) -> bool:
        return trino.release.wait(30)

    trino.fault = hang
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        list(source(trino.url, seconds=0.2).pull(None))


def test_an_answer_that_drips_is_given_up_though_each_drop_is_in_time(trino: Coordinator) -> None:
    def drip(_path: str, handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        for _ in range(2_000):
            if trino.release.wait(0.02):
                break
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                break
        return True

    trino.fault = drip
    with pytest.raises(SourceUnavailableError, match="did not finish"):
        list(source(trino.url, seconds=0.3).pull(None))


def test_a_connection_cut_in_the_middle_is_unavailable(trino: Coordinator) -> None:
    def cut(_path: str, handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"[")
        handler.close_connection = True
        return True

    trino.fault = cut
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        list(source(trino.url).pull(None))


def test_one_unreadable_query_is_a_letter_and_the_rest_arrives(
    trino: Coordinator, store: OwnerStore
) -> None:
    for number in range(3):
        trino.add(QUERY.format(number))

    def garble(path: str, handler: BaseHTTPRequestHandler) -> bool:
        if not path.endswith(QUERY.format(1)):
            return False
        return answer(handler, 200, b'{"queryId": "tor')

    trino.fault = garble
    report = run_once(source(trino.url), store, lambda: NOW, timeout=timedelta(minutes=1))
    assert report.error is None
    assert (report.dead_letters, store.read("FROM query_event").num_rows) == (1, 2)
    assert re.search(f"{QUERY.format(1)}.*not JSON", letters(store)[0])


def test_a_fault_half_way_keeps_what_was_read_and_goes_on_from_there(
    trino: Coordinator, store: OwnerStore
) -> None:
    for number in range(25):
        trino.add(QUERY.format(number))
    trino.fault = lambda path, handler: (
        path.endswith(QUERY.format(15)) and answer(handler, 500, b"")
    )
    report = run_once(source(trino.url), store, lambda: NOW, timeout=timedelta(minutes=1))
    assert report.is_unreachable
    assert report.result.outcome == "partial"
    assert store.read("FROM query_event").num_rows == 10
    trino.fault = None
    trino.asked.clear()
    run_once(source(trino.url), store, lambda: NOW, timeout=timedelta(minutes=1))
    assert store.read("FROM query_event").num_rows == 25
    assert len(trino.asked) == 1 + 15  # the list, and only what was not read before


def test_details_are_asked_for_once_per_query(trino: Coordinator, store: OwnerStore) -> None:
    for number in range(5):
        trino.add(QUERY.format(number))
    trino.add(QUERY.format(9), state="RUNNING")
    reader = source(trino.url)
    for _ in range(3):
        run_once(reader, store, lambda: NOW, timeout=timedelta(minutes=1))
    assert len(trino.asked) == 3 + 5


def test_figures_still_coming_in_are_waited_for(trino: Coordinator, store: OwnerStore) -> None:
    basic = trino.add(QUERY.format(1), finalQueryInfo=False)
    reader = source(trino.url)
    run_once(reader, store, lambda: NOW, timeout=timedelta(minutes=1))
    assert store.read("FROM query_event").num_rows == 0
    basic["finalQueryInfo"] = True
    run_once(reader, store, lambda: NOW, timeout=timedelta(minutes=1))
    assert store.read("FROM query_event").num_rows == 1


def test_a_query_that_trino_forgot_between_list_and_details_is_taken_from_the_list(
    trino: Coordinator, store: OwnerStore
) -> None:
    trino.add(QUERY.format(1))
    trino.fault = lambda path, handler: path != "/v1/query" and answer(handler, 410, b"Gone")
    report = run_once(source(trino.url), store, lambda: NOW, timeout=timedelta(minutes=1))
    assert report.error is None
    assert store.read("FROM query_event").num_rows == 1


@pytest.mark.parametrize(
    ("coordinator", "said"), [("other", "was restarted"), ("world", "not known")]
)
def test_a_running_query_that_disappears_is_not_left_running_forever(
    trino: Coordinator, store: OwnerStore, coordinator: str, said: str
) -> None:
    trino.add(QUERY.format(1), state="RUNNING")
    reader = source(trino.url)
    run_once(reader, store, lambda: NOW, timeout=timedelta(minutes=1))
    trino.queries.clear()
    trino.add(f"20261116_000000_00002_{coordinator}")
    run_once(reader, store, lambda: NOW, timeout=timedelta(minutes=1))
    lost = store.read(
        "SELECT status, error_class, error_message FROM query_event WHERE query_id = $id",
        id=QUERY.format(1),
    ).to_pylist()[0]
    assert (lost["status"], lost["error_class"]) == ("failed", "history_lost")
    assert said in lost["error_message"]
    ours = [reason for reason in letters(store) if reason.startswith(QUERY.format(1))]
    assert len(ours) == 1


def test_a_secret_in_a_running_query_reaches_neither_event_nor_position(
    trino: Coordinator, store: OwnerStore
) -> None:
    trino.add(QUERY.format(1), state="RUNNING", query="ALTER USER bob SET PASSWORD 'c4n4ry'")
    run_once(source(trino.url), store, lambda: NOW, timeout=timedelta(minutes=1))
    for table in ("query_event", "watermark", "query_template", "dead_letter"):
        rows = store.read(f"FROM {table}").to_pylist()
        assert "c4n4ry" not in json.dumps(rows, default=str)


def pushed(query_id: str) -> bytes:
    """What Trino's event listener sends when a query has finished."""
    event = completed()[2]
    event["metadata"]["queryId"] = query_id
    return to_body(event)


def test_a_restart_loses_nothing_that_was_pushed_and_is_recorded(
    trino: Coordinator, store: OwnerStore
) -> None:
    intake = TrinoIntake(
        [ListenerSettings(engine_id=EngineId("trino"), url=trino.url)], Understanding(), lambda: NOW
    )
    trino.add(QUERY.format(1))
    trino.add(QUERY.format(2), state="RUNNING")
    pulling = source(trino.url)
    run_once(pulling, store, lambda: NOW, timeout=timedelta(seconds=30))
    # The second ends, a third comes and goes, and then Trino forgets it all.
    mapped = intake.map([Delivery({}, pushed(QUERY.format(n))) for n in (2, 3)])
    for table, rows in mapped.rows.items():
        store.upsert(table, rows)
    trino.queries.clear()
    trino.add("20261116_000500_00000_again")
    run_once(pulling, store, lambda: NOW, timeout=timedelta(seconds=30))
    rows = store.read("SELECT query_id, status, error_class FROM query_event").to_pylist()
    assert {row["query_id"]: (row["status"], row["error_class"]) for row in rows} == {
        QUERY.format(1): ("finished", None),
        QUERY.format(2): ("finished", None),
        QUERY.format(3): ("finished", None),
        "20261116_000500_00000_again": ("finished", None),
    }
    told = store.read("SELECT reason FROM dead_letter WHERE payload LIKE 'restart%'").to_pylist()
    assert len(told) == 1
    assert "query 2 of 20261116" in told[0]["reason"]
    run_once(pulling, store, lambda: NOW, timeout=timedelta(seconds=30))
    again = store.read("SELECT reason FROM dead_letter WHERE payload LIKE 'restart%'").to_pylist()
    assert again == told

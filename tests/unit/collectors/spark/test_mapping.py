"""The mapping on the log of a real Spark Connect server (4.1.4, Iceberg 1.12): see the fixture.

Its client ran, in this order: CREATE NAMESPACE, CREATE TABLE, INSERT of 1,000 rows, a grouped
SELECT, a SELECT with a parameter, a SELECT nobody fetched, three that failed, a DataFrame count,
SHOW TABLES shown, one SELECT fetched twice, a DELETE, local rows fetched, a SELECT that was
interrupted, and a last SELECT.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from collectors.spark.lines import decode, event_name
from collectors.spark.mapping import session_url, to_observed
from collectors.spark.queries import TrackedQuery
from collectors.spark.tracker import Tracker
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from tests.factories import NOW

if TYPE_CHECKING:
    from collectors.understanding import Observed

LOG = Path(__file__).parents[3] / "integration" / "fixtures" / "spark"


@pytest.fixture(scope="module")
def events() -> list[tuple[str, dict[str, Any]]]:
    (file,) = LOG.glob("*/events_1_*.zstd")
    stream = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    lines = stream.decompress(file.read_bytes()).splitlines()
    return [(event_name(line), json.loads(line)) for line in lines]


def follow(tracker: Tracker, events: list[tuple[str, dict[str, Any]]]) -> None:
    for name, event in events:
        if tracker.wants(name):
            tracker.feed(name, decode(name, json.dumps(event).encode()))


def observe(query: TrackedQuery, tracker: Tracker) -> Observed:
    return to_observed(EngineId("spark"), query, tracker.application, "other", NOW)


@pytest.fixture(scope="module")
def mapped(events: list[tuple[str, dict[str, Any]]]) -> dict[str, QueryEvent]:
    """The events by SQL text (the last of those with one text)."""
    tracker = Tracker(1_000)
    follow(tracker, events)
    found = [observe(q, tracker).event for q in tracker.take_changed() if q.counts]
    return {event.sql_text or "": event for event in found}


def test_each_statement_is_counted_once(events: list[tuple[str, dict[str, Any]]]) -> None:
    tracker = Tracker(1_000)
    follow(tracker, events)
    texts = [(q.sql or "")[:12] for q in tracker.take_changed() if q.counts]
    assert texts == [
        "CREATE NAMES",
        "CREATE TABLE",
        "INSERT INTO ",
        "SELECT d, co",
        "SELECT * FRO",
        "SELECT * FRO",  # no such table
        "SELEC 1",
        "SELECT 1/0 A",
        "",  # the DataFrame
        "SHOW TABLES ",
        "SELECT 'it''",
        "SELECT 'it''",  # fetched twice, run twice
        "DELETE FROM ",
        "SELECT count",  # interrupted
        "SELECT count",
    ]


def test_a_select_has_its_user_tags_times_and_measures(mapped: dict[str, QueryEvent]) -> None:
    event = mapped["SELECT d, count(*) c FROM lake.demo.t WHERE id > 10 GROUP BY d ORDER BY d"]
    assert event.status is QueryStatus.FINISHED
    assert (event.user_name, event.source, event.tags) == ("ana", "lakehelm-test", ("team=bi",))
    assert (event.planning_ms, event.execution_ms, event.elapsed_ms) == (2_862, 10_800, 13_662)
    assert event.cpu_ms == pytest.approx(1_247.226385)  # four stages
    assert (event.bytes_scanned, event.rows_scanned, event.rows_returned) == (3_846, 1_000, 10)
    assert event.spilled_bytes == 0
    assert event.snapshot_ids == (4965316043585686940,)


def test_a_write_has_what_it_wrote(mapped: dict[str, QueryEvent]) -> None:
    (insert,) = [e for text, e in mapped.items() if text.startswith("INSERT")]
    (delete,) = [e for text, e in mapped.items() if text.startswith("DELETE")]
    assert (insert.rows_written, insert.bytes_written) == (1_000, 3_790)
    assert (delete.rows_written, delete.bytes_scanned) == (497, 4_128)
    assert insert.rows_returned is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM lake.demo.nope", "TABLE_OR_VIEW_NOT_FOUND"),
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT 1/0 AS boom FROM lake.demo.t", "DIVIDE_BY_ZERO"),
    ],
)
def test_a_failure_has_its_condition_and_no_stack_trace(
    mapped: dict[str, QueryEvent], text: str, code: str
) -> None:
    event = mapped[text]
    assert event.status is QueryStatus.FAILED
    assert (event.error_class, event.error_code) == ("user_error", code)
    assert event.error_message is not None
    assert event.error_message.startswith(f"[{code}]")
    assert "\tat " not in event.error_message


def test_an_interrupted_query_is_cancelled(mapped: dict[str, QueryEvent]) -> None:
    (event,) = [e for text, e in mapped.items() if "range(100000000000)" in text]
    assert event.status is QueryStatus.CANCELLED
    assert event.rows_scanned == 291_300_000  # of the tasks that were killed


def test_quotes_line_ends_and_accents_come_out_of_the_protobuf_text(
    mapped: dict[str, QueryEvent],
) -> None:
    assert "SELECT 'it''s; \"quoted\"\nnewline é' AS s" in mapped


def test_a_command_that_ran_no_task_was_not_measured(mapped: dict[str, QueryEvent]) -> None:
    event = mapped["SHOW TABLES IN lake.demo"]
    assert event.bytes_scanned is None
    assert event.cpu_ms is None


def test_the_logs_default_catalog_resolves_unqualified_tables(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    tracker = Tracker(1_000)
    follow(tracker, events)
    query = tracker.take_changed()[0]
    assert observe(query, tracker).default_catalog == "lake"


def test_a_query_runs_until_all_about_it_is_known(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    """Every query gets one final row, wherever the log is cut; one whose tasks were killed more."""
    tracker = Tracker(1_000)
    finals: list[QueryEvent] = []
    for event in events:
        follow(tracker, [event])
        changed = [observe(q, tracker).event for q in tracker.take_changed() if q.counts]
        finals += [e for e in changed if e.status.revision == 2]
    ended = [e.query_id for e in finals if e.status is not QueryStatus.CANCELLED]
    assert len(ended) == len(set(ended)) == 14
    cancelled = [e for e in finals if e.status is QueryStatus.CANCELLED]
    assert len({e.query_id for e in cancelled}) == 1
    assert len({(e.submitted_at, e.ended_at, e.error_message) for e in cancelled}) == 1
    figures = [e.rows_scanned or 0 for e in cancelled]
    assert figures == sorted(figures)
    assert figures[-1] == 291_300_000


def until(
    events: list[tuple[str, dict[str, Any]]], last: str
) -> tuple[list[tuple[str, dict[str, Any]]], list[tuple[str, dict[str, Any]]]]:
    """The log up to the first event of this name behind the interruption, and the rest."""
    start = next(n for n, (name, _) in enumerate(events) if name.endswith("OperationCanceled"))
    end = next(n for n in range(start, len(events)) if events[n][0].endswith(last))
    return events[: end + 1], events[end + 1 :]


def final_rows(tracker: Tracker) -> dict[str, QueryEvent]:
    found = [observe(q, tracker).event for q in tracker.take_changed() if q.counts]
    return {e.sql_text or "": e for e in found if e.status.revision == 2}


def test_a_cancelled_query_does_not_wait_for_the_end_of_its_killed_tasks(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    """As logged: the tasks' ends come last, and Spark flushes nothing for them."""
    flushed, behind = until(events, "SparkListenerJobEnd")
    tracker = Tracker(1_000)
    follow(tracker, flushed)
    (text, event) = next(
        (t, e) for t, e in final_rows(tracker).items() if e.status is QueryStatus.CANCELLED
    )
    assert event.ended_at is not None
    tracker = Tracker.load(json.loads(json.dumps(tracker.dump())), 1_000)
    follow(tracker, behind)
    amended = final_rows(tracker)[text]
    assert (amended.status, amended.ended_at) == (QueryStatus.CANCELLED, event.ended_at)
    assert amended.rows_scanned == 291_300_000


@pytest.mark.parametrize(
    ("lacking", "status"),
    [
        (("OperationClosed",), "cancelled"),  # the client let go while it was being interrupted
        (("OperationCanceled", "OperationClosed"), "cancelled"),  # its session was closed meanwhile
    ],
)
def test_a_query_whose_end_spark_did_not_post_ends_with_what_it_did_post(
    events: list[tuple[str, dict[str, Any]]], lacking: tuple[str, ...], status: str
) -> None:
    (operation,) = [e["operationId"] for name, e in events if name.endswith("OperationCanceled")]
    kept = [
        (name, event)
        for name, event in events
        if not (event.get("operationId") == operation and name.endswith(lacking))
    ]
    end = next(n for n, (name, _) in enumerate(kept) if name.endswith("ConnectSessionClosed"))
    tracker = Tracker(1_000)
    follow(tracker, kept[: end + 1])
    assert "SparkListenerApplicationEnd" not in [name for name, _ in kept[: end + 1]]
    assert [e.status for e in final_rows(tracker).values() if e.query_id == operation] == [status]


def test_a_query_that_its_client_let_go_of_before_spark_noticed_its_end_has_finished(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    """Spark then posts Finished, late, and never Closed."""
    told, without = Tracker(1_000), Tracker(1_000)
    end = next(n for n, (name, _) in enumerate(events) if name.endswith("ConnectSessionClosed"))
    ended = {e["operationId"] for name, e in events[:end] if name.endswith("OperationFinished")}
    follow(told, events[:end])
    follow(
        without,
        [
            (name, event)
            for name, event in events[:end]
            if not (event.get("operationId") in ended and name.endswith("OperationClosed"))
        ],
    )
    assert len(ended) > 5
    assert final_rows(without) == final_rows(told)


def test_a_tracker_taken_up_from_its_dump_goes_on_as_if_nothing_happened(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    straight = Tracker(1_000)
    follow(straight, events)
    expected = {q.key: observe(q, straight) for q in straight.take_changed() if q.counts}
    tracker = Tracker(1_000)
    found: dict[str, Observed] = {}
    for event in events:
        follow(tracker, [event])
        found |= {q.key: observe(q, tracker) for q in tracker.take_changed() if q.counts}
        tracker = Tracker.load(json.loads(json.dumps(tracker.dump())), 1_000)
    assert found == expected


def test_what_still_runs_when_the_application_is_gone_has_failed(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    tracker = Tracker(1_000)
    interrupted = next(
        number for number, (name, _) in enumerate(events) if name.endswith("OperationCanceled")
    )
    follow(tracker, events[:interrupted])
    tracker.take_changed()
    tracker.abandon("the Spark application ended before this query did")
    left = [observe(q, tracker).event for q in tracker.take_changed() if q.counts]
    assert [e.status for e in left] == [QueryStatus.FAILED]
    assert left[0].error_message == "the Spark application ended before this query did"
    assert left[0].ended_at is not None


def test_the_number_of_open_queries_is_bounded(events: list[tuple[str, dict[str, Any]]]) -> None:
    tracker = Tracker(2)
    started = [event for event in events if event[0].endswith("OperationStarted")]
    follow(tracker, started)
    tracker.take_changed()
    assert len(tracker.queries) <= 2


def test_a_secret_neither_stays_in_the_position_nor_in_the_message() -> None:
    tracker = Tracker(10)
    text = 'sql_command {\n  input {\n    sql {\n      query: "SET s.secret.key=c4n4ry"\n}\n}\n}\n'
    operation = {"operationId": "op", "eventTime": 1_000, "jobTag": "t"}
    tracker.feed("SparkListenerConnectOperationStarted", {**operation, "statementText": text})
    tracker.take_changed()
    assert "c4n4ry" not in json.dumps(tracker.dump())
    tracker.feed(
        "SparkListenerConnectOperationFailed", {**operation, "errorMessage": "bad value c4n4ry"}
    )
    tracker.feed("SparkListenerConnectOperationClosed", operation)
    (query,) = tracker.take_changed()
    event = observe(query, tracker).event
    assert "c4n4ry" not in (event.error_message or "")
    assert "c4n4ry" not in (event.sql_text or "")


def test_a_query_of_a_server_we_manage_links_to_its_session(
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    tracker = Tracker(2_000)
    follow(tracker, events[: len(events) // 2])
    query = next(one for one in tracker.queries.values() if one.session)
    url = session_url("http://127.0.0.1:4040", query)
    assert url == f"http://127.0.0.1:4040/connect/session/?id={query.session}"
    assert session_url(None, query) is None
    assert session_url("http://127.0.0.1:4040", TrackedQuery("k", 1, is_operation=False)) is None

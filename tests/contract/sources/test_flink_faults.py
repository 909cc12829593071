"""What a JobManager can do to us, and what we make of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agents.collect import run_once
from lakehouse_core.domain.errors import SourceError, SourceUnavailableError
from tests.contract.sources.coordinator import answer
from tests.contract.sources.flink_world import flink_source
from tests.contract.sources.jobmanager import JobManager
from tests.contract.sources.tallies import letters
from tests.factories import NOW, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.server import BaseHTTPRequestHandler

    from agents.collect import CollectReport
    from lakehouse_core.store.owner import OwnerStore

    Fault = Callable[[str, BaseHTTPRequestHandler], bool]

pytestmark = pytest.mark.slow

JOB = f"{7:032x}"
OTHER = f"{8:032x}"


@pytest.fixture
def flink() -> Iterator[JobManager]:
    made = JobManager()
    yield made
    made.close()


def collect(flink: JobManager, store: OwnerStore) -> CollectReport:
    return run_once(flink_source(flink.url), store, lambda: NOW, timeout=timedelta(minutes=1))


def jobs(store: OwnerStore) -> dict[str, dict[str, Any]]:
    return {row["query_id"]: row for row in store.read("FROM query_event").to_pylist()}


def on(path: str, code: int, body: bytes, **headers: str) -> Fault:
    def fault(asked: str, handler: BaseHTTPRequestHandler) -> bool:
        return asked == path and answer(handler, code, body, **headers)

    return fault


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (on("/overview", 503, b'{"errors":["starting"]}'), "503"),
        (on("/jobs/overview", 429, b"", Retry_After="7"), "429.*7 s"),
        (on("/jobs/overview", 500, b"boom"), "500.*log"),
        (on("/jobmanager/config", 500, b"boom"), "500"),
    ],
)
def test_a_job_manager_in_trouble_is_tried_again_later(
    flink: JobManager, fault: Fault, said: str
) -> None:
    flink.fault = fault
    with pytest.raises(SourceUnavailableError, match=said) as caught:
        list(flink_source(flink.url).pull(None))
    assert flink.url in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (on("/overview", 200, b"<html>"), "not JSON.*JobManager"),
        (on("/overview", 200, b'["a"]'), "a list, not a dict"),
        (on("/overview", 200, b'{"jobs-finished":"many"}'), "jobs-finished: 'many'"),
        (on("/jobs/overview", 200, b'{"jobs":7}'), "no list of jobs"),
        (on("/jobs/overview", 404, b"nothing here"), "404.*JobManager"),
        (on("/jobs/overview", 403, b"no"), "may not read"),
        (on("/jobs/overview", 200, b"[" * 100_000), "not JSON"),
    ],
)
def test_what_is_no_job_manager_or_refuses_us_is_not_retried_blindly(
    flink: JobManager, fault: Fault, said: str
) -> None:
    flink.fault = fault
    with pytest.raises(SourceError, match=said) as caught:
        list(flink_source(flink.url).pull(None))
    assert not isinstance(caught.value, SourceUnavailableError)


def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(SourceUnavailableError, match="check that Flink's JobManager is running"):
        list(flink_source(f"http://127.0.0.1:{free_port()}").pull(None))


def test_a_job_manager_that_never_answers_is_given_up(flink: JobManager) -> None:
    flink.fault = lambda _path, _handler: flink.release.wait(30)
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        list(flink_source(flink.url, seconds=0.2).pull(None))


def test_an_answer_that_drips_is_given_up_though_each_drop_is_in_time(flink: JobManager) -> None:
    def drip(_path: str, handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not flink.release.wait(0.02):
            try:
                handler.wfile.write(b" ")
                handler.wfile.flush()
            except OSError:
                break
        return True

    flink.fault = drip
    with pytest.raises(SourceUnavailableError, match="did not finish"):
        list(flink_source(flink.url, seconds=0.3).pull(None))


@pytest.mark.parametrize("body", [b'{"jid": "tor', b"[]", b'{"state":"DREAMING"}', b"\xff\xfe"])
def test_one_unreadable_job_is_a_letter_and_the_rest_arrives(
    flink: JobManager, store: OwnerStore, body: bytes
) -> None:
    for job_id in (JOB, OTHER):
        flink.start(job_id)
        flink.end(job_id)
    flink.fault = on(f"/jobs/{JOB}", 200, body)
    report = collect(flink, store)
    assert report.error is None
    assert list(jobs(store)) == [OTHER]
    assert [JOB in reason for reason in letters(store)] == [True]
    assert store.read("SELECT DISTINCT job_id FROM flink_job").to_pylist() == [{"job_id": OTHER}]


def test_a_running_job_that_cannot_be_read_now_is_read_the_next_time(
    flink: JobManager, store: OwnerStore
) -> None:
    flink.start(JOB)
    flink.fault = on(f"/jobs/{JOB}/checkpoints", 200, b"<html>")
    collect(flink, store)
    assert jobs(store) == {}
    flink.fault = None
    collect(flink, store)
    assert jobs(store)[JOB]["status"] == "running"


def test_a_fault_half_way_keeps_what_was_read_and_goes_on_from_there(
    flink: JobManager, store: OwnerStore
) -> None:
    for number in range(10):
        flink.start(f"{number:032x}")
        flink.end(f"{number:032x}")
    flink.fault = on(f"/jobs/{7:032x}", 500, b"")
    report = collect(flink, store)
    assert (report.is_unreachable, len(jobs(store))) == (True, 6)
    flink.fault = None
    flink.asked.clear()
    assert collect(flink, store).error is None
    assert len(jobs(store)) == 10
    assert f"/jobs/{2:032x}" not in flink.asked
    assert letters(store) == []


def test_a_restart_closes_what_ran_and_is_told(flink: JobManager, store: OwnerStore) -> None:
    flink.start(JOB)
    collect(flink, store)
    flink.restart()
    flink.start(OTHER)
    collect(flink, store)
    found = jobs(store)
    assert (found[JOB]["status"], found[JOB]["error_class"]) == ("failed", "history_lost")
    assert "restarted while this job ran" in found[JOB]["error_message"]
    assert found[OTHER]["status"] == "running"
    assert len(letters(store)) == 2
    collect(flink, store)
    assert len(letters(store)) == 2


def test_a_restart_that_takes_the_jobs_up_again_closes_none(
    flink: JobManager, store: OwnerStore
) -> None:
    flink.start(JOB, NOW - timedelta(hours=2))
    collect(flink, store)
    submitted = jobs(store)[JOB]["submitted_at"]
    flink.restart()
    flink.start(JOB, NOW)
    collect(flink, store)
    assert (jobs(store)[JOB]["status"], jobs(store)[JOB]["submitted_at"]) == ("running", submitted)
    assert ["restarted" in reason for reason in letters(store)] == [True]


def test_without_a_readable_configuration_a_count_that_shrank_shows_the_restart(
    flink: JobManager, store: OwnerStore
) -> None:
    flink.fault = on("/jobmanager/config", 403, b"no")
    flink.start(JOB)
    flink.end(JOB)
    collect(flink, store)
    flink.restart()
    collect(flink, store)
    assert ["restarted" in reason for reason in letters(store)] == [True]


def test_a_job_forgotten_before_its_end_was_read_is_closed_and_missed_no_second_time(
    flink: JobManager, store: OwnerStore
) -> None:
    flink.start(JOB)
    collect(flink, store)
    flink.end(JOB)
    flink.jobs.clear()
    collect(flink, store)
    assert jobs(store)[JOB]["error_class"] == "history_lost"
    assert ["how it ended is not known" in reason for reason in letters(store)] == [True]


def test_a_job_whose_details_are_older_than_the_list_is_settled_later_and_not_missed(
    flink: JobManager, store: OwnerStore
) -> None:
    flink.start(JOB)
    collect(flink, store)
    stale = dict(flink.jobs[JOB]["detail"])
    flink.end(JOB)
    fresh, flink.jobs[JOB]["detail"] = flink.jobs[JOB]["detail"], stale
    collect(flink, store)
    assert jobs(store)[JOB]["status"] == "running"
    flink.jobs[JOB]["detail"] = fresh
    collect(flink, store)
    assert jobs(store)[JOB]["status"] == "finished"
    assert letters(store) == []


def test_a_job_dropped_between_list_and_detail_is_taken_from_the_list(
    flink: JobManager, store: OwnerStore
) -> None:
    flink.start(JOB)
    flink.end(JOB)
    flink.fault = lambda path, handler: (
        path.startswith(f"/jobs/{JOB}") and answer(handler, 404, b"{}")
    )
    assert collect(flink, store).error is None
    assert jobs(store)[JOB]["status"] == "finished"


def test_checkpoints_and_slot_time_follow_the_job(flink: JobManager, store: OwnerStore) -> None:
    flink.start(JOB)
    collect(flink, store)
    detail = flink.jobs[JOB]["detail"]
    newest = flink.jobs[JOB]["checkpoints"]["history"][0]
    flink.jobs[JOB]["checkpoints"]["history"] = [{**newest, "id": 40, "status": "FAILED"}, newest]
    flink.end(JOB, "CANCELED", seconds=600)
    collect(flink, store)
    checkpoints = store.read("FROM flink_checkpoint ORDER BY checkpoint_id").to_pylist()
    assert [c["checkpoint_id"] for c in checkpoints] == [*range(9, 19), 40]
    assert checkpoints[-1]["status"] == "failed"
    (held,) = store.read("FROM flink_slot_time").to_pylist()
    started = detail["timestamps"]["RUNNING"] - detail["start-time"]
    assert held["ended_at"] - held["started_at"] == timedelta(milliseconds=600_000 - started)
    assert held["slots"] == 1
    assert store.read("SELECT state FROM flink_job").to_pylist() == [{"state": "CANCELED"}]


def test_a_secret_reaches_neither_event_nor_position_nor_letter(
    flink: JobManager, store: OwnerStore
) -> None:
    flink.start(JOB)
    for form in ("listed", "detail"):
        flink.jobs[JOB][form]["name"] = "insert with password='c4n4ry'"
    flink.start(OTHER)
    flink.jobs[OTHER]["detail"] |= {"state": "ODD", "name": "password='c4n4ry'"}
    flink.jobs[OTHER]["listed"] |= {"name": "password='c4n4ry'"}
    collect(flink, store)
    for table in ("query_event", "watermark", "flink_job", "dead_letter"):
        rows = store.read(f"FROM {table}").to_pylist()
        assert rows
        assert "c4n4ry" not in json.dumps(rows, default=str)

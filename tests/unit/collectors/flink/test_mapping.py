from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from collectors.base import BadRowError
from collectors.flink.mapping import (
    JobPayloads,
    lost,
    slots_of,
    to_checkpoints,
    to_event,
    to_job,
)
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from tests.factories import NOW
from tests.unit.collectors.flink.recorded import job, payloads

ENGINE = EngineId("flink")
URL = "http://flink:8081"
JOB = "bbfccd0e77a2b9014a098e65739820f7"


def event(payload: JobPayloads, before: QueryEvent | None = None) -> QueryEvent:
    return to_event(ENGINE, URL, payload, before, NOW)


def test_a_running_job_is_one_long_query() -> None:
    found = event(job("running"))
    assert (found.query_id, found.source, found.status) == (
        JOB,
        "orders into the lake",
        QueryStatus.RUNNING,
    )
    assert found.submitted_at == datetime(2026, 11, 16, 9, 54, 2, 3_000, UTC)
    assert found.started_at == found.submitted_at + timedelta(milliseconds=1_375)
    assert found.queued_ms == 1_375
    assert found.elapsed_ms is not None
    assert found.elapsed_ms > 24_000
    assert (found.ended_at, found.execution_ms) == (None, None)
    assert found.engine_url == f"{URL}/#/job/running/{JOB}/overview"
    assert (found.sql_text, found.dialect, found.bytes_scanned) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "status", "elapsed"),
    [
        ("cancelled", QueryStatus.CANCELLED, 187_730),
        ("finished", QueryStatus.FINISHED, 1_003),
        ("failed", QueryStatus.FAILED, 888),
    ],
)
def test_a_job_that_is_over_ends_as_flink_says(
    name: str, status: QueryStatus, elapsed: float
) -> None:
    found = event(job(name))
    assert (found.status, found.elapsed_ms) == (status, elapsed)
    assert found.ended_at == found.submitted_at + timedelta(milliseconds=elapsed)
    assert found.execution_ms == pytest.approx(elapsed - (found.queued_ms or 0))


def test_a_failure_names_its_root_cause_and_has_no_stack_trace() -> None:
    found = event(job("failed"))
    assert found.error_code == "ArithmeticException"
    assert found.error_message == (
        "org.apache.flink.runtime.JobException: Recovery is suppressed by "
        "NoRestartBackoffTimeStrategy; caused by java.lang.ArithmeticException: / by zero"
    )


def test_a_secret_in_a_failure_is_not_kept() -> None:
    payload = payloads("failed")
    entry = payload["exceptions"]["exceptionHistory"]["entries"][0]
    entry["stacktrace"] = "java.sql.SQLException: no access with password=c4n4ry\n"
    assert "c4n4ry" not in str(event(JobPayloads(**payload)))


def test_a_job_that_a_new_leader_took_up_keeps_its_beginning() -> None:
    first = event(job("running"))
    payload = payloads("running")
    payload["detail"]["start-time"] += 3_600_000
    payload["detail"]["timestamps"]["RUNNING"] += 3_600_000
    again = event(JobPayloads(**payload), first)
    assert (again.submitted_at, again.started_at) == (first.submitted_at, first.started_at)


def test_a_job_that_flink_dropped_between_list_and_detail_is_taken_from_the_list() -> None:
    found = event(replace(job("finished"), detail=None, checkpoints=None))
    assert (found.status, found.elapsed_ms) == (QueryStatus.FINISHED, 1_003)


def test_a_lost_job_is_closed_as_not_known() -> None:
    found = lost(event(job("running")), "gone")
    assert (found.status, found.error_class, found.ended_at) == (
        QueryStatus.FAILED,
        "history_lost",
        None,
    )


def test_what_only_flink_has_goes_into_its_own_table() -> None:
    row = to_job(ENGINE, job("running"), NOW)
    assert (row.job_name, row.state, row.job_type) == (
        "orders into the lake",
        "RUNNING",
        "STREAMING",
    )
    assert (row.slots, row.parallelism) == (1, 1)
    assert (row.checkpoint_interval_ms, row.checkpoint_mode) == (1_000, "exactly_once")
    assert (row.checkpoints_completed, row.checkpoints_failed) == (18, 5)
    assert (row.exchanged_bytes, row.exchanged_records) == (2_018, 0)


def test_a_job_without_periodic_checkpoints_has_no_interval() -> None:
    row = to_job(ENGINE, job("finished"), NOW)
    assert (row.checkpoint_interval_ms, row.checkpoint_mode) == (None, None)


def test_figures_that_not_all_tasks_have_told_are_not_known() -> None:
    payload = payloads("running")
    payload["detail"]["vertices"][0]["metrics"]["read-bytes-complete"] = False
    assert to_job(ENGINE, JobPayloads(**payload), NOW).exchanged_bytes is None


def test_vertices_of_one_sharing_group_share_slots() -> None:
    detail = {
        "vertices": [
            {"slotSharingGroupId": "a", "parallelism": 4},
            {"slotSharingGroupId": "a", "parallelism": 2},
            {"slotSharingGroupId": "b", "parallelism": 3},
        ]
    }
    assert slots_of(detail) == 7
    assert slots_of({"vertices": []}) is None


def test_checkpoints_come_oldest_first_with_time_and_size() -> None:
    found = list(to_checkpoints(ENGINE, job("running")))
    assert [c.checkpoint_id for c in found] == list(range(9, 19))
    last = found[-1]
    assert (last.status, last.revision, last.duration_ms) == ("completed", 1, 45)
    assert (last.state_bytes, last.is_savepoint, last.checkpoint_type) == (
        3_416,
        False,
        "CHECKPOINT",
    )
    assert last.ended_at == last.triggered_at + timedelta(milliseconds=45)


def test_a_checkpoint_in_progress_has_no_end() -> None:
    payload = payloads("running")
    payload["checkpoints"]["history"][0] |= {"status": "IN_PROGRESS", "end_to_end_duration": 7}
    last = list(to_checkpoints(ENGINE, JobPayloads(**payload)))[-1]
    assert (last.revision, last.ended_at, last.duration_ms) == (0, None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "DREAMING"}, "state: 'DREAMING'"),
        ({"state": None}, "state"),
        ({"start-time": "soon"}, "start-time: 'soon'"),
        ({"start-time": -1}, "missing field start-time"),
        ({"start-time": 10**17}, "start-time"),
        ({"start-time": True}, "start-time"),
    ],
)
def test_a_field_that_does_not_fit_is_named(change: dict[str, object], said: str) -> None:
    payload = payloads("running")
    payload["detail"] |= change
    with pytest.raises(BadRowError, match=said):
        event(JobPayloads(**payload))


@pytest.mark.parametrize("change", [{"id": None}, {"trigger_timestamp": "x"}, {"status": 3}])
def test_a_checkpoint_that_cannot_be_understood_is_told(change: dict[str, object]) -> None:
    payload = payloads("running")
    payload["checkpoints"]["history"][3] |= change
    with pytest.raises(BadRowError):
        list(to_checkpoints(ENGINE, JobPayloads(**payload)))

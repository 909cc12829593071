"""Flink's job JSON → query events, jobs and checkpoints. Pure.

A job is one long query: `query_id` is the job id, `source` its name; there is no SQL text to read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from collectors.base import BadRowError
from collectors.flink.payload import moment, number, objects, section, text
from lakehouse_core.domain.flink import FlinkCheckpoint, FlinkJob
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus
from lakehouse_core.sql.redaction import is_suspicious

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

_STATUS = {
    "INITIALIZING": QueryStatus.QUEUED,
    "CREATED": QueryStatus.QUEUED,
    "RUNNING": QueryStatus.RUNNING,
    "FAILING": QueryStatus.RUNNING,
    "CANCELLING": QueryStatus.RUNNING,
    "RESTARTING": QueryStatus.RUNNING,
    "RECONCILING": QueryStatus.RUNNING,
    "SUSPENDED": QueryStatus.RUNNING,  # its JobManager stepped down; another takes it up
    "FINISHED": QueryStatus.FINISHED,
    "FAILED": QueryStatus.FAILED,
    "CANCELED": QueryStatus.CANCELLED,
}
_MILLISECOND = timedelta(milliseconds=1)
_HIDDEN = "(not kept: may hold a secret)"
_CAUSE = "Caused by: "


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPayloads:
    """What was asked about one job; `listed` is its entry in `/jobs/overview`."""

    listed: Mapping[str, Any]
    detail: Mapping[str, Any] | None = None
    checkpoints: Mapping[str, Any] | None = None
    checkpoint_config: Mapping[str, Any] | None = None
    exceptions: Mapping[str, Any] | None = None

    @property
    def job_id(self) -> str:
        """The job's id; the caller made sure that there is one."""
        return str(self.listed["jid"])

    @property
    def newest(self) -> Mapping[str, Any]:
        """The detail when there is one: it was read after the list."""
        return self.detail if self.detail is not None else self.listed


def status_of(payload: Mapping[str, Any]) -> QueryStatus:
    """Where a job is in its life.

    Raises:
        BadRowError: in a state we do not know.
    """
    state = payload.get("state")
    if not isinstance(state, str) or state not in _STATUS:
        raise BadRowError(f"field state: {state!r:.80} is no state of a Flink job")
    return _STATUS[state]


def to_event(
    engine_id: EngineId, url: str, job: JobPayloads, before: QueryEvent | None, now: datetime
) -> QueryEvent:
    """The event of a job.

    `before` is the event when the job was last seen: one that a new leader recovered begins anew
    for Flink, but not for us.

    Raises:
        BadRowError: a field that every job has is missing, or a value does not fit.
    """
    newest = job.newest
    status = status_of(newest)
    submitted = before.submitted_at if before else moment(newest, "start-time")
    if submitted is None:
        raise BadRowError("missing field start-time")
    started = before.started_at if before else None
    started = started or moment(section(newest, "timestamps"), "RUNNING")
    is_over = status.revision == 2
    ended = moment(newest, "end-time") if is_over else None
    folder = "completed" if is_over else "running"
    seen = ended or (moment(newest, "now") if job.detail is not None else None)
    return QueryEvent(
        engine_id=engine_id,
        query_id=job.job_id,
        status=status,
        submitted_at=submitted,
        collected_at=now,
        source=_harmless(text(newest, "name")),
        started_at=started,
        ended_at=ended,
        queued_ms=_span(submitted, started),
        execution_ms=_span(started, ended),
        elapsed_ms=_span(submitted, seen),
        engine_url=f"{url}/#/job/{folder}/{job.job_id}/overview",
        **(_error(job.exceptions) if status is QueryStatus.FAILED else {}),
    )


def lost(event: QueryEvent, reason: str) -> QueryEvent:
    """The event of a job that Flink no longer knows: how it ended is not known either."""
    return replace(
        event, status=QueryStatus.FAILED, error_class="history_lost", error_message=reason
    )


def to_job(engine_id: EngineId, job: JobPayloads, now: datetime) -> FlinkJob:
    """What is known of the job beside its event.

    Raises:
        BadRowError: a value does not fit.
    """
    newest, config = job.newest, job.checkpoint_config or {}
    counts = section(job.checkpoints or {}, "counts")
    vertices = list(objects(newest, "vertices"))
    return FlinkJob(
        engine_id=engine_id,
        job_id=job.job_id,
        seen_at=now,
        job_name=_harmless(text(newest, "name")),
        state=str(newest["state"]),
        job_type=text(newest, "job-type"),
        slots=slots_of(newest),
        parallelism=max((number(v, "parallelism") or 0 for v in vertices), default=None),
        checkpoint_interval_ms=number(config, "interval"),
        checkpoint_mode=text(config, "mode") if number(config, "interval") else None,
        checkpoints_completed=number(counts, "completed"),
        checkpoints_failed=number(counts, "failed"),
        checkpoints_restored=number(counts, "restored"),
        exchanged_records=_exchanged(vertices, "records"),
        exchanged_bytes=_exchanged(vertices, "bytes"),
    )


def slots_of(detail: Mapping[str, Any]) -> int | None:
    """How many slots the job's vertices take: those of one sharing group share them.

    Raises:
        BadRowError: a parallelism is no number.
    """
    groups: dict[str | None, int] = {}
    for vertex in objects(detail, "vertices"):
        group = text(vertex, "slotSharingGroupId")
        groups[group] = max(groups.get(group, 0), number(vertex, "parallelism") or 0)
    return sum(groups.values()) if groups else None


def to_checkpoints(engine_id: EngineId, job: JobPayloads) -> Iterator[FlinkCheckpoint]:
    """The checkpoints that Flink remembers of the job, oldest first.

    Raises:
        BadRowError: a value does not fit.
    """
    for entry in reversed(list(objects(job.checkpoints or {}, "history"))):
        checkpoint_id, triggered = number(entry, "id"), moment(entry, "trigger_timestamp")
        status = text(entry, "status")
        if checkpoint_id is None or triggered is None or status is None:
            raise BadRowError("a checkpoint lacks id, status or trigger_timestamp")
        is_over = status != "IN_PROGRESS"
        duration = number(entry, "end_to_end_duration") if is_over else None
        yield FlinkCheckpoint(
            engine_id=engine_id,
            job_id=job.job_id,
            checkpoint_id=checkpoint_id,
            revision=int(is_over),
            status=status.lower(),
            triggered_at=triggered,
            ended_at=_ended(entry) if is_over else None,
            duration_ms=float(duration) if duration is not None else None,
            state_bytes=number(entry, "state_size"),
            checkpointed_bytes=number(entry, "checkpointed_size"),
            is_savepoint=bool(entry.get("is_savepoint")),
            checkpoint_type=text(entry, "checkpoint_type"),
            failure=_harmless(text(entry, "failure_message")),
        )


def _ended(entry: Mapping[str, Any]) -> datetime | None:
    return moment(entry, "failure_timestamp") or moment(entry, "latest_ack_timestamp")


def _exchanged(vertices: list[Mapping[str, Any]], unit: str) -> int | None:
    """Sum of what tasks received; None until every vertex has told."""
    total = 0
    for vertex in vertices:
        metrics = section(vertex, "metrics")
        if metrics.get(f"read-{unit}-complete") is not True:
            return None
        total += number(metrics, f"read-{unit}") or 0
    return total if vertices else None


def _error(exceptions: Mapping[str, Any] | None) -> dict[str, Any]:
    if exceptions is None:
        return {}
    history = next(objects(section(exceptions, "exceptionHistory"), "entries"), {})
    trace = text(history, "stacktrace") or text(exceptions, "root-exception") or ""
    lines = trace.splitlines()
    if not lines:
        return {}
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    root = causes[-1] if causes else lines[0]
    message = lines[0] if root == lines[0] else f"{lines[0]}; caused by {root}"
    return {
        "error_code": root.partition(":")[0].rpartition(".")[2][:200],
        "error_message": _harmless(message),
    }


def _harmless(value: str | None) -> str | None:
    return _HIDDEN if value is not None and is_suspicious(value) else value


def _span(start: datetime | None, end: datetime | None) -> float | None:
    return max(0.0, (end - start) / _MILLISECOND) if start and end else None

"""Executions, jobs and stages of a history server → tracked queries. Pure.

The server shows less than the event log: no statement of Spark Connect, no call site, no root
execution, no rows returned. Figures are taken from the stages, which have them as numbers; those
of a plan's nodes are rounded for display and are not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from collectors.base import BadRowError
from collectors.spark.plan import snapshot_ids
from collectors.spark.queries import TrackedQuery
from lakehouse_core.domain.query import StatementKind
from lakehouse_core.sql import inspect
from lakehouse_core.sql.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collectors.spark.queries import Application

_DIALECT = "spark"
_OPERATION = "SparkConnect_OperationTag_"
_SESSION_TAG = "SparkConnect_SessionTag_"
_INTERNAL = ("SparkConnect_", "spark-session-")
_STATUS = {"RUNNING": "running", "COMPLETED": "finished", "FAILED": "failed"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Execution:
    """One SQL execution; times in milliseconds of the epoch."""

    id: int
    status: str
    description: str
    submitted: int
    ended: int | None
    jobs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A Spark job, for its tags and its stages."""

    id: int
    tags: tuple[str, ...]
    stages: tuple[int, ...]


@dataclass(slots=True)
class Stage:
    """The figures of a stage, over all its attempts."""

    tasks: int = 0
    cpu_ns: int = 0
    bytes_read: int = 0
    rows_read: int = 0
    bytes_written: int = 0
    rows_written: int = 0
    spilled: int = 0
    failure: str | None = None


@dataclass(slots=True)
class Work:
    """The jobs and stages of an application that the server still has."""

    jobs: dict[int, Job] = field(default_factory=dict)
    stages: dict[int, Stage] = field(default_factory=dict)

    def tags(self, execution: Execution) -> tuple[str, ...]:
        """The tags of an execution, which all its jobs bear."""
        for job in execution.jobs:
            if job in self.jobs:
                return self.jobs[job].tags
        return ()

    def key(self, app_id: str, execution: Execution) -> str:
        """What the event log calls the query: an operation of Connect, or app and execution."""
        for tag in self.tags(execution):
            if tag.startswith(_OPERATION):
                return tag.rpartition("_Operation_")[2]
        return f"{app_id}:{execution.id}"


def to_execution(payload: Mapping[str, Any]) -> Execution:
    """One entry of `/sql`.

    Raises:
        BadRowError: it lacks what every execution has, or a value does not fit.
    """
    status = payload.get("status")
    if status not in _STATUS:
        raise BadRowError(f"field status: {status!r:.80} is no state of an execution")
    submitted = parse_moment(payload.get("submissionTime"), "submissionTime")
    jobs = [
        job
        for name in ("runningJobIds", "successJobIds", "failedJobIds")
        for job in _numbers(payload, name)
    ]
    is_running = status == "RUNNING"
    return Execution(
        id=_number(payload, "id"),
        status=_STATUS[status],
        description=str(payload.get("description") or ""),
        submitted=submitted,
        ended=None if is_running else submitted + _number(payload, "duration"),
        jobs=tuple(sorted(jobs)),
    )


def to_work(jobs: Iterable[Any], stages: Iterable[Any]) -> Work:
    """What `/jobs` and `/stages` answered.

    Raises:
        BadRowError: a value does not fit.
    """
    work = Work()
    for job in _objects(jobs, "job"):
        number = _number(job, "jobId")
        tags = tuple(tag for tag in job.get("jobTags") or () if isinstance(tag, str))
        work.jobs[number] = Job(number, tags, tuple(_numbers(job, "stageIds")))
    for attempt in _objects(stages, "stage"):
        stage = work.stages.setdefault(_number(attempt, "stageId"), Stage())
        for count in ("numCompleteTasks", "numFailedTasks", "numKilledTasks"):
            stage.tasks += _number(attempt, count)
        stage.cpu_ns += _number(attempt, "executorCpuTime")
        stage.bytes_read += _number(attempt, "inputBytes")
        stage.rows_read += _number(attempt, "inputRecords")
        stage.bytes_written += _number(attempt, "outputBytes")
        stage.rows_written += _number(attempt, "outputRecords")
        stage.spilled += _number(attempt, "diskBytesSpilled")
        stage.failure = attempt.get("failureReason") or stage.failure
    return work


def to_query(
    key: str, executions: list[Execution], plans: Iterable[str], work: Work, app: Application
) -> TrackedQuery:
    """One query from its executions, oldest first."""
    first = executions[0]
    tags = work.tags(first)
    user = _connect_user(tags)
    sql = _statement(first.description) if user is None else None
    redacted = redact(sql or "", _DIALECT)
    query = TrackedQuery(
        key=key,
        submitted=first.submitted,
        ready=first.submitted,
        is_operation=False,
        sql=redacted.text or None,
        has_secret=redacted.text != (sql or ""),
        user=user or app.user,
        client=app.name if user is None else None,
        tags=_own_tags(tags),
        executions=len(executions),
    )
    for snapshot in (s for plan in plans for s in snapshot_ids(plan)):
        if snapshot not in query.snapshots:
            query.snapshots.append(snapshot)
    _end(query, executions, app)
    _measure(query, executions, work)
    return query


def parse_moment(value: object, name: str) -> int:
    """A time as Spark's REST writes it: `2026-11-16T09:54:02.003GMT`, in milliseconds.

    Raises:
        BadRowError: it is none.
    """
    try:
        at = datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadRowError(f"field {name}: {value!r:.80} is no time") from error
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _end(query: TrackedQuery, executions: list[Execution], app: Application) -> None:
    is_running = any(e.ended is None for e in executions)
    if is_running and not app.is_over:
        return
    query.ended = max((e.ended or app.last_event or e.submitted for e in executions), default=None)
    if is_running:
        query.status, query.error = "failed", "the Spark application ended before this query did"
    else:
        has_failed = any(e.status == "failed" for e in executions)
        query.status = "failed" if has_failed else "finished"


def _measure(query: TrackedQuery, executions: list[Execution], work: Work) -> None:
    """Sum up the stages; when the server has dropped one of them nothing is known."""
    jobs = [work.jobs.get(job) for e in executions for job in e.jobs]
    found = [work.stages.get(s) for job in jobs if job for s in dict.fromkeys(job.stages)]
    stages = [stage for stage in found if stage is not None]
    if None in jobs or len(stages) != len(found):
        return
    for stage in stages:
        query.tasks += stage.tasks
        query.cpu_ns += stage.cpu_ns
        query.bytes_read += stage.bytes_read
        query.rows_read += stage.rows_read
        query.bytes_written += stage.bytes_written
        query.rows_written += stage.rows_written
        query.spilled += stage.spilled
        if query.status == "failed" and query.error is None:
            query.error = stage.failure


def _statement(description: str) -> str | None:
    """The description when it is a statement, as it is for what came in as SQL text."""
    text = description.strip()
    if not text:
        return None
    inspection = inspect(text, _DIALECT)
    is_statement = inspection.error is None and inspection.kind != StatementKind.OTHER
    return text if is_statement else None


def _connect_user(tags: Iterable[str]) -> str | None:
    for tag in tags:
        if tag.startswith(_OPERATION):
            return tag.removeprefix(_OPERATION).removeprefix("User_").rpartition("_Session_")[0]
    return None


def _own_tags(tags: Iterable[str]) -> list[str]:
    """Tags that somebody set; those of a Connect session bear its user and id in front."""
    own = [tag for tag in tags if not tag.startswith(_INTERNAL)]
    return own + [t.partition("_Tag_")[2] for t in tags if t.startswith(_SESSION_TAG)]


def _number(payload: Mapping[str, Any], name: str) -> int:
    value = payload.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRowError(f"field {name}: {value!r:.80} is no whole number")
    return value


def _numbers(payload: Mapping[str, Any], name: str) -> list[int]:
    value = payload.get(name)
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise BadRowError(f"field {name}: {value!r:.80} is no list of whole numbers")
    return value


def _objects(payload: Iterable[Any], what: str) -> Iterable[Mapping[str, Any]]:
    for item in payload:
        if not isinstance(item, dict):
            raise BadRowError(f"a {what} is a {type(item).__name__}, not an object")
        yield item

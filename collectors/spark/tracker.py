"""Follows the events of one application and knows, at any moment, every query that is not done.

A query is an operation of Spark Connect, or a root SQL execution of an application without it.
Tasks find their query through the properties of their stage: `spark.job.tags` names the operation,
`spark.sql.execution.id` the execution. All of it can be written down and taken up again, so that a
log is read once however often the collector is restarted.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from collectors.spark.plan import snapshot_ids
from collectors.spark.queries import Application, TrackedQuery
from collectors.spark.statement import is_sql_entry, parse_statement, request_field
from lakehouse_core.sql.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collectors.spark.lines import StageSubmitted, TaskEnd, TaskStart

_OPERATION_TAG = "SparkConnect_OperationTag_"
_INTERNAL_TAGS = ("SparkConnect_", "spark-session-")
_DIALECT = "spark"


class Tracker:
    """The open queries of one application; feed it events, take what changed."""

    def __init__(self, limit: int) -> None:
        self.application = Application()
        self.queries: dict[str, TrackedQuery] = {}
        self._limit = limit
        self._executions: dict[int, str] = {}
        self._stages: dict[int, str] = {}
        self._changed: dict[str, TrackedQuery] = {}
        self._handlers: dict[str, Callable[[Any], None]] = {
            "SparkListenerLogStart": self._on_log_start,
            "SparkListenerApplicationStart": self._on_application_start,
            "SparkListenerApplicationEnd": self._on_application_end,
            "SparkListenerEnvironmentUpdate": self._on_environment,
            "SparkListenerConnectOperationStarted": self._on_started,
            "SparkListenerConnectOperationReadyForExecution": self._on_ready,
            "SparkListenerConnectOperationFinished": self._on_finished,
            "SparkListenerConnectOperationFailed": self._on_failed,
            "SparkListenerConnectOperationCanceled": self._on_cancelled,
            "SparkListenerConnectOperationClosed": self._on_closed,
            "SparkListenerConnectSessionClosed": self._on_session_closed,
            "SparkListenerSQLExecutionStart": self._on_execution_start,
            "SparkListenerSQLExecutionEnd": self._on_execution_end,
            "SparkListenerStageSubmitted": self._on_stage,
            "SparkListenerTaskStart": self._on_task_start,
            "SparkListenerTaskEnd": self._on_task_end,
        }

    def wants(self, event: str) -> bool:
        """Whether an event of this (unqualified) name says anything about queries."""
        return event in self._handlers

    def feed(self, name: str, event: Any) -> None:
        """Take one event, as `decode` of lines.py makes it from its line.

        Raises:
            KeyError, TypeError, ValueError: it lacks what such an event always has.
        """
        self._handlers[name](event)

    def take_changed(self) -> list[TrackedQuery]:
        """The queries that changed since the last call; those that are done are forgotten."""
        overdue = len(self.queries) - self._limit
        for query in self._oldest_first()[: max(0, overdue)]:
            self._let_go(query)
        changed = list(self._changed.values())
        self._changed = {}
        for query in changed:
            if query.is_done:
                self._forget(query)
        return changed

    def abandon(self, reason: str) -> None:
        """The application is gone: whatever still runs has ended with it."""
        for query in self.queries.values():
            if query.status == "running":
                query.status, query.error = "failed", reason
                query.ended = self.application.last_event
            self._let_go(query)
        self.application.is_over = True

    # -- state -----------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Everything needed to go on later, as JSON."""
        return {
            "app": asdict(self.application),
            "queries": [query.dump() for query in self.queries.values()],
            "executions": {str(k): v for k, v in self._executions.items()},
            "stages": {str(k): v for k, v in self._stages.items()},
        }

    @classmethod
    def load(cls, state: dict[str, Any] | None, limit: int) -> Tracker:
        """Take up from a dump.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        tracker = cls(limit)
        if state is not None:
            tracker.application = Application(**state["app"])
            tracker.queries = {q["key"]: TrackedQuery(**q) for q in state["queries"]}
            tracker._executions = {int(k): v for k, v in state["executions"].items()}
            tracker._stages = {int(k): v for k, v in state["stages"].items()}
        return tracker

    # -- application -----------------------------------------------------------------------------

    def _on_log_start(self, event: dict[str, Any]) -> None:
        self.application.version = event.get("Spark Version")

    def _on_application_start(self, event: dict[str, Any]) -> None:
        self.application.app_id = event.get("App ID")
        self.application.name = event.get("App Name")
        self.application.user = event.get("User")

    def _on_application_end(self, event: dict[str, Any]) -> None:
        self._see(event["Timestamp"])
        self.abandon("the Spark application ended before this query did")

    def _on_environment(self, event: dict[str, Any]) -> None:
        # Of all properties just this one: others hold credentials.
        properties = event.get("Spark Properties") or {}
        self.application.catalog = dict(properties).get("spark.sql.defaultCatalog")

    # -- operations of Spark Connect -------------------------------------------------------------

    def _on_started(self, event: dict[str, Any]) -> None:
        statement = parse_statement(event.get("statementText") or "")
        redacted = redact(statement.sql or "", _DIALECT)
        key = event["operationId"]
        query = TrackedQuery(
            key=key,
            submitted=int(event["eventTime"]),
            is_operation=True,
            is_command=statement.is_command,
            is_tableless=statement.is_tableless,
            sql=redacted.text or None,
            has_secret=redacted.text != (statement.sql or ""),
            user=event.get("userId") or event.get("userName") or None,
            session=event.get("sessionId"),
            tags=list(event.get("sparkSessionTags") or ()),
        )
        self.queries[key] = query
        self._see(query.submitted)
        self._touch(query)

    def _on_ready(self, event: dict[str, Any]) -> None:
        query = self._operation(event)
        if query is not None:
            query.ready = int(event["eventTime"])

    def _on_finished(self, event: dict[str, Any]) -> None:
        query = self._end(event, "finished")
        if query is not None:
            produced = event.get("producedRowCount")
            # A command returns no rows; Spark says 0 for "nothing counted".
            query.rows_returned = None if query.is_command else produced

    def _on_failed(self, event: dict[str, Any]) -> None:
        query = self._end(event, "failed")
        if query is not None:
            query.error = event.get("errorMessage")

    def _on_cancelled(self, event: dict[str, Any]) -> None:
        # Closed may never follow: Spark refuses to post it when the client let go of the operation
        # between its interruption and its end.
        query = self._operation(event)
        if query is not None:
            query.is_closed = True
            if query.status != "finished":
                self._end(event, "cancelled")

    def _on_closed(self, event: dict[str, Any]) -> None:
        query = self._operation(event)
        if query is not None:
            query.is_closed = True
            if query.status == "running":
                self._end(event, "cancelled")

    def _on_session_closed(self, event: dict[str, Any]) -> None:
        """Nothing more is posted about the operations of a closed session; what ran was stopped."""
        ended = int(event["eventTime"])
        self._see(ended)
        for query in self.queries.values():
            if query.session is not None and query.session == event["sessionId"]:
                query.is_closed = True
                if query.status == "running":
                    query.status, query.ended = "cancelled", ended
                self._touch(query)

    def _end(self, event: dict[str, Any], status: str) -> TrackedQuery | None:
        query = self._operation(event)
        if query is not None:
            query.status, query.ended = status, int(event["eventTime"])
        return query

    def _operation(self, event: dict[str, Any]) -> TrackedQuery | None:
        self._see(int(event["eventTime"]))
        query = self.queries.get(event["operationId"])
        if query is not None:
            self._touch(query)
        return query

    # -- SQL executions --------------------------------------------------------------------------

    def _on_execution_start(self, event: dict[str, Any]) -> None:
        execution = int(event["executionId"])
        root = int(event.get("rootExecutionId", execution))
        self._see(int(event["time"]))
        query = self._tagged(event.get("jobTags") or ()) or self._of_execution(root)
        if query is None:
            query = self._new_execution(root, event)
        query.executions += 1
        query.open_executions.append(execution)
        query.client = query.client or request_field(event.get("details") or "", "client_type")
        for snapshot in snapshot_ids(event.get("physicalPlanDescription") or ""):
            if snapshot not in query.snapshots:
                query.snapshots.append(snapshot)
        self._executions[execution] = query.key
        self._touch(query)

    def _new_execution(self, root: int, event: dict[str, Any]) -> TrackedQuery:
        started = int(event["time"])
        app_id = self.application.app_id or "app"
        text = event.get("description") or "" if is_sql_entry(event.get("details") or "") else ""
        redacted = redact(text.strip(), _DIALECT)
        query = TrackedQuery(
            key=f"{app_id}:{root}",
            submitted=started,
            ready=started,
            is_operation=False,
            sql=redacted.text or None,
            has_secret=redacted.text != text.strip(),
            user=self.application.user,
            client=self.application.name,
            tags=[t for t in event.get("jobTags") or () if not t.startswith(_INTERNAL_TAGS)],
        )
        self.queries[query.key] = query
        return query

    def _on_execution_end(self, event: dict[str, Any]) -> None:
        execution = int(event["executionId"])
        self._see(int(event["time"]))
        query = self._of_execution(execution)
        if query is None:
            return
        if execution in query.open_executions:
            query.open_executions.remove(execution)
        if not query.is_operation:
            error = event.get("errorMessage") or None
            query.error = query.error or error
            if not query.open_executions:
                query.status = "failed" if query.error else "finished"
                query.ended = int(event["time"])
        self._touch(query)

    def _of_execution(self, execution: int) -> TrackedQuery | None:
        return self.queries.get(self._executions.get(execution, ""))

    def _tagged(self, tags: Iterable[str]) -> TrackedQuery | None:
        for tag in tags:
            if tag.startswith(_OPERATION_TAG):
                return self.queries.get(tag.rpartition("_Operation_")[2])
        return None

    # -- stages and tasks ------------------------------------------------------------------------

    def _on_stage(self, event: StageSubmitted) -> None:
        properties = event.properties or {}
        query = self._tagged((properties.get("spark.job.tags") or "").split(","))
        if query is None:
            execution = properties.get("spark.sql.execution.id")
            query = self._of_execution(int(execution)) if execution is not None else None
        if query is not None:
            self._stages[event.info.stage] = query.key

    def _on_task_start(self, event: TaskStart) -> None:
        query = self.queries.get(self._stages.get(event.stage, ""))
        if query is not None:
            query.open_tasks += 1

    def _on_task_end(self, event: TaskEnd) -> None:
        query = self.queries.get(self._stages.get(event.stage, ""))
        if query is None:
            return
        query.open_tasks -= 1
        query.tasks += 1
        metrics = event.metrics
        if metrics is not None:
            query.cpu_ns += metrics.cpu_ns
            query.spilled += metrics.spilled
            if metrics.read is not None:
                query.bytes_read += metrics.read.size
                query.rows_read += metrics.read.rows
            if metrics.written is not None:
                query.bytes_written += metrics.written.size
                query.rows_written += metrics.written.rows
        self._changed[query.key] = query

    # -- bookkeeping -----------------------------------------------------------------------------

    def _see(self, time: int) -> None:
        self.application.last_event = max(self.application.last_event or 0, time)

    def _touch(self, query: TrackedQuery) -> None:
        self._changed[query.key] = query

    def _let_go(self, query: TrackedQuery) -> None:
        """Wait for nothing more about a query."""
        if query.status == "running":
            query.status, query.error = "failed", "its end was not found in the event log"
        query.is_closed, query.open_executions, query.open_tasks = True, [], 0
        self._touch(query)

    def _forget(self, query: TrackedQuery) -> None:
        self.queries.pop(query.key, None)
        self._executions = {k: v for k, v in self._executions.items() if v != query.key}
        self._stages = {k: v for k, v in self._stages.items() if v != query.key}

    def _oldest_first(self) -> list[TrackedQuery]:
        """Queries that have ended first, then by age: the order in which they may be dropped."""
        return sorted(self.queries.values(), key=lambda q: (q.status == "running", q.submitted))

"""What is known of an application and its queries while their log is read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class TrackedQuery:
    """One query as far as the log tells; times in milliseconds of the epoch."""

    key: str
    submitted: int
    is_operation: bool
    is_command: bool = False
    is_tableless: bool = False
    sql: str | None = None  # without secrets: it is written down with the position
    has_secret: bool = False
    user: str | None = None
    session: str | None = None
    client: str | None = None
    tags: list[str] = field(default_factory=list)
    ready: int | None = None
    ended: int | None = None
    status: str = "running"
    error: str | None = None
    rows_returned: int | None = None
    executions: int = 0
    snapshots: list[int] = field(default_factory=list)
    tasks: int = 0
    cpu_ns: int = 0
    bytes_read: int = 0
    rows_read: int = 0
    bytes_written: int = 0
    rows_written: int = 0
    spilled: int = 0
    is_closed: bool = False
    open_executions: list[int] = field(default_factory=list)
    open_tasks: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and how is known.

        That it is closed is not waited for when it has finished: Spark refuses to post it when the
        client let go of the operation, with all its rows, before Spark had noted its end.

        Tasks are not waited for. Those of a query that finished have ended before it; those that a
        cancellation kills end after everything else, and Spark does not flush its log for them:
        their end may lie in its buffer until the next query comes.
        """
        return (
            self.status != "running"
            and (self.is_closed or self.status == "finished" or not self.is_operation)
            and not self.open_executions
        )

    @property
    def is_done(self) -> bool:
        """Whether no further event can concern it."""
        return self.is_over and self.open_tasks <= 0

    @property
    def counts(self) -> bool:
        """Whether it is a query of its own.

        `spark.sql("SELECT …")` makes two operations: a command that only looks the statement over,
        and, once somebody wants the rows, a relation. The first counts only when it did the work
        itself (DDL, DML) or did not get through.
        """
        if not self.is_operation:
            return self.tasks > 0 or self.sql is not None or self.status == "failed"
        if self.is_command:
            return self.executions > 0 or self.status in ("failed", "cancelled")
        return not self.is_tableless

    def dump(self) -> dict[str, Any]:
        """The query as JSON, without what is as it is by default."""
        return {k: v for k, v in asdict(self).items() if v != _DEFAULTS.get(k) and v != []}


@dataclass(slots=True)
class Application:
    """What a log says about its application."""

    app_id: str | None = None
    name: str | None = None
    user: str | None = None
    version: str | None = None
    catalog: str | None = None
    last_event: int | None = None
    is_over: bool = False


_DEFAULTS = {f.name: f.default for f in fields(TrackedQuery)}

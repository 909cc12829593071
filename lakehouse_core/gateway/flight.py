"""One statement on its way through the gateway: what happened when.

Filled in on the hot path with plain assignments; turned into rows later, off the event loop
(`record`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.query import QueryStatus
from lakehouse_core.routing.request import Step

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.engines.base import Cost
    from lakehouse_core.routing.request import Decision, Request


@dataclass(slots=True, kw_only=True, eq=False)
class Flight:
    """A statement's request, decision and times; moments are of `time.perf_counter`.

    Attributes:
        submitted: when it came.
        decided: when it was decided where it goes.
        admitted: when it had a place.
        first_row: when the engine gave its first row, or said that there is none.
        ended: when nothing more was to be done.
        steps: what happened after the decision: retries, spills.
    """

    request: Request
    submitted_at: datetime = field(default_factory=utc_now)
    submitted: float = field(default_factory=time.perf_counter)
    decision: Decision | None = None
    decided: float | None = None
    admitted: float | None = None
    first_row: float | None = None
    ended: float | None = None
    ended_at: datetime | None = None
    attempts: int = 0
    query_id: str | None = None
    status: QueryStatus = QueryStatus.QUEUED
    error: BaseException | None = None
    error_code: str | None = None
    rows_sent: int | None = None
    bytes_sent: int | None = None
    cost: Cost | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether it has been recorded."""
        return self.ended is not None

    def mark_first_row(self) -> None:
        """The engine has answered."""
        if self.first_row is None:
            self.first_row = time.perf_counter()

    def add_step(self, stage: str, subject: str, result: str, detail: str = "") -> None:
        """Something happened that belongs into the trace."""
        self.steps.append(Step(stage, subject, result, detail))

    def end(self, status: QueryStatus, error: BaseException | None = None) -> None:
        """It is over."""
        self.status, self.error = status, error
        self.ended, self.ended_at = time.perf_counter(), utc_now()

"""Runs that somebody asked for: taken up once a second, each answered by the run that served it.

A request is served by the first run that starts after it was made. One made while its job runs
waits for the end of that run: what it wants to see may have happened since that run began.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.agent import AgentRequest
from lakehouse_core.domain.errors import StoreError
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from lakehouse_core.domain.agent import AgentRun, RequestState
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore

UNANSWERED_SQL = """
SELECT request_id, agent, asked_at, state, taken_at, ended_at, run_id, answer FROM agent_request
WHERE state IN ('waiting', 'running') ORDER BY asked_at
"""
_log = structlog.get_logger(__name__)


class Requests:
    """The requests of one process's jobs."""

    def __init__(self, store: TelemetryStore, clock: Clock, jobs: Collection[str]) -> None:
        self._store = store
        self._clock = clock
        self._jobs = frozenset(jobs)
        self._taken: dict[str, AgentRequest] = {}
        self._lock = threading.Lock()

    def take_up(self, running: Collection[str], run_now: Callable[[str], None]) -> int:
        """Start what was asked for; returns how many requests were taken up or refused.

        Args:
            running: the jobs that run at this moment.
            run_now: starts a job by its name; one that began meanwhile serves as well.
        """
        try:
            unanswered = records(AgentRequest, self._store.read(UNANSWERED_SQL))
        except StoreError as error:
            _log.warning("agent.requests_not_read", detail=str(error))
            return 0
        with self._lock:
            new = [one for one in unanswered if one.request_id not in self._taken]
        known = [one for one in new if one.agent in self._jobs and one.agent not in running]
        refused = [
            self._ended(one, "refused", f"no job {one.agent} is scheduled")
            for one in new
            if one.agent not in self._jobs
        ]
        taken = [replace(one, state="running", taken_at=self._clock()) for one in known]
        with self._lock:
            self._taken |= {one.request_id: one for one in taken}
        # Written before the run begins: the answer must not be overtaken by this.
        self._write([*refused, *taken])
        for agent in dict.fromkeys(one.agent for one in taken):
            run_now(agent)
        return len(refused) + len(taken)

    def when_ended(self, run: AgentRun) -> None:
        """Answer the requests that this run served."""
        with self._lock:
            served = [
                request
                for request in self._taken.values()
                if request.agent == run.agent and request.asked_at <= run.started_at
            ]
            for request in served:
                del self._taken[request.request_id]
        self._write(
            [replace(self._ended(one, "done", _answer(run)), run_id=run.run_id) for one in served]
        )

    def _ended(self, request: AgentRequest, state: RequestState, answer: str) -> AgentRequest:
        return replace(request, state=state, ended_at=self._clock(), answer=answer)

    def _write(self, requests: Sequence[AgentRequest]) -> None:
        if not requests:
            return
        try:
            self._store.upsert("agent_request", to_arrow("agent_request", requests))
        except StoreError as error:  # it is unanswered still, and taken up again
            _log.error("agent.request_not_answered", detail=str(error))


def _answer(run: AgentRun) -> str:
    return run.outcome if run.error is None else f"{run.outcome}: {run.error}"

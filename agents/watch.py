"""Work that may hang: done in a thread of its own, given up when its time is over.

A thread cannot be ended from outside. It is abandoned: it loses its lease, after which it writes
nothing more, and it is named until it returns. So the schedule goes on whatever a source does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

from agents.runs import Result, result_of
from lakehouse_core.views.formatting import span

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

MOST_ABANDONED = 3
_log = structlog.get_logger(__name__)


class Lease:
    """The right of one run to write; also what it has done so far, for when it never returns."""

    def __init__(self) -> None:
        self._lost = threading.Event()
        self.rows = 0
        self.dead_letters = 0
        self.on_progress: Callable[[int, int | None], None] = lambda _done, _total: None

    @property
    def is_lost(self) -> bool:
        """Whether the run was given up."""
        return self._lost.is_set()

    def lose(self) -> None:
        """Give the run up."""
        self._lost.set()

    def note(self, rows: int, dead_letters: int) -> None:
        """What was written so far."""
        if (rows, dead_letters) != (self.rows, self.dead_letters):
            self.rows, self.dead_letters = rows, dead_letters
            self.on_progress(rows, None)


class Watch:
    """Runs the work of one job, one call at a time, none longer than the limit."""

    def __init__(
        self,
        name: str,
        limit: timedelta,
        *,
        on_abandon: Callable[[], None] = lambda: None,
        most_abandoned: int = MOST_ABANDONED,
    ) -> None:
        self._name = name
        self._limit = limit
        self._on_abandon = on_abandon
        self._most = most_abandoned
        self._calls = 0
        self._hanging: list[threading.Thread] = []

    @property
    def abandoned(self) -> tuple[str, ...]:
        """The threads that were given up and have not returned, by name."""
        self._hanging = [thread for thread in self._hanging if thread.is_alive()]
        return tuple(thread.name for thread in self._hanging)

    def call(self, work: Callable[[Lease], Result]) -> Result:
        """The result of the work, or that it hangs; never raises."""
        hanging = self.abandoned
        if len(hanging) >= self._most:
            return Result(
                error=f"{len(hanging)} earlier runs still hang ({', '.join(hanging)}); not started "
                "again before one of them returns. A restart of the agents process frees them",
                reach="silent",
            )
        self._calls += 1
        lease, ended = Lease(), _Ended()
        thread = threading.Thread(
            target=self._work,
            args=(work, lease, ended),
            name=f"{self._name}#{self._calls}",
            daemon=True,
        )
        thread.start()
        thread.join(self._limit.total_seconds())
        lease.lose()
        if ended.result is not None:
            return ended.result
        self._hanging.append(thread)
        self._on_abandon()
        _log.error("agent.abandoned", agent=self._name, thread=thread.name)
        return Result(
            rows=lease.rows,
            dead_letters=lease.dead_letters,
            error=f"no answer within {span(self._limit)}: given up, its thread {thread.name} "
            "is abandoned",
            reach="silent",
        )

    def _work(self, work: Callable[[Lease], Result], lease: Lease, ended: _Ended) -> None:
        result = result_of(self._name, lambda: work(lease))
        if lease.is_lost:
            _log.warning(
                "agent.returned_late", agent=self._name, thread=threading.current_thread().name
            )
        else:
            ended.result = result


class _Ended:
    """Where a thread leaves its result."""

    result: Result | None = None

"""Who may use which connection of which instance: slots, queue, cancellation.

An instance is replaced by a fresh one when DuckDB calls it broken, or when its log of file
operations has grown while queries never paused; running queries finish on the old one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import EngineUnavailableError, QueryCancelledError
from lakehouse_core.engines.duckdb.instance import MAX_LOG_ENTRIES, Instance

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lakehouse_core.engines.duckdb.instance import Slot

OpenInstance = Callable[[], Instance]

INTERRUPT_EVERY_SECONDS = 0.05
GIVE_UP_AFTER_SECONDS = 30.0


@dataclass(eq=False, slots=True)
class Ticket:
    """One query's claim to a slot; `names` are the ids it can be cancelled by."""

    names: frozenset[str]
    is_cancelled: bool = False
    running_on: Slot | None = None  # set only while its statement runs


@dataclass(eq=False, slots=True)
class _Generation:
    """An instance and who is on it."""

    instance: Instance
    free: list[Slot]
    busy: int = 0
    log_entries: int = 0
    is_retired: bool = False


class Pool:
    """Hands out slots, first come first served."""

    def __init__(self, open_instance: OpenInstance) -> None:
        self._open_instance = open_instance
        self._changed = threading.Condition()
        self._current: _Generation | None = None
        self._tickets: list[Ticket] = []
        self._is_closed = False

    @contextmanager
    def slot(self, ticket: Ticket) -> Iterator[Slot]:
        """Wait for a slot and hold it.

        Raises:
            QueryCancelledError: the ticket was cancelled while it waited.
            EngineUnavailableError: the pool is closed.
        """
        with self._changed:
            self._tickets.append(ticket)
        try:
            generation, slot = self._take(ticket)
            try:
                yield slot
            finally:
                self._give_back(generation, slot)
        finally:
            with self._changed:
                self._tickets.remove(ticket)

    @contextmanager
    def running(self, ticket: Ticket, slot: Slot) -> Iterator[None]:
        """Mark the time in which interrupting the slot means cancelling this ticket."""
        with self._changed:
            if ticket.is_cancelled:
                raise QueryCancelledError("The query was cancelled before it started")
            ticket.running_on = slot
        try:
            yield
        finally:
            with self._changed:
                ticket.running_on = None
                self._changed.notify_all()

    def cancel(self, name: str) -> bool:
        """Cancel the queries of an id and wait until they stop; False when there is none."""
        with self._changed:
            found = [ticket for ticket in self._tickets if name in ticket.names]
            self._stop(found)
        return bool(found)

    def retire(self, slot: Slot) -> None:
        """Give the slot's instance no more queries: DuckDB said that it is broken."""
        with self._changed:
            if self._current is not None and slot in self._current.instance.slots:
                self._current.is_retired = True

    def instance(self) -> Instance:
        """The instance that the next query would run on, opened if need be."""
        with self._changed:
            return self._generation().instance

    def close(self) -> None:
        """Stop what runs, wait for it, release everything."""
        with self._changed:
            self._is_closed = True
            self._stop(self._tickets)
            self._changed.wait_for(lambda: not self._tickets, GIVE_UP_AFTER_SECONDS)
            if self._current is not None:
                self._current.instance.close()
                self._current = None

    def _stop(self, tickets: Collection[Ticket]) -> None:
        """Interrupt until nothing runs: DuckDB forgets an interrupt when a statement begins."""
        for ticket in tickets:
            ticket.is_cancelled = True
        self._changed.notify_all()
        deadline = time.monotonic() + GIVE_UP_AFTER_SECONDS
        while running := [one.running_on for one in tickets if one.running_on is not None]:
            if time.monotonic() > deadline:
                break
            for slot in running:
                slot.interrupt()
            self._changed.wait(INTERRUPT_EVERY_SECONDS)

    def _take(self, ticket: Ticket) -> tuple[_Generation, Slot]:
        with self._changed:
            while True:
                if self._is_closed:
                    raise EngineUnavailableError("This DuckDB engine is closed")
                if ticket.is_cancelled:
                    raise QueryCancelledError("The query was cancelled while it waited")
                generation = self._generation()
                if generation.free:
                    generation.busy += 1
                    return generation, generation.free.pop()
                self._changed.wait()

    def _generation(self) -> _Generation:
        if self._is_closed:
            raise EngineUnavailableError("This DuckDB engine is closed")
        if self._current is not None and self._current.is_retired:
            if self._current.busy == 0:
                self._current.instance.close()
            self._current = None  # otherwise its last query closes it
        if self._current is None:
            instance = self._open_instance()
            self._current = _Generation(instance, list(instance.slots))
        return self._current

    def _give_back(self, generation: _Generation, slot: Slot) -> None:
        with self._changed:
            generation.busy -= 1
            generation.free.append(slot)
            generation.log_entries += slot.log_entries
            if generation is not self._current:
                if generation.busy == 0:
                    generation.instance.close()
            elif generation.busy == 0 and not generation.is_retired:
                generation.is_retired = not generation.instance.forget_log()
                generation.log_entries = 0
            elif generation.log_entries > MAX_LOG_ENTRIES:
                generation.is_retired = True  # the next query opens another
            self._changed.notify_all()

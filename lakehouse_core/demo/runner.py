"""Sends the plan's statements where they belong, at their time, and counts what becomes of them.

An engine, or the SQL endpoint, that is away is asked nothing until its probe is healthy again; one
that is behind is skipped rather than piled upon. Nothing that it does ends the run.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.errors import EngineUnavailableError, LakehouseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lakehouse_core.demo.plan import Step
    from lakehouse_core.domain.engine import EngineProbe
    from lakehouse_core.engines.base import Statement

REPORT_EVERY_SECONDS = 10.0
PROBE_EVERY_SECONDS = 5.0
WORKERS_PER_ENGINE = 2
BACKLOG_PER_ENGINE = 2
CLOSE_SECONDS = 20.0


class Target(Protocol):
    """Whoever takes statements: an engine, or the SQL endpoint in front of all of them."""

    def execute(self, statement: Statement) -> object:
        """Run a statement to its end."""
        ...

    def probe(self) -> EngineProbe:
        """Whether it is there."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


@dataclass(slots=True)
class Tally:
    """What became of the statements meant for one engine, or for the SQL endpoint."""

    engine: str
    finished: int = 0
    failed: int = 0
    written: int = 0  # of the finished ones
    skipped_away: int = 0
    skipped_busy: int = 0
    is_away: bool = False

    def __str__(self) -> str:
        parts = [f"{self.engine} {self.finished} ok"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.skipped_busy:
            parts.append(f"{self.skipped_busy} skipped, busy")
        if self.skipped_away:
            parts.append(f"{self.skipped_away} skipped, away")
        return ", ".join(parts) + (" (away)" if self.is_away else "")


@dataclass(slots=True)
class Lane:
    """One engine, or the SQL endpoint, with its workers."""

    target: Target
    tally: Tally
    waiting: queue.Queue[Step | None] = field(default_factory=queue.Queue)
    lock: threading.Lock = field(default_factory=threading.Lock)
    next_probe: float = 0.0
    workers: list[threading.Thread] = field(default_factory=list)


class Workload:
    """A run of a plan on some engines and, where it is there, the SQL endpoint."""

    def __init__(self, targets: Mapping[str, Target], say: Callable[[str], None]) -> None:
        self._lanes = {name: Lane(target, Tally(name)) for name, target in targets.items()}
        self._say = say
        self._stop = threading.Event()

    def stop(self) -> None:
        """End the run soon; safe from a signal handler."""
        self._stop.set()

    def run(self, steps: Iterable[Step], seconds: float | None) -> list[Tally]:
        """Run until the time is up, the steps are, or `stop`; return what became of them."""
        for lane in self._lanes.values():
            self._start(lane)
        started = reported = time.monotonic()
        for step in steps:
            if seconds is not None and step.after_seconds > seconds:
                break
            while (wait := started + step.after_seconds - time.monotonic()) > 0:
                until_report = reported + REPORT_EVERY_SECONDS - time.monotonic()
                if self._stop.wait(min(wait, max(until_report, 0.01))):
                    break
                if time.monotonic() - reported >= REPORT_EVERY_SECONDS:
                    self._report(started)
                    reported = time.monotonic()
            if self._stop.is_set():
                break
            self._send(step)
        self._finish()
        self._report(started)
        return [lane.tally for lane in self._lanes.values()]

    def _start(self, lane: Lane) -> None:
        lane.workers = [
            threading.Thread(target=self._work, args=(lane,), daemon=True, name=lane.tally.engine)
            for _ in range(WORKERS_PER_ENGINE)
        ]
        for worker in lane.workers:
            worker.start()

    def _send(self, step: Step) -> None:
        lane = self._lanes[step.engine_id]
        if lane.tally.is_away and not self._is_back(lane):
            lane.tally.skipped_away += 1
            return
        if lane.waiting.qsize() >= BACKLOG_PER_ENGINE:
            lane.tally.skipped_busy += 1
        else:
            lane.waiting.put(step)

    def _is_back(self, lane: Lane) -> bool:
        if time.monotonic() < lane.next_probe:
            return False
        lane.next_probe = time.monotonic() + PROBE_EVERY_SECONDS
        if lane.target.probe().observed is not ObservedState.HEALTHY:
            return False
        lane.tally.is_away = False
        self._say(f"{lane.tally.engine} is back")
        return True

    def _work(self, lane: Lane) -> None:
        while (step := lane.waiting.get()) is not None:
            try:
                lane.target.execute(step.statement)
            except EngineUnavailableError as error:
                self._away(lane, error)
            except LakehouseError as error:
                self._failed(lane, step, str(error))
            except Exception as error:  # noqa: BLE001 the edge of a worker: the others go on
                self._failed(lane, step, f"{type(error).__name__}: {error}")
            else:
                with lane.lock:
                    lane.tally.finished += 1
                    lane.tally.written += step.role == "etl"

    def _failed(self, lane: Lane, step: Step, why: str) -> None:
        with lane.lock:
            lane.tally.failed += 1
        self._say(f"{lane.tally.engine} failed {step.statement.user}: {why.partition(chr(10))[0]}")

    def _away(self, lane: Lane, error: EngineUnavailableError) -> None:
        with lane.lock:
            lane.tally.skipped_away += 1
            is_new = not lane.tally.is_away
            lane.tally.is_away = True
            lane.next_probe = time.monotonic() + PROBE_EVERY_SECONDS
        if is_new:
            self._say(f"{lane.tally.engine} is away, going on without it: {error}")

    def _finish(self) -> None:
        """Let the workers finish what they have, for a while; when stopped, nothing new."""
        deadline = time.monotonic() + CLOSE_SECONDS
        for lane in self._lanes.values():
            if self._stop.is_set():
                lane.tally.skipped_busy += _drain(lane.waiting)
            for _ in lane.workers:
                lane.waiting.put(None)
        for lane in self._lanes.values():
            for worker in lane.workers:
                worker.join(max(0.0, deadline - time.monotonic()))
            lane.target.close()

    def _report(self, started: float) -> None:
        tallies = "; ".join(str(lane.tally) for lane in self._lanes.values())
        self._say(f"{time.monotonic() - started:.0f} s: {tallies}")


def _drain(waiting: queue.Queue[Step | None]) -> int:
    """Throw away what waits; returns how many."""
    thrown = 0
    while True:
        try:
            waiting.get_nowait()
        except queue.Empty:
            return thrown
        thrown += 1

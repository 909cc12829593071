"""Keeps processes running: order, readiness, liveness, restart with back-off, a clean stop.

One thread does everything, in steps: the kernel ties a child to the *thread* that started it, and
steps are easy to test. Nothing here knows what the processes are.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import LakehouseError, Terminal
from lakehouse_core.runtime import logs
from lakehouse_core.runtime.processes import BackOff, ChildProcess, ProcessSpec, State
from lakehouse_core.runtime.readiness import is_stopped
from lakehouse_core.runtime.rundir import ProcessStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from lakehouse_core.runtime.report import Reporter

TASK = "Starting"
POLL_SECONDS = 0.1
CHECK_SECONDS = 0.3
BOUND_LOGS_SECONDS = 60.0
EARLY_EXITS = 3
ALIVE_SECONDS = 10.0
MOST_HANGS, HANGS_FORGOTTEN_SECONDS = 5, 3600.0


class BringUpError(Terminal, LakehouseError):
    """Raised when an essential process does not come up; carries the end of its log."""


@dataclass(slots=True)
class Supervised:
    """A spec and what happened to it so far."""

    spec: ProcessSpec
    log: Path
    state: State = State.WAITING
    child: ChildProcess | None = None
    restarts: int = 0
    failures: int = 0  # in a row
    since: str | None = None
    exit_code: int | None = None
    detail: str | None = None
    was_ready: bool = False
    overdue: bool = False  # it had its time to become ready, and is no longer waited for
    entered: float = 0.0
    next_check: float = 0.0
    misses: int = 0  # in a row, of a process that was ready
    hangs: int = 0  # ended because it did not answer
    last_hang: float = 0.0
    next_start: float = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether those that come after it may go on."""
        return self.state in (State.READY, State.SKIPPED) or self.was_ready or self.overdue


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What a supervisor needs from outside."""

    log_dir: Path
    env: Mapping[str, str]
    reporter: Reporter
    on_change: Callable[[Sequence[ProcessStatus]], None]
    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    back_off: BackOff = field(default_factory=BackOff)


class Supervisor:
    """Runs a set of processes until told to stop."""

    def __init__(
        self, specs: Sequence[ProcessSpec], around: Surroundings, skipped: Mapping[str, str]
    ) -> None:
        self._around = around
        self._all: dict[str, Supervised] = {}
        for spec in specs:
            log = around.log_dir / f"{spec.name}.log"
            logs.turn_over(log)
            self._all[spec.name] = Supervised(spec, log)
        self._skipped = dict(skipped)
        self._next_bounding = 0.0
        self._stop_requested = False
        self._hurry = False
        self._is_up = False

    def request_stop(self) -> None:
        """Ask for a stop, from a signal handler; asking twice hurries it."""
        self._hurry = self._stop_requested
        self._stop_requested = True

    @property
    def stop_requested(self) -> bool:
        """Whether somebody asked for a stop."""
        return self._stop_requested

    def bring_up(self) -> bool:
        """Start everything in order; True when all are ready or have had their time.

        Returns False when a stop was requested meanwhile.

        Raises:
            BringUpError: an essential process did not come up.
        """
        reporter, total = self._around.reporter, len(self._all)
        try:
            while (settled := sum(p.is_settled for p in self._all.values())) < total:
                if self._stop_requested:
                    return False
                reporter.progress(TASK, settled, total)
                self.step()
                self._around.sleep(POLL_SECONDS)
        finally:
            reporter.forget(TASK)
        self._is_up = True
        return True

    def supervise(self) -> None:
        """Keep everything running until a stop is requested."""
        while not self._stop_requested:
            self.step()
            self._around.sleep(POLL_SECONDS)

    def step(self) -> None:
        """Look at every process once and do what is due."""
        now = self._around.seconds()
        for process in self._all.values():
            match process.state:
                case State.WAITING:
                    if self._may_start(process):
                        self._start(process, now)
                case State.STARTING | State.READY:
                    self._watch(process, now)
                case State.BACKING_OFF:
                    if now >= process.next_start:
                        process.restarts += 1
                        self._start(process, now)
                case _:
                    pass
        if now >= self._next_bounding:
            self._next_bounding = now + BOUND_LOGS_SECONDS
            for process in self._all.values():
                trouble = logs.bound(process.log)
                if trouble is not None:
                    self._around.reporter.say(trouble)

    def stop(self) -> None:
        """End everything, last started first, those of one rank together."""
        self._stop_requested = True
        for rank in reversed(self._ranks()):
            alive = [process for process in rank if process.child is not None]
            for process in alive:
                self._enter(process, State.STOPPING)
                if process.child is not None:
                    process.child.terminate()
            self._await_end(alive)
        for process in self._all.values():
            if process.state is not State.STOPPED:
                self._enter(process, State.STOPPED)

    def statuses(self) -> list[ProcessStatus]:
        """Everything as the status file shows it."""
        known = [
            ProcessStatus(
                name=process.spec.name,
                state=process.state.value,
                pid=process.child.pid if process.child else None,
                restarts=process.restarts,
                since=process.since,
                url=process.spec.url,
                log=str(process.log),
                exit_code=process.exit_code,
                detail=process.detail,
            )
            for process in self._all.values()
        ]
        skipped = [
            ProcessStatus(name=name, state=State.SKIPPED.value, detail=why)
            for name, why in self._skipped.items()
        ]
        return known + skipped

    def _may_start(self, process: Supervised) -> bool:
        return all(self._all[name].is_settled for name in process.spec.after if name in self._all)

    def _start(self, process: Supervised, now: float) -> None:
        try:
            if process.spec.before_start is not None:
                process.spec.before_start()
            process.child = ChildProcess(process.spec.command, self._around.env, process.log)
        except OSError as error:  # no memory, no disk, too many processes: may pass
            self._ended(process, now, f"could not be started ({error})", None)
            return
        process.exit_code = None
        process.next_check = now
        self._enter(process, State.STARTING)

    def _watch(self, process: Supervised, now: float) -> None:
        child = process.child
        if child is None:
            return
        code = child.exit_code()
        if code is not None:
            self._ended(process, now, f"ended with {_exit_text(code)}", code)
        elif process.state is State.STARTING:
            if now >= process.next_check:
                process.next_check = now + CHECK_SECONDS
                self._check(process, child, now)
        else:
            if now - process.entered >= self._around.back_off.stable_seconds:
                process.failures = 0
            if now >= process.next_check:
                process.next_check = now + ALIVE_SECONDS
                self._look_alive(process, child, now)

    def _check(self, process: Supervised, child: ChildProcess, now: float) -> None:
        missing = process.spec.ready(child.pid)
        if missing is None:
            process.detail = None
            process.was_ready = True
            process.misses = 0
            process.next_check = now + ALIVE_SECONDS
            took = now - process.entered
            self._enter(process, State.READY)
            where = f": {process.spec.url}" if process.spec.url else ""
            self._around.reporter.say(f"{process.spec.name} is ready ({took:.0f} s){where}")
            return
        process.detail = missing
        if now - process.entered > process.spec.ready_seconds:
            child.kill()
            text = f"was not ready after {process.spec.ready_seconds:.0f} s ({missing})"
            process.overdue = True
            self._ended(process, now, text, child.exit_code())

    def _look_alive(self, process: Supervised, child: ChildProcess, now: float) -> None:
        """A process that hangs is ended like one that died; one that is slow is given time."""
        spec = process.spec
        stopped = is_stopped(child.pid)
        missing = "the process is stopped" if stopped else spec.alive(child.pid)
        if missing is None:
            if process.misses:
                process.misses, process.detail = 0, None
                self._publish()
            return
        process.misses += 1
        process.detail = f"does not answer: {missing}"
        if process.misses < spec.misses:
            self._publish()
            return
        if now - process.last_hang > HANGS_FORGOTTEN_SECONDS:
            process.hangs = 0
        if process.hangs >= MOST_HANGS:
            process.detail += f"; restarted {process.hangs} times in vain, now left alone"
            self._publish()
            return
        process.hangs, process.last_hang = process.hangs + 1, now
        child.kill()
        text = f"did not answer {process.misses} times in a row ({missing}) and was ended"
        self._ended(process, now, text, child.exit_code())

    def _ended(self, process: Supervised, now: float, what: str, code: int | None) -> None:
        spec = process.spec
        process.child = None
        process.exit_code = code
        process.failures += 1
        process.detail = what
        gave_up = process.overdue or process.failures >= EARLY_EXITS
        if not self._is_up and not process.was_ready and gave_up:
            if spec.essential:
                raise BringUpError(
                    f"{spec.name} {what}. The end of {process.log}:\n{logs.tail(process.log)}"
                )
            process.overdue = True
        delay = self._around.back_off.delay(process.failures)
        process.next_start = now + delay
        self._enter(process, State.BACKING_OFF)
        self._around.reporter.say(
            f"{spec.name} {what}; starting it again in {delay:.0f} s (log: {process.log})"
        )

    def _await_end(self, processes: Sequence[Supervised]) -> None:
        begun = self._around.seconds()
        waiting = list(processes)
        while waiting:
            late = self._around.seconds() - begun
            for process in list(waiting):
                child = process.child
                if child is None:
                    waiting.remove(process)
                    continue
                if self._hurry or late > process.spec.stop_seconds:
                    child.kill()
                code = child.exit_code()
                if code is not None:
                    process.exit_code = code
                    process.child = None
                    self._enter(process, State.STOPPED)
                    waiting.remove(process)
            if waiting:
                self._around.sleep(POLL_SECONDS)

    def _ranks(self) -> list[list[Supervised]]:
        """Processes grouped by how many others must come before them."""
        depth: dict[str, int] = {}
        for name, process in self._all.items():  # specs are in start order
            before = [depth[other] for other in process.spec.after if other in depth]
            depth[name] = 1 + max(before, default=-1)
        ranks: list[list[Supervised]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for name, process in self._all.items():
            ranks[depth[name]].append(process)
        return ranks

    def _enter(self, process: Supervised, state: State) -> None:
        process.state = state
        process.entered = self._around.seconds()
        process.since = utc_now().isoformat(timespec="seconds")
        self._publish()

    def _publish(self) -> None:
        self._around.on_change(self.statuses())


def _exit_text(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

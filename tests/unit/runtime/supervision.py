"""Tiny real processes under a real supervisor, with a clock that tests turn by hand."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

from lakehouse_core.runtime.command import Command
from lakehouse_core.runtime.processes import BackOff, ProcessSpec
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.supervisor import Supervisor, Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lakehouse_core.runtime.rundir import ProcessStatus

DEADLINE_SECONDS = 60.0


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Return when the condition holds; fail loudly when it does not in good time."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def shell(script: str, **more: object) -> ProcessSpec:
    """A process that runs a shell script; `name`, `after` and the like as in ProcessSpec."""
    values: dict[str, object] = {"name": "p", "ready_seconds": 15.0, "stop_seconds": 5.0} | more
    return ProcessSpec(command=Command(argv=("/bin/sh", "-c", script)), **values)  # type: ignore[arg-type]


@dataclass
class Stage:
    """A supervisor, what it said and every status it published."""

    log_dir: Path
    hand_clock: bool = False
    now: float = 1_000.0
    back_off: BackOff = field(default_factory=BackOff)
    said: list[str] = field(default_factory=list)
    published: list[dict[str, ProcessStatus]] = field(default_factory=list)

    def supervisor(self, specs: Sequence[ProcessSpec], **more: object) -> Supervisor:
        """A supervisor of these processes."""
        reporter = SilentReporter()
        reporter.say = self.said.append  # type: ignore[method-assign]
        around = Surroundings(
            log_dir=self.log_dir,
            env=dict(os.environ),
            reporter=reporter,
            on_change=lambda statuses: self.published.append({s.name: s for s in statuses}),
            seconds=(lambda: self.now) if self.hand_clock else time.monotonic,
            back_off=self.back_off,
        )
        return Supervisor(specs, around, more.get("skipped", {}))  # type: ignore[arg-type]

    def state(self, name: str) -> str:
        """The last published state of a process."""
        return self.published[-1][name].state

    def started(self) -> list[str]:
        """Names in the order in which they were started."""
        order: list[str] = []
        for statuses in self.published:
            order += [n for n, s in statuses.items() if s.state == "starting" and n not in order]
        return order

    def stopped(self) -> list[str]:
        """Names in the order in which they were asked to stop."""
        order: list[str] = []
        for statuses in self.published:
            order += [n for n, s in statuses.items() if s.state == "stopping" and n not in order]
        return order

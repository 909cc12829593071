"""One supervised process: how it is started, watched and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping  # noqa: TC003 dataclass fields are read at run time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.runtime.readiness import runs

if TYPE_CHECKING:
    from lakehouse_core.runtime.command import Command
    from lakehouse_core.runtime.readiness import ReadyCheck

CHILD = Path(__file__).with_name("child.py")


class State(StrEnum):
    """Where a supervised process is."""

    WAITING = "waiting"  # for the processes it comes after
    STARTING = "starting"
    READY = "ready"
    BACKING_OFF = "backing_off"  # it ended; it will be started again
    STOPPING = "stopping"
    STOPPED = "stopped"
    SKIPPED = "skipped"  # left out of this run; the detail says why


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """A process to supervise.

    Attributes:
        name: what people call it; also the name of its log.
        command: what to run.
        ready: when it counts as ready.
        alive: what it must go on to answer once it is ready; one that is merely stopped is noticed
            in any case.
        misses: how many times in a row it may fail to answer, one every `ALIVE_SECONDS`, before it
            is ended and started again.
        after: names of processes that must be settled before it starts.
        ready_seconds: how long it may take to become ready.
        stop_seconds: how long it may take to end after SIGTERM.
        essential: without it the product does not come up; others are tried on in the background.
        url: where people reach it.
        before_start: what to clear away before each start.
    """

    name: str
    command: Command
    ready: ReadyCheck = runs
    alive: ReadyCheck = runs
    misses: int = 6
    after: tuple[str, ...] = ()
    ready_seconds: float = 60.0
    stop_seconds: float = 15.0
    essential: bool = True
    url: str | None = None
    before_start: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackOff:
    """How long to wait before starting again: doubling, bounded, forgotten after a stable run."""

    first_seconds: float = 1.0
    most_seconds: float = 60.0
    stable_seconds: float = 60.0

    def delay(self, failures: int) -> float:
        """The wait after so many failures in a row (1 = the first)."""
        return min(self.most_seconds, self.first_seconds * 2.0 ** min(failures - 1, 30))


class ChildProcess:
    """A running process in a session of its own, so that its whole group can be ended."""

    def __init__(self, command: Command, env: Mapping[str, str], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as sink:
            # -S and -E: the wrapper needs no packages, and must not read the command's variables.
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-E", str(CHILD), str(os.getpid()), *command.argv],
                env={**env, **command.env},
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its group."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs; when it has ended, the rest of its group is ended too."""
        if self._process.returncode is None and self._has_ended():
            # Before the pid is given back to the system: afterwards it may be somebody else's.
            self._signal_group(signal.SIGKILL)
            self._process.wait()
        return self._process.returncode

    def terminate(self) -> None:
        """Ask the whole group to end."""
        if self.exit_code() is None:
            self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        """End the whole group now."""
        if self.exit_code() is None:
            self._signal_group(signal.SIGKILL)
            self._process.wait()

    def _has_ended(self) -> bool:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: only zombies left
            os.killpg(self._process.pid, number)

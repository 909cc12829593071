"""The run folder: who supervises this home, what runs, and what a dead supervisor left behind.

Every process we start carries the variable `LAKEHELM_RUN_ID`, and so do its descendants. That is
how ours are told from everybody else's, whatever pids are reused in between.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import psutil

from lakehouse_core.domain.errors import LakehouseError, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN_ID_VARIABLE = "LAKEHELM_RUN_ID"


class AlreadyRunningError(Terminal, LakehouseError):
    """Raised when another supervisor runs on the same home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """What the status file says about one process."""

    name: str
    state: str
    pid: int | None = None
    restarts: int = 0
    since: str | None = None  # when it entered this state, ISO UTC
    url: str | None = None
    log: str | None = None
    exit_code: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The status file: one supervisor and its processes."""

    run_id: str
    supervisor_pid: int
    supervisor_created: float  # psutil's create_time: a pid alone may be reused
    started_at: str
    config: str
    profile: str
    phase: str  # preparing, starting, up, stopping, stopped
    processes: tuple[ProcessStatus, ...] = field(default=())

    @property
    def is_alive(self) -> bool:
        """Whether that very supervisor still runs."""
        try:
            process = psutil.Process(self.supervisor_pid)
            return (
                abs(process.create_time() - self.supervisor_created) < 1.0
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False


class RunDir:
    """The folder `<home>/run`."""

    def __init__(self, home: Path) -> None:
        self.path = home / "run"
        self.status_path = self.path / "status.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only supervisor of this home; the lock goes away with the process.

        Raises:
            AlreadyRunningError: somebody else is.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "supervisor.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyRunningError(self._who_runs()) from error
            yield

    def write(self, status: RunStatus) -> None:
        """Replace the status file; readers see the old or the new one, never half."""
        self.path.mkdir(parents=True, exist_ok=True)
        draft = self.status_path.with_suffix(".tmp")
        draft.write_text(json.dumps(asdict(status), indent=2) + "\n", encoding="utf-8")
        draft.replace(self.status_path)

    def read(self) -> RunStatus | None:
        """The last status, or None when nothing ever ran here."""
        try:
            raw: dict[str, Any] = json.loads(self.status_path.read_text(encoding="utf-8"))
            processes = tuple(ProcessStatus(**process) for process in raw.pop("processes"))
            return RunStatus(**raw, processes=processes)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):  # written by another version: tells us nothing
            return None

    def _who_runs(self) -> str:
        status = self.read()
        who = f" (pid {status.supervisor_pid}, since {status.started_at})" if status else ""
        return (
            f"Lakehelm already runs on {self.path.parent}{who}. Stop it with `lakehelm down`, "
            "or set LAKEHELM_HOME to another folder for a second one."
        )


def processes_of(run_id: str) -> list[psutil.Process]:
    """Every living process that was started, directly or not, under this run id."""
    found = []
    me = os.getpid()
    for process in psutil.process_iter():
        try:
            is_ours = process.environ().get(RUN_ID_VARIABLE) == run_id
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue  # gone, or of another user: not ours
        if is_ours and process.pid != me:
            found.append(process)
    return found


def sweep(run_id: str, grace_seconds: float = 5.0) -> list[int]:
    """End what is left of a run: SIGTERM, then SIGKILL; returns the pids that were met."""
    left = processes_of(run_id)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, stubborn = psutil.wait_procs(left, timeout=grace_seconds)
    for process in stubborn:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stubborn, timeout=grace_seconds)
    return [process.pid for process in left]

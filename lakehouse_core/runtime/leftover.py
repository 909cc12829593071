"""Processes of a run whose starter is gone: told by a variable that all of them inherit.

The kernel kills a job with its starter (child.py) and Spark's JVM ends when its driver does; both
take a moment. Whoever decides what became of a run makes sure first that none of it works on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

RUN_VARIABLE = "LAKEHELM_RUN"
_PROC = Path("/proc")
_PATIENCE_SECONDS = 10.0


def can_tell() -> bool:
    """Whether this system lets us find processes by their variables."""
    return sys.platform == "linux" and _PROC.is_dir()


def processes_of(run_id: str) -> list[int]:
    """Processes of a run that still exist."""
    wanted = f"{RUN_VARIABLE}={run_id}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # gone meanwhile, or somebody else's
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_run(run_id: str) -> bool:
    """End what is left of a run; whether nothing is."""
    if not can_tell():
        return False
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while left := processes_of(run_id):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True

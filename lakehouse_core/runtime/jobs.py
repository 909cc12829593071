"""A Spark job of ours as a child process: followed by its progress lines, bounded in time.

A job is a file or module of `spark_jobs` that takes a plan file, prints lines such as
`progress <n>/<total> <what>` and ends with an exit code. All it prints goes to its log.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.runtime import logs
from lakehouse_core.runtime.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import timedelta
    from pathlib import Path
    from typing import BinaryIO

    from lakehouse_core.runtime.command import Command

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress line: so many parts of a total are done, and what comes now."""

    done: int
    total: int
    what: str


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended: its exit code, or None when it was ended by us, and why."""

    exit_code: int | None
    stopped: str | None = None


def run_job(
    command: Command,
    env: Mapping[str, str],
    log: Path,
    *,
    on_progress: Callable[[Progress], None] = lambda _: None,
    timeout: timedelta | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> JobEnd:
    """Run a job to its end, or to ours: its time is up, or this process is stopping."""
    logs.turn_over(log)
    deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
    child = ChildProcess(command, env, log)
    try:
        with log.open("rb") as output:
            lines = _Lines(output)
            while (code := child.exit_code()) is None:
                _tell(lines.fresh(), on_progress)
                if deadline is not None and time.monotonic() > deadline:
                    return JobEnd(None, f"it took longer than {timeout}")
                if is_stopping():
                    return JobEnd(None, "this process is stopping")
                time.sleep(POLL_SECONDS)
            _tell(lines.fresh(), on_progress)
    finally:
        child.kill()
    return JobEnd(code)


def read_progress(line: str) -> Progress | None:
    """The progress a line tells, if it does.

    >>> read_progress("progress 3/11 silver")
    Progress(done=3, total=11, what='silver')
    """
    word, _, rest = line.partition(" ")
    count, _, what = rest.partition(" ")
    done, _, total = count.partition("/")
    if word != "progress" or not done.isdecimal() or not total.isdecimal() or int(total) == 0:
        return None
    return Progress(int(done), int(total), what)


class _Lines:
    """Whole lines of a file that grows."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._rest = b""

    def fresh(self) -> Iterator[str]:
        *whole, self._rest = (self._rest + self._source.read()).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", errors="replace")


def _tell(lines: Iterator[str], on_progress: Callable[[Progress], None]) -> None:
    for line in lines:
        progress = read_progress(line)
        if progress is not None:
            on_progress(progress)

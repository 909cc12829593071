"""How bringing-up tells people what it does: lines and progress, pretty only on a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.progress import Progress, TaskID

PLAIN_EVERY_SECONDS = 10.0


class Reporter(Protocol):
    """Where messages of a long operation go."""

    def say(self, message: str) -> None:
        """One line that stays."""
        ...

    def progress(self, task: str, done: float, total: float) -> None:
        """How far a task is; a task whose `done` reaches `total` is over."""
        ...

    def forget(self, task: str) -> None:
        """Stop showing a task that ended early."""
        ...


class SilentReporter:
    """Says nothing: for tests and for commands that print JSON."""

    def say(self, message: str) -> None:
        """Nothing."""

    def progress(self, task: str, done: float, total: float) -> None:
        """Nothing."""

    def forget(self, task: str) -> None:
        """Nothing."""


class PlainReporter:
    """One line per event; progress at most every ten seconds, when it moved, and at the end."""

    def __init__(
        self, write: Callable[[str], object], seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._seconds = seconds
        self._last: dict[str, tuple[float, str]] = {}  # when, and what was said

    def say(self, message: str) -> None:
        """One line."""
        self._write(message)

    def progress(self, task: str, done: float, total: float) -> None:
        """A line such as `trino-server-476.tar.gz: 40 %`."""
        if done >= total:
            self._last.pop(task, None)
            self._write(f"{task}: 100 %")
            return
        now = self._seconds()
        line = f"{task}: {100 * done / total:.0f} %"
        said_at, said = self._last.get(task, (None, None))
        if said_at is None or (now - said_at >= PLAIN_EVERY_SECONDS and line != said):
            self._last[task] = (now, line)
            self._write(line)

    def forget(self, task: str) -> None:
        """The next progress of this name starts anew."""
        self._last.pop(task, None)


class RichReporter:
    """Bars on a terminal; lines above them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def say(self, message: str) -> None:
        """One line, above the bars if there are any."""
        self._console.print(message, highlight=False, markup=False)

    def progress(self, task: str, done: float, total: float) -> None:
        """Move the task's bar."""
        bars = self._running_bars()
        if task not in self._tasks:
            self._tasks[task] = bars.add_task(task, total=total)
        bars.update(self._tasks[task], completed=done, total=total)
        if done >= total:
            self.forget(task)

    def forget(self, task: str) -> None:
        """Remove the bar; the last one closes the display."""
        known = self._tasks.pop(task, None)
        if self._bars is None or known is None:
            return
        self._bars.stop_task(known)
        if not self._tasks:
            self._bars.stop()
            self._bars = None

    def _running_bars(self) -> Progress:
        from rich.progress import (  # noqa: PLC0415 only a terminal needs it
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        if self._bars is None:
            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(),
                console=self._console,
            )
            self._bars.start()
        return self._bars

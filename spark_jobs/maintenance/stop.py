"""Ending early: somebody asks for it, or the lease is lost; then no new step and no commit."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.maintenance.outcome import LeaseLostError, StoppedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from spark_jobs.maintenance.fence import Fence

POLL_SECONDS = 0.25


class Stop:
    """Whether to end; watches the file in a thread of its own.

    Iceberg's actions run their jobs in groups and threads of their own, so all jobs of the
    context are cancelled: it is ours. On a server only this session is interrupted.
    """

    def __init__(self, spark: SparkSession, file: str | None, *, is_remote: bool = False) -> None:
        self._spark = spark
        self._file = None if file is None else Path(file)
        self.is_remote = is_remote
        self._asked = threading.Event()
        self._over = threading.Event()
        self._fence: Fence | None = None

    def __enter__(self) -> Stop:
        if self._file is not None:
            threading.Thread(target=self._watch, name="stop-file", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    @property
    def is_asked(self) -> bool:
        """Whether somebody wants the run to end."""
        if not self._asked.is_set() and self._file is not None and self._file.exists():
            self._asked.set()
        return self._asked.is_set()

    @contextmanager
    def fenced(self, fence: Fence) -> Iterator[None]:
        """One action, which goes on only while its lease holds."""
        self._fence = fence
        try:
            yield
        finally:
            self._fence = None

    def check(self) -> None:
        """Go on, or not; asked between steps and right before every change of the table.

        Raises:
            StoppedError: the run shall end.
            LeaseLostError: somebody else may change the table now.
        """
        if self.is_asked:
            raise StoppedError("The run was asked to end; the table is as it was last committed")
        if self._fence is not None:
            self._fence.check()

    def _watch(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            try:
                self.check()
            except (StoppedError, LeaseLostError):
                self._cancel()

    def _cancel(self) -> None:
        if self.is_remote:
            self._spark.interruptAll()
        else:
            self._spark.sparkContext.cancelAllJobs()

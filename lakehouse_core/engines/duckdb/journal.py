"""DuckDB has no history of its own: one JSON line per query, in files by hour and process.

A line has the fields of `QueryEvent`; what is not known is left out. The name of a file starts with
its hour (`2026111606-4711.jsonl`), and nothing is appended to it after that hour, so that a reader
knows when it is complete.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

import structlog

from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.text import well_formed

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.domain.query import QueryEvent

SUFFIX = ".jsonl"
HOUR_FORMAT = "%Y%m%d%H"
KEPT = timedelta(days=7)  # collectors read within seconds; a week survives a long outage of theirs
_NOT_WRITTEN = frozenset({"revision", "collected_at"})  # the reader's own

_log = structlog.get_logger(__name__)


class Journal:
    """Appends events; many threads and processes may write to one folder."""

    def __init__(self, folder: Path, clock: Clock = utc_now) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._hour = ""

    def write(self, event: QueryEvent) -> bool:
        """Append one event; False, and a log entry, when the disk refuses it.

        A query that ran is not made to fail because its record could not be kept.
        """
        text = json.dumps(to_json(event), ensure_ascii=False, separators=(",", ":"))
        line = well_formed(text) + "\n"
        with self._lock:
            hour = self._clock().astimezone(UTC).strftime(HOUR_FORMAT)
            try:
                if hour != self._hour:
                    self._turn_over(hour)
                self._append(self._folder / f"{hour}-{os.getpid()}{SUFFIX}", line.encode())
            except OSError as error:
                _log.warning(
                    "journal not written",
                    folder=str(self._folder),
                    query=event.query_id,
                    error=str(error),
                )
                return False
        return True

    def _turn_over(self, hour: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        horizon = (self._clock() - KEPT).strftime(HOUR_FORMAT)
        for file in self._folder.glob(f"*{SUFFIX}"):
            if file.name < horizon:
                file.unlink(missing_ok=True)
        self._hour = hour

    @staticmethod
    def _append(file: Path, line: bytes) -> None:
        # A whole line or nothing, in a file that nobody else appends to: a disk that fills up
        # takes a part of a write, and what follows would be one unreadable line with it.
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            before = os.fstat(descriptor).st_size
            left = memoryview(line)
            try:
                while left:
                    left = left[os.write(descriptor, left) :]
            except OSError:
                os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)


def to_json(event: QueryEvent) -> dict[str, Any]:
    """The known fields of an event; times in ISO 8601, UTC."""
    known = ((f.name, getattr(event, f.name)) for f in fields(event) if f.name not in _NOT_WRITTEN)
    return {name: _plain(value) for name, value in known if value is not None and value != ()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value

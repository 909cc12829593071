"""Logs of supervised processes: one file each, turned over at start, bounded while they run."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEEP = 5
MAX_BYTES = 50 * 2**20


def turn_over(log: Path) -> None:
    """Keep the last starts' logs as `.1` (newest) to `.5`."""
    if not log.exists():
        return
    for number in range(KEEP - 1, 0, -1):
        older = _numbered(log, number)
        if older.exists():
            older.replace(_numbered(log, number + 1))
    log.replace(_numbered(log, 1))


def bound(log: Path, max_bytes: int = MAX_BYTES) -> bool:
    """Empty a log that grew too large, after keeping a copy; True when it did.

    The process writes on through the same file, in append mode, so it goes on from the start.
    """
    try:
        if log.stat().st_size <= max_bytes:
            return False
    except FileNotFoundError:
        return False
    shutil.copyfile(log, _numbered(log, 1))
    os.truncate(log, 0)
    return True


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16_384))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _numbered(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")

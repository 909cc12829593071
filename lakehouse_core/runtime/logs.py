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


def bound(log: Path, max_bytes: int = MAX_BYTES) -> str | None:
    """Empty a log that grew too large, after keeping a copy; says what could not be done.

    The process writes on through the same file, in append mode, so it goes on from the start. On a
    full disk there is no room for the copy, and the log is what fills it: it is emptied all the
    same. Nothing is raised: no process ends because of its log.
    """
    copy = _numbered(log, 1)
    try:
        if log.stat().st_size <= max_bytes:
            return None
        trouble = _copied(log, copy)
        os.truncate(log, 0)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{log} is larger than {max_bytes // 2**20} MiB and cannot be emptied: {error}"
    return trouble


def _copied(log: Path, copy: Path) -> str | None:
    try:
        shutil.copyfile(log, copy)
    except OSError as error:
        if copy.is_file():
            copy.unlink()  # half a copy, which takes what room is left
        return f"{log} was emptied without a copy, which could not be written: {error}"
    return None


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

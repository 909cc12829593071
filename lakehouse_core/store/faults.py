"""DuckDB's errors as ours; DuckDB tells most of them apart by text only, so the texts are here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb

from lakehouse_core.domain.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreTooNewError,
)

if TYPE_CHECKING:
    from pathlib import Path

_HOLDER = re.compile(r"Conflicting lock is held in (?P<program>.*?) ?\(PID (?P<pid>\d+)\)")
_LOCKED = ("Could not set lock on file", "different configuration than existing connections")
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_CONFLICT = ("Conflict on update", "Conflict on tuple deletion", "write-write conflict")
_TOO_NEW = ("Trying to read a database file with version number",)
# The system refused, which says nothing about the file.
_SYSTEM = (
    "Cannot open file",
    "Is a directory",
    "Permission denied",
    "Read-only file system",
    "Too many open files",
)
_INVALIDATED = (
    "database has been invalidated",
    "database has been closed",
    "Connection already closed",
)


def is_conflict(error: duckdb.Error) -> bool:
    """Whether another upsert of the same table was faster; the same upsert may be tried again."""
    return any(text in str(error) for text in _CONFLICT)


def is_disk_full(error: duckdb.Error) -> bool:
    """Whether the disk of the store, or its quota, is full."""
    return any(text in str(error) for text in _FULL)


def is_invalidated(error: duckdb.Error) -> bool:
    """Whether DuckDB gave up the open database, which must be opened anew."""
    return isinstance(error, duckdb.FatalException) or any(
        text in str(error) for text in _INVALIDATED
    )


def first_line(error: BaseException) -> str:
    """What happened, without the echo of the statement DuckDB appends."""
    text = str(error).partition("\n\nLINE ")[0]
    return " ".join(text.split())


def opening_error(path: Path, error: duckdb.Error) -> StoreError:
    """Why the store file could not be opened."""
    text = str(error)
    if any(sign in text for sign in _LOCKED):
        holder = _HOLDER.search(text)
        who = f"process {holder['pid']} ({holder['program']})" if holder else "another process"
        return StoreLockedError(
            f"Store {path} is held by {who}: the agents process owns it. Stop that process, or "
            "reach the store through it"
        )
    if is_disk_full(error):
        return disk_full(str(path), error)
    if any(sign in text for sign in _TOO_NEW):
        return StoreTooNewError(
            f"Store {path} was written by a newer DuckDB than {duckdb.__version__}: upgrade "
            f"Lakehelm ({first_line(error)})"
        )
    if isinstance(error, duckdb.OutOfMemoryException) or any(sign in text for sign in _SYSTEM):
        return StoreError(f"Store {path} cannot be opened: {first_line(error)}")
    return StoreCorruptError(f"Store {path} is not a sound DuckDB database: {first_line(error)}")


def disk_full(place: str, error: BaseException) -> StoreFullError:
    """The disk is full: nothing of the write remains, reads go on."""
    return StoreFullError(
        f"No space left on the disk of {place}: the write was rolled back and nothing of it was "
        f"kept. Free some space; writes go on by themselves then ({first_line(error)})"
    )


def statement_error(sql: str, error: BaseException) -> StoreError:
    """A read that DuckDB refused; names the statement."""
    text = " ".join(sql.split())
    shown = text if len(text) <= 300 else f"{text[:297]}..."
    return StoreError(f"The store cannot run a statement: {first_line(error)}. It was: {shown}")

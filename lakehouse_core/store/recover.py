"""A damaged store file: put aside, never deleted, and replaced by the best that is left.

Tried in this order: the file with the sound part of its write-ahead log, the file without the log,
the backups from newest to oldest, an empty store. What the spool holds is replayed afterwards, as
at every start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import StoreCorruptError
from lakehouse_core.store.database import open_file
from lakehouse_core.store.durable import copy_file

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import duckdb

    from lakehouse_core.config.models import StoreConfig
    from lakehouse_core.domain.clock import Clock

_BAD_ENTRY = re.compile(r"Corrupt WAL file: entry at byte position (?P<position>\d+)")

BACKUP_PATTERN = "telemetry-*.duckdb"
CORRUPT = "corrupt"
STAMP = "%Y%m%dT%H%M%S%f"  # names that sort by time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What was done about a damaged store.

    Attributes:
        reason: what was wrong.
        quarantined: the files put aside.
        restored_from: the file the store was rebuilt from; None: it starts empty.
    """

    reason: str
    quarantined: tuple[Path, ...]
    restored_from: Path | None

    def __str__(self) -> str:
        kept = ", ".join(str(path) for path in self.quarantined)
        source = f"rebuilt from {self.restored_from}" if self.restored_from else "started empty"
        return f"{self.reason}. Put aside as {kept}; {source}"


def open_or_rebuild(
    store: StoreConfig, clock: Clock
) -> tuple[duckdb.DuckDBPyConnection, Recovery | None]:
    """Open the store file; when it is damaged, put it aside and rebuild it.

    Raises:
        StoreLockedError: another process holds the file.
        StoreError: the system does not let us open it; nothing was moved.
    """
    try:
        return open_file(store.path, store.memory_limit), None
    except StoreCorruptError as error:
        return _rebuild(store, f"{clock():{STAMP}}", str(error))


def wal_of(path: Path) -> Path:
    """The write-ahead log beside a store file."""
    return path.with_name(f"{path.name}.wal")


def backups_of(store: StoreConfig) -> list[Path]:
    """The backups, newest first."""
    return sorted(store.backups.glob(BACKUP_PATTERN), reverse=True)


def note(connection: duckdb.DuckDBPyConnection, recovery: Recovery, now: datetime) -> None:
    """Write into the rebuilt store what became of the damaged one."""
    connection.execute(
        "INSERT INTO store_recovery VALUES ($at, $reason, $aside, $source)",
        {
            "at": now,
            "reason": recovery.reason,
            "aside": [str(path) for path in recovery.quarantined],
            "source": str(recovery.restored_from) if recovery.restored_from else None,
        },
    )


def damaged_since(store: StoreConfig, moment: datetime) -> list[Path]:
    """Store files and logs that were put aside as damaged since then."""
    first = f"{moment:{STAMP}}"
    found = store.path.parent.glob(f"{store.path.name}*.{CORRUPT}-*")
    return sorted(path for path in found if path.name.rpartition(f".{CORRUPT}-")[2] >= first)


def put_aside(path: Path, stamp: str, word: str = CORRUPT) -> Path | None:
    """Rename a file to `<name>.<word>-<stamp>`; None when there is no such file."""
    if not path.exists():
        return None
    aside = path.with_name(f"{path.name}.{word}-{stamp}")
    path.rename(aside)
    return aside


def _rebuild(
    store: StoreConfig, stamp: str, reason: str
) -> tuple[duckdb.DuckDBPyConnection, Recovery]:
    path = store.path
    log = put_aside(wal_of(path), stamp)
    aside = [log]
    if log is not None:
        connection = _open_with_sound_log(store, log, reason) or _try_open(store)
        if connection is not None:
            return connection, _recovery(reason, aside, path)
    aside.append(put_aside(path, stamp))
    for number, backup in enumerate(backups_of(store)):
        copy_file(backup, path)
        connection = _try_open(store)
        if connection is not None:
            return connection, _recovery(reason, aside, backup)
        aside.append(put_aside(path, f"{stamp}-{number}"))
        put_aside(wal_of(path), f"{stamp}-{number}")
    return open_file(path, store.memory_limit), _recovery(reason, aside, None)


def _open_with_sound_log(
    store: StoreConfig, log: Path, reason: str
) -> duckdb.DuckDBPyConnection | None:
    bad = _BAD_ENTRY.search(reason)
    if bad is None:
        return None
    wal_of(store.path).write_bytes(log.read_bytes()[: int(bad["position"])])
    connection = _try_open(store)
    if connection is None:
        wal_of(store.path).unlink()
    return connection


def _try_open(store: StoreConfig) -> duckdb.DuckDBPyConnection | None:
    try:
        return open_file(store.path, store.memory_limit)
    except StoreCorruptError:
        return None


def _recovery(reason: str, aside: list[Path | None], source: Path | None) -> Recovery:
    return Recovery(
        reason=reason,
        quarantined=tuple(path for path in aside if path is not None),
        restored_from=source,
    )

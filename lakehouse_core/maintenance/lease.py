"""Who may change a table now: one holder at a time, told from an older one by a growing token.

A lease ends when it is released or when its holder was silent for too long. Whoever comes next gets
a greater token; the token is in the summary of every snapshot the holder makes. The lease in force
is also told in a file per table: a job, which cannot ask the store, reads it right before it
commits, and what has an older token or a lease that ran out is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from lakehouse_core.domain.errors import MaintenanceError, Transient
from lakehouse_core.domain.maintenance import TableLease
from lakehouse_core.maintenance.records import leases_of
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.owner import OwnerStore

NEWEST_SQL = """
SELECT * FROM table_lease WHERE table_id = $table::VARCHAR ORDER BY token DESC LIMIT 1
"""
HELD_SQL = """
SELECT * FROM table_lease QUALIFY row_number() OVER (PARTITION BY table_id ORDER BY token DESC) = 1
"""
_log = structlog.get_logger(__name__)


class LeaseHeldError(Transient, MaintenanceError):
    """Raised when somebody else may change the table now."""


class LeaseLostError(MaintenanceError):
    """Raised when a lease ran out or was taken over: its holder must not write any more."""


class TableLeases:
    """The leases of all tables, in the store of the agents process.

    Args:
        store: keeps them.
        clock: what the time is.
        length: of a lease that is not renewed.
        home: where the files are that tell them, see `lease_file`.
    """

    def __init__(self, store: OwnerStore, clock: Clock, length: timedelta, home: Path) -> None:
        self._store = store
        self._clock = clock
        self._length = length
        self._home = home

    def acquire(self, table_id: str, *, holder: str, action_id: str) -> TableLease:
        """Take the table, also from a holder whose time is over.

        Raises:
            LeaseHeldError: another holder has it; names it, and until when.
        """
        with self._store.alone():
            now, newest = self._clock(), self._newest(table_id)
            if newest is not None and is_held(newest, now):
                raise LeaseHeldError(
                    f"Table {table_id} is held by {newest.holder} for action {newest.action_id} "
                    f"until {newest.expires_at.isoformat()}"
                )
            lease = TableLease(
                table_id=table_id,
                token=newest.token + 1 if newest else 1,
                holder=holder,
                action_id=action_id,
                acquired_at=now,
                expires_at=now + self._length,
            )
            self._write(lease)
        return lease

    def renew(self, lease: TableLease) -> TableLease:
        """Hold the table longer.

        Raises:
            LeaseLostError: it ran out, was released, or somebody else has the table.
        """
        with self._store.alone():
            present = self._present(lease)
            # A clock that was set back does not shorten what was promised.
            ends = max(present.expires_at, self._clock() + self._length)
            renewed = replace(present, expires_at=ends)
            self._write(renewed)
        return renewed

    def release(self, lease: TableLease) -> None:
        """Give the table back; one that was lost already stays with whoever has it."""
        with self._store.alone():
            newest = self._newest(lease.table_id)
            if newest is None or newest.token != lease.token or newest.released_at is not None:
                return
            self._write(replace(newest, released_at=self._clock()))

    def is_current(self, lease: TableLease) -> bool:
        """Whether the holder may still write."""
        newest = self._newest(lease.table_id)
        return newest is not None and newest.token == lease.token and is_held(newest, self._clock())

    def held(self) -> tuple[TableLease, ...]:
        """All leases that hold now."""
        now = self._clock()
        return tuple(one for one in leases_of(self._store.read(HELD_SQL)) if is_held(one, now))

    def _present(self, lease: TableLease) -> TableLease:
        newest = self._newest(lease.table_id)
        if newest is None or newest.token != lease.token:
            other = f"taken over by {newest.holder}" if newest else "is gone"
            raise LeaseLostError(f"The lease of {lease.table_id} was lost: it was {other}")
        if not is_held(newest, self._clock()):
            raise LeaseLostError(
                f"The lease of {lease.table_id} was lost: it ended "
                f"{(newest.released_at or newest.expires_at).isoformat()}"
            )
        return newest

    def _newest(self, table_id: str) -> TableLease | None:
        found = leases_of(self._store.read(NEWEST_SQL, table=table_id))
        return found[0] if found else None

    def _write(self, lease: TableLease) -> None:
        self._store.upsert("table_lease", to_arrow("table_lease", [lease]))
        try:
            _tell(lease_file(self._home, lease.table_id), lease)
        except OSError as error:
            # A job that reads an older lease commits nothing: late is safe.
            _log.error("lease.not_told", table=lease.table_id, detail=str(error))


def is_held(lease: TableLease, now: datetime) -> bool:
    """Whether the lease holds at a moment; at its very end it does not."""
    return lease.released_at is None and now < lease.expires_at


def lease_file(home: Path, table_id: str) -> Path:
    """Where the lease of a table that is in force is told; names of tables may be anything."""
    return home / "run" / "leases" / f"{hashlib.sha256(table_id.encode()).hexdigest()[:32]}.json"


def _tell(file: Path, lease: TableLease) -> None:
    """Write the file; it appears whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    document = {
        "table_id": lease.table_id,
        "token": lease.token,
        "expires_at": lease.expires_at.isoformat(),
        "released_at": lease.released_at.isoformat() if lease.released_at else None,
    }
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(document), encoding="utf-8")
    partial.replace(file)

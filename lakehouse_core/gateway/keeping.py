"""How the gateway makes rows durable: into the spool, and the owner of the store fetches them.

A merge in the store takes tens of milliseconds, and Trino waits for few answers at once, so an
answer must not wait for a merge. A file in the spool is durable in a few; the owner looks there
every other second and merges what has gathered in one go.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lakehouse_core.store import batch as batches
from lakehouse_core.store.schema import spec_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lakehouse_core.store.spool import Spool

REMEMBER_SECONDS = 600.0
MOST_REMEMBERED = 50_000


class SpoolKeeper:
    """Writes rows to the spool; any process may, the owner of the store need not be there."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    def __call__(self, table: str, rows: pa.Table) -> None:
        """Make rows durable.

        Raises:
            StoreError: they do not fit the table, or the spool cannot be written.
        """
        for part in batches.slices(batches.prepare(table, rows)):
            self._spool.keep(self._spool.write(table, part))


class NewsOnly:
    """Leaves out rows that were made durable a short while ago.

    Every event brings its template along, and most templates are old acquaintances: without this,
    each of them would be written again and again. Used from one thread at a time.
    """

    def __init__(
        self,
        keep: Callable[[str, pa.Table], object],
        tables: tuple[str, ...],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep = keep
        self._tables = tables
        self._seconds = seconds
        self._known: set[tuple[str, str]] = set()
        self._until = 0.0

    def __call__(self, table: str, rows: pa.Table) -> None:
        """Make durable what is new; as `SpoolKeeper`."""
        if table not in self._tables:
            self._keep(table, rows)
            return
        # Forgotten from time to time: retention may have dropped a row meanwhile.
        if self._seconds() > self._until or len(self._known) > MOST_REMEMBERED:
            self._known.clear()
            self._until = self._seconds() + REMEMBER_SECONDS
        told = [name for name in rows.column_names if name not in spec_of(table).noise]
        columns = (rows.column(name).to_pylist() for name in told)
        keys = [(table, repr(values)) for values in zip(*columns, strict=True)]
        fresh = [key not in self._known for key in keys]
        if any(fresh):
            self._keep(table, rows.filter(fresh))
            self._known.update(keys)

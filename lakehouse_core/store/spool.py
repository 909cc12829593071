"""The spool: batches on disk, for the time the owner of the store is away.

    spool/<time>-<process>-<serial>.<table>.parquet    acknowledged, waits for its replay
    spool/inflight/…                                   on its way to the owner, not acknowledged
    spool/broken/…  and  ….reason                      could not be replayed, kept for a person

File names sort by time. Whoever replays holds the lock of the spool; a writer that finds files of
its own table replays them first, so that nothing overtakes what was acknowledged before it.
The threads of the owner take turns before they ask for that lock.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.errors import StoreError, StoreUnavailableError, Transient
from lakehouse_core.store.batch import ROW_NUMBER, SLICE_ROWS, conform
from lakehouse_core.store.durable import sync
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from lakehouse_core.domain.clock import Clock

_SUFFIX = ".parquet"
_LOCK_SECONDS = 30.0
_LOCK_POLL_SECONDS = 0.01
_FORGOTTEN_SECONDS = 3600.0


class Spool:
    """One spool folder, shared by the processes of one installation."""

    def __init__(
        self,
        folder: Path,
        clock: Clock = utc_now,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        """Nothing is made yet.

        Args:
            folder: where it is.
            clock: names files.
            turn: the lock under which this process merges, if it has one. It is taken before the
                spool's, so that no thread holds one of the two and waits for the other.
        """
        self.folder = folder
        self.inflight = folder / "inflight"
        self.broken = folder / "broken"
        self._clock = clock
        self._serial = itertools.count()
        self._turn = nullcontext() if turn is None else turn

    def create(self) -> None:
        """Make the folders."""
        for folder in (self.folder, self.inflight, self.broken):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, table: str, batch: pa.Table) -> Path:
        """Put a prepared batch into flight; not durable yet.

        Raises:
            StoreError: it cannot be written, e.g. because the disk is full.
        """
        stamp = self._clock().strftime("%Y%m%dT%H%M%S%f")
        name = f"{stamp}-{os.getpid()}-{next(self._serial):06}.{table}{_SUFFIX}"
        path = self.inflight / name
        try:
            self.create()
            pq.write_table(batch, path, compression="snappy")
        except (OSError, pa.ArrowException) as error:
            with suppress(OSError):
                path.unlink()
            raise StoreError(
                f"A batch of {batch.num_rows} rows for {table} cannot be written to the spool "
                f"{self.folder}: {error}. It was not acknowledged"
            ) from error
        return path

    def keep(self, path: Path) -> Path:
        """Make a batch in flight durable: when this returns it may be acknowledged.

        Raises:
            StoreError: it cannot be made durable.
        """
        kept = self.folder / path.name
        try:
            sync(path)
            path.rename(kept)
            sync(self.folder)
        except OSError as error:
            raise StoreError(f"Batch {path} cannot be kept in the spool: {error}") from error
        return kept

    def pending(self, table: str | None = None) -> list[Path]:
        """What waits for its replay, oldest first."""
        try:
            names = sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file())
        except FileNotFoundError:
            return []
        tail = _SUFFIX if table is None else f".{table}{_SUFFIX}"
        return [self.folder / name for name in names if name.endswith(tail)]

    def load(self, path: Path) -> pa.Table:
        """The rows of a spooled batch, with the columns its table has today.

        Raises:
            StoreError: the file is broken, or does not fit the table its name tells.
        """
        table = _table_of(path)
        if table not in TABLES:
            raise StoreError(f"Spool file {path.name} names no table of the store")
        try:
            rows = pq.read_table(path, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"Spool file {path.name} cannot be read: {error}") from error
        wanted = [name for name in rows.column_names if name != ROW_NUMBER]
        return conform(table, rows.select(wanted))

    def quarantine(self, path: Path, reason: str) -> None:
        """Move a batch that cannot be replayed out of the way, with the reason beside it."""
        self.broken.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.rename(self.broken / path.name)
            (self.broken / f"{path.name}.reason").write_text(f"{reason}\n", encoding="utf-8")

    def broken_files(self) -> list[Path]:
        """Batches that could not be replayed."""
        return sorted(self.broken.glob(f"*{_SUFFIX}"))

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the right to replay; False when another process keeps it for too long.

        The turn is waited for without a limit, as before any write of this process.
        """
        self.create()
        deadline = None
        while deadline is None or time.monotonic() < deadline:
            with self._turn, (self.folder / ".lock").open("a") as file:
                if _is_acquired(file.fileno()):
                    yield True
                    return
            deadline = deadline or time.monotonic() + _LOCK_SECONDS
            time.sleep(_LOCK_POLL_SECONDS)
        yield False

    def forget_strays(self) -> int:
        """Remove batches in flight whose process has ended: they were never acknowledged."""
        removed = 0
        for path in self.inflight.glob(f"*{_SUFFIX}"):
            with suppress(FileNotFoundError):
                if _is_stray(path):
                    path.unlink()
                    removed += 1
        return removed


def replay(spool: Spool, merge: Callable[[str, pa.Table], None], table: str | None = None) -> int:
    """Give waiting batches to `merge`, one table after the other, and drop each once it is written.

    Those of one table go together, oldest first: a merge costs about the same for one row as for
    hundreds, and writers of several tables take turns. A batch that is broken or refused is
    quarantined and does not block the others.

    Returns:
        How many batches were written.

    Raises:
        StoreUnavailableError: the store went away, or another replay takes too long.
        StoreFullError: the disk is full. What is left stays in the spool in both cases.
    """
    with spool.locked() as mine:
        if not mine:
            raise StoreUnavailableError(f"Another replay of {spool.folder} is still under way")
        waiting = sorted(spool.pending(table), key=_table_of)
        return sum(
            _replay_bundle(spool, merge, bundle)
            for _, paths in itertools.groupby(waiting, key=_table_of)
            for bundle in _bundles(spool, paths)
        )


def _bundles(spool: Spool, paths: Iterable[Path]) -> Iterator[dict[Path, pa.Table]]:
    bundle: dict[Path, pa.Table] = {}
    rows = 0
    for path in paths:
        try:
            loaded = spool.load(path)
        except StoreError as error:
            spool.quarantine(path, str(error))
            continue
        if bundle and rows + loaded.num_rows > SLICE_ROWS:
            yield bundle
            bundle, rows = {}, 0
        bundle[path] = loaded
        rows += loaded.num_rows
    if bundle:
        yield bundle


def _replay_bundle(
    spool: Spool, merge: Callable[[str, pa.Table], None], bundle: dict[Path, pa.Table]
) -> int:
    try:
        merge(_table_of(next(iter(bundle))), pa.concat_tables(bundle.values()))
    except StoreError as error:
        if isinstance(error, Transient):
            raise
        if len(bundle) > 1:
            parts = ({path: rows} for path, rows in bundle.items())
            return sum(_replay_bundle(spool, merge, part) for part in parts)
        spool.quarantine(next(iter(bundle)), str(error))
        return 0
    for path in bundle:
        path.unlink()
    return len(bundle)


def _table_of(path: Path) -> str:
    return path.name.removesuffix(_SUFFIX).rpartition(".")[2]


def _is_acquired(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_stray(path: Path) -> bool:
    try:
        process = int(path.name.split("-")[1])
    except (IndexError, ValueError):
        return True
    # A process number may have been given to somebody else meanwhile: age decides then.
    age_seconds = time.time() - path.stat().st_mtime
    return not psutil.pid_exists(process) or age_seconds > _FORGOTTEN_SECONDS

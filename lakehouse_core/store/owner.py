"""The owner of the store: the one process that has the file open (the agents process).

    with OwnerStore.at(folder) as store: …                        # not served: tests, tools
    store = OwnerStore.open(config.store)                         # not served
    store = OwnerStore.open(config.store, tokens=Tokens(w, r))    # served to the others over Quack

`open` migrates the file, quarantines and rebuilds a corrupt one (`store.recovery` says so), replays
the spool, locks the engine down and serves: writers on `config.store.port`, readers on the next.
Every method may be called from any thread.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import duckdb
import structlog

from lakehouse_core import duck
from lakehouse_core.config.models import StoreConfig
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.errors import StoreError, StoreUnavailableError
from lakehouse_core.store import batch as batches
from lakehouse_core.store import faults, gate
from lakehouse_core.store.database import lock_down, seed_turns
from lakehouse_core.store.literals import bind
from lakehouse_core.store.merge import changed_query, merge_steps, turn_statement
from lakehouse_core.store.migrate import migrate, roll_back, schema_version
from lakehouse_core.store.recover import Recovery, note, open_or_rebuild
from lakehouse_core.store.schema import spec_of
from lakehouse_core.store.serve import Servers, Tokens, address
from lakehouse_core.store.spool import Spool, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    import pyarrow as pa

    from lakehouse_core.store.fold import Step

__all__ = ["OwnerStore", "Recovery", "Tokens"]

_BATCH = "merge_batch"
_BUSY_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 0.05
_TEND_SECONDS = 2.0

_CONTENT = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConstraintException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
)

_log = structlog.get_logger(__name__)


class OwnerStore:
    """The store, opened by its owner; implements the store port."""

    def __init__(self, store: StoreConfig, tokens: Tokens | None, clock: Clock) -> None:
        """Nothing is opened yet: use `open` or `at`."""
        self._writing = threading.RLock()
        self.spool = Spool(store.spool, turn=self._writing)
        self.recovery: Recovery | None = None
        self._store = store
        self._tokens = tokens
        self._clock = clock
        self._closing = threading.Event()
        self._servers: Servers | None = None
        self._connection = self._start()
        self._tender = threading.Thread(target=self._tend, name="store-tender", daemon=True)

    @classmethod
    def open(
        cls, store: StoreConfig, *, tokens: Tokens | None = None, clock: Clock = utc_now
    ) -> Self:
        """Open, migrate, replay the spool; with tokens also serve the other processes.

        Raises:
            StoreLockedError: another process holds the file.
            StoreTooNewError: a newer Lakehelm has written the file.
            PortTakenError: one of the two ports is in use.
            StoreError: the file cannot be opened or migrated.
        """
        owner = cls(store, tokens, clock)
        if tokens is not None:
            owner._tender.start()
        return owner

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Open a store inside a folder, not served."""
        paths = {"path": "telemetry.duckdb", "spool": "spool", "backups": "backups"}
        absolute = {key: folder.resolve() / name for key, name in paths.items()}
        return cls.open(StoreConfig(**absolute))

    @property
    def path(self) -> Path:
        """The store file."""
        return self._store.path

    @property
    def schema_version(self) -> int:
        """The version of the schema."""
        return schema_version(self._connection.cursor())

    def read(self, sql: str, **params: Any) -> pa.Table:
        """Run one SELECT with named parameters (`$name`) and return all of it."""
        text = bind(sql, params)
        connection = self._connection
        try:
            with connection.cursor() as cursor:
                statements = cursor.extract_statements(text)
                if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                    raise StoreError(f"The store reads one SELECT at a time, not this: {sql}")
                return cursor.execute(statements[0]).to_arrow_table()
        except duckdb.Error as error:
            if faults.is_invalidated(error):
                self._revive(connection, error)
                raise StoreUnavailableError("The store had to be reopened; ask again") from error
            raise faults.statement_error(sql, error) from error

    def upsert(self, table: str, rows: pa.Table) -> int:
        """Insert or replace rows by the table's key; durable when it returns."""
        prepared = batches.prepare(table, rows)
        self._let_pass(table)
        return self._merge(table, prepared)

    def upsert_together(self, batches_of: Mapping[str, pa.Table]) -> int:
        """Upsert into several tables in one transaction: all of it, or nothing."""
        prepared = {table: batches.prepare(table, rows) for table, rows in batches_of.items()}
        for table in prepared:
            self._let_pass(table)
        changed = 0

        def work(cursor: duckdb.DuckDBPyConnection) -> None:
            nonlocal changed
            changed = sum(_upsert(cursor, table, part) for table, part in prepared.items())

        self._in_turn(", ".join(prepared), work)
        return changed

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else of this process writes meanwhile: for what reads, checks, then writes."""
        with self._writing:
            yield

    def transact(self, table: str, statements: Sequence[str]) -> None:
        """Run statements that change one table, in one transaction, in turn with its upserts."""
        turn = turn_statement(spec_of(table))
        self._in_turn(table, lambda cursor: _run(cursor, (turn, *statements)))

    def replay_spool(self) -> int:
        """Write what the spool holds and return how many batches that were.

        A broken batch is put aside with its reason; the others go on.
        """
        self.spool.forget_strays()
        return replay(self.spool, self._merge_rows)

    def copy_to(self, target: Path) -> None:
        """Copy the store, as it is at one moment, into a new file below `store.backups`.

        Others write on meanwhile.

        Raises:
            StoreError: it could not be copied; what was written of it may be left there.
        """
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(gate.backup_script(cursor, target))
            except duckdb.Error as error:
                roll_back(cursor)
                cursor.execute(gate.discard_script(target))
                raise StoreError(
                    f"The store cannot be backed up to {target}: {faults.first_line(error)}"
                ) from error

    def ping(self) -> float:
        """Milliseconds one trivial read takes."""
        start = time.perf_counter()
        self.read("SELECT 1")
        return (time.perf_counter() - start) * 1000

    def close(self) -> None:
        """Stop serving, write everything into the file, release it."""
        self._closing.set()
        if self._tender.is_alive():
            self._tender.join()
        with self._writing:
            if self._servers is not None:
                self._servers.stop()
                self._servers = None
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, *, is_revived: bool = False) -> duckdb.DuckDBPyConnection:
        for folder in (self._store.path.parent, self._store.backups):
            # Statements may hold what is nobody else's business.
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.spool.create()
        connection, recovery = open_or_rebuild(self._store, self._clock)
        try:
            if recovery is not None:
                self.recovery = recovery
                _log.error("store.recovered", detail=str(recovery))
            migrate(connection)
            if recovery is not None:
                note(connection, recovery, self._clock())
            seed_turns(connection)
            self._connection = connection
            if self._tokens is not None:
                duck.load(connection, ("quack",))
                roles = {address(self._store, role): role for role in ("writer", "reader")}
                gate.install(connection, self._store, roles)
            lock_down(connection, self._store)
            if not is_revived:
                self.replay_spool()
            if self._tokens is not None:
                servers = Servers(connection, self._store, self._tokens)
                servers.start()
                self._servers = servers
        except BaseException:
            connection.close()
            raise
        return connection

    def _let_pass(self, table: str) -> None:
        """Write what waits for a table, so that nothing overtakes it; the tender sees to others."""
        if self.spool.pending(table):
            replay(self.spool, self._merge_rows, table)

    def _merge_rows(self, table: str, rows: pa.Table) -> None:
        self._merge(table, batches.prepare(table, rows))

    def _merge(self, table: str, prepared: pa.Table) -> int:
        return sum(self._merge_slice(table, part) for part in batches.slices(prepared))

    def _merge_slice(self, table: str, part: pa.Table) -> int:
        changed = 0

        def work(cursor: duckdb.DuckDBPyConnection) -> None:
            nonlocal changed
            changed = _upsert(cursor, table, part)

        self._in_turn(table, work)
        return changed

    def _in_turn(self, table: str, work: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            connection = self._connection
            try:
                with self._writing:
                    _transaction(connection, work)
            except duckdb.Error as error:
                if faults.is_invalidated(error):
                    self._revive(connection, error)
                if not faults.is_conflict(error):
                    raise self._writing_error(table, error) from error
                if time.monotonic() > deadline:
                    raise StoreUnavailableError(
                        f"Table {table} was busy for {_BUSY_SECONDS:.0f} s; try again"
                    ) from error
                # A client is writing the same table: let it finish.
                time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))  # noqa: S311 no secret
            else:
                return

    def _writing_error(self, table: str, error: duckdb.Error) -> StoreError:
        if faults.is_disk_full(error):
            return faults.disk_full(str(self._store.path), error)
        # The batch was checked before: what is left is bad content, or trouble that may pass.
        kind = StoreError if isinstance(error, _CONTENT) else StoreUnavailableError
        return kind(f"A write to {table} failed: {faults.first_line(error)}")

    def _revive(self, broken: duckdb.DuckDBPyConnection, error: duckdb.Error) -> None:
        """Open the file anew after DuckDB has given it up (e.g. a checkpoint on a full disk)."""
        with self._writing:
            if self._connection is not broken or self._closing.is_set():
                return
            _log.error("store.invalidated", detail=faults.first_line(error))
            # The servers belong to the instance that is given up and end with it.
            self._servers = None
            broken.close()
            # The spool waits for its next turn: this thread may be in the middle of a replay.
            self._connection = self._start(is_revived=True)

    def _tend(self) -> None:
        while not self._closing.wait(_TEND_SECONDS):
            try:
                self.spool.forget_strays()
                if self.spool.pending():
                    self.replay_spool()
                with self._writing:
                    if self._servers is not None and self._servers.tend():
                        _log.warning("store.servers_restarted")
            except (StoreError, duckdb.Error, OSError) as error:
                _log.error("store.tending_failed", detail=faults.first_line(error))


def _transaction(
    connection: duckdb.DuckDBPyConnection, work: Callable[[duckdb.DuckDBPyConnection], None]
) -> None:
    with connection.cursor() as cursor:
        cursor.begin()
        try:
            work(cursor)
            cursor.commit()
        except duckdb.Error:
            roll_back(cursor)
            raise


def _upsert(cursor: duckdb.DuckDBPyConnection, table: str, part: pa.Table) -> int:
    """Merge a prepared batch; returns how many rows were new or different."""
    spec = spec_of(table)
    cursor.register(_BATCH, part)
    _take(cursor, merge_steps(spec, _BATCH))
    row = cursor.execute(changed_query(spec, _BATCH)).fetchone()
    return int(row[0]) if row else 0


def _take(cursor: duckdb.DuckDBPyConnection, steps: Sequence[Step]) -> None:
    """The steps of an upsert, but for those that have nothing to do."""
    for worklist, group in itertools.groupby(steps, key=lambda step: step.worklist):
        if worklist is None or cursor.execute(worklist).fetchone():
            _run(cursor, [step.sql for step in group])


def _run(cursor: duckdb.DuckDBPyConnection, statements: Sequence[str]) -> None:
    for statement in statements:
        cursor.execute(statement)

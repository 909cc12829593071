"""The store for all processes but its owner: through Quack, and the spool when the owner is away.

A read travels as one text and runs on the owner. An upsert travels as a Parquet file in the spool
folder, which the owner reads when told to: Quack's own way to ship rows takes three times as long.
When the owner does not answer, the file is already where it must be: it is made durable, and that
is the acknowledgement.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import duckdb

from lakehouse_core import duck
from lakehouse_core.domain.errors import StoreError, StoreFullError, StoreUnavailableError
from lakehouse_core.store import batch as batches
from lakehouse_core.store import faults
from lakehouse_core.store.literals import bind
from lakehouse_core.store.patience import Patience
from lakehouse_core.store.serve import Role, address
from lakehouse_core.store.sessions import Sessions
from lakehouse_core.store.spool import Spool, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    import pyarrow as pa

    from lakehouse_core.config.models import StoreConfig

_ASK = "FROM quack_query($address, $text, token => $token)"
_ANSWER_SECONDS = 60.0
_BUSY_SECONDS = 60.0
_GOOD_BYE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 0.05


class StoreClient:
    """A connection to the store's owner; implements the store port. Any thread may use it."""

    def __init__(self, store: StoreConfig, *, token: str, role: Role = "reader") -> None:
        self.role: Role = role
        self.spool = Spool(store.spool)
        self._address = address(store, role)
        self._token = token
        self._store = store
        self._patience = Patience(_ANSWER_SECONDS)
        self._connection = duck.connect(extensions=("quack",))
        self._sessions = Sessions(self._connection, self._address, token)
        # A repeated request would only hide that the owner is away.
        self._connection.execute("SET GLOBAL http_retries = 0")

    def read(self, sql: str, **params: Any) -> pa.Table:
        """Run one SELECT with named parameters (`$name`) on the owner and return all of it.

        Raises:
            StoreUnavailableError: the owner does not answer; says what to start.
            StoreError: the statement is wrong, or not a harmless SELECT; names it.
        """
        text = bind(sql, params)
        try:
            return self._answer(text, self._sessions.ask)
        except _LostError:
            # The owner may have dropped its connections; a read can be asked again.
            return self._answer(text, self._sessions.ask_afresh)

    def upsert(self, table: str, rows: pa.Table) -> int:
        """Insert or replace rows by the table's key; durable when it returns.

        Returns:
            How many rows were new or different. Rows that went to the spool count as such,
            because only the replay will tell.

        Raises:
            StoreError: the batch is wrong, the client is a reader, or the spool cannot be written;
                nothing of the batch is acknowledged.
            StoreFullError: the owner's disk is full.
        """
        if self.role != "writer":
            raise StoreError(f"Rows for {table} refused: the store was opened as {self.role}")
        parts = list(batches.slices(batches.prepare(table, rows)))
        try:
            if self.spool.pending(table):
                self.replay_spool(table)
        except (StoreUnavailableError, StoreFullError):
            return self._keep(table, parts)
        changed = 0
        for number, part in enumerate(parts):
            path = self.spool.write(table, part)
            try:
                changed += self._merge(table, path)
            except StoreUnavailableError:
                self.spool.keep(path)
                return changed + int(part.num_rows) + self._keep(table, parts[number + 1 :])
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            path.unlink(missing_ok=True)
        return changed

    def upsert_together(self, batches_of: Mapping[str, pa.Table]) -> int:
        """Upsert into several tables, one after the other; see `upsert`."""
        return sum(self.upsert(table, rows) for table, rows in batches_of.items())

    def replay_spool(self, table: str | None = None) -> int:
        """Send what waits in the spool (of one table, or of all) and return how many batches.

        Raises:
            StoreUnavailableError: the owner does not answer; what is left stays in the spool.
        """
        return replay(self.spool, self._send_again, table)

    def ping(self) -> float:
        """Milliseconds the owner needs to answer one trivial read.

        Raises:
            StoreUnavailableError: it does not answer.
        """
        start = time.perf_counter()
        self.read("SELECT 1")
        return (time.perf_counter() - start) * 1000

    def answer_within(self, seconds: float) -> None:
        """How long the owner may take for one answer before it counts as away."""
        self._patience = Patience(seconds)

    def command(self, text: str) -> pa.Table:
        """Run one of the owner's commands (gate.py), e.g. `backup store <file>`."""
        return self._ask(text)

    def close(self) -> None:
        """Release connections; what was acknowledged stays."""
        with suppress(TimeoutError):
            # Kept connections say good-bye, which a hanging owner does not hear.
            Patience(_GOOD_BYE_SECONDS).call(self._connection.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _keep(self, table: str, parts: Sequence[pa.Table]) -> int:
        for part in parts:
            self.spool.keep(self.spool.write(table, part))
        return sum(part.num_rows for part in parts)

    def _send_again(self, table: str, rows: pa.Table) -> None:
        for part in batches.slices(batches.prepare(table, rows)):
            path = self.spool.write(table, part)
            try:
                self._merge(table, path)
            except StoreFullError:
                raise
            except StoreError as error:
                # The owner sees why a batch is refused, and quarantines it; this side does not.
                raise StoreUnavailableError(str(error)) from error
            finally:
                path.unlink(missing_ok=True)

    def _merge(self, table: str, path: Path) -> int:
        text = f"merge {table} {path.parent.name}/{path.name}"
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                return int(self._ask(text).column("changed")[0].as_py())
            except _BusyError as error:
                if time.monotonic() > deadline:
                    raise StoreUnavailableError(
                        f"Table {table} of the store was busy for {_BUSY_SECONDS:.0f} s"
                    ) from error
                time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))  # noqa: S311 no secret

    def _ask(self, text: str) -> pa.Table:
        return self._answer(text, self._ask_once)

    def _ask_once(self, text: str) -> pa.Table:
        values = {"address": self._address, "text": text, "token": self._token}
        with self._connection.cursor() as cursor:
            return cursor.execute(_ASK, values).to_arrow_table()

    def _answer(self, text: str, ask: Callable[[str], pa.Table]) -> pa.Table:
        try:
            return self._patience.call(lambda: ask(text))
        except TimeoutError as error:
            raise StoreUnavailableError(self._away(str(error))) from None
        except duckdb.Error as error:
            raise self._fault(text, error) from None

    def _away(self, detail: str) -> str:
        return (
            f"The owner of the store does not answer at {self._address}: start it with "
            f"`lakehelm up`, or alone with `python -m agents` ({detail})"
        )

    def _fault(self, text: str, error: duckdb.Error) -> StoreError:
        detail = faults.first_line(error).replace(self._token, "***")
        if faults.is_conflict(error):
            return _BusyError(detail)
        if isinstance(error, duckdb.IOException) or any(sign in detail for sign in _GONE):
            return _LostError(self._away(detail))
        if faults.is_disk_full(error):
            return faults.disk_full(str(self._store.path), error)
        if "Authentication failed" in detail:
            return StoreError(
                f"The owner of the store refuses the {self.role} token: it was started with "
                f"another one. Check store.{self.role}_token, or restart it"
            )
        if "Authorization failed" in detail:
            return faults.statement_error(
                text, StoreError(f"a {self.role} may run one SELECT over the store's tables only")
            )
        return faults.statement_error(text, error)


class _LostError(StoreUnavailableError):
    """The connection broke, or there was none."""


class _BusyError(StoreUnavailableError):
    """Another upsert of the same table was faster; the same one may be sent again."""


_GONE = ("Invalid connection id", "Database was closed", "has been invalidated")

"""Checking, backing up and restoring the store, for a person at the command line.

`check` and `backup` ask the owner when it runs and open the file themselves when it does not;
`restore` wants the owner stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, Literal

import duckdb

from lakehouse_core.config.secrets import resolve_secret
from lakehouse_core.domain.clock import Clock, utc_now
from lakehouse_core.domain.errors import (
    ConfigError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from lakehouse_core.store.client import StoreClient
from lakehouse_core.store.database import open_file
from lakehouse_core.store.durable import copy_file, sync
from lakehouse_core.store.faults import first_line
from lakehouse_core.store.gate import backup_script
from lakehouse_core.store.literals import identifier
from lakehouse_core.store.migrate import newest_version, schema_version
from lakehouse_core.store.recover import STAMP, backups_of, put_aside, wal_of
from lakehouse_core.store.spool import Spool
from lakehouse_core.store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from lakehouse_core.config.models import Config, StoreConfig
    from lakehouse_core.store.serve import Role

# Reading or copying all of a large store takes its time.
_WHOLE_STORE_SECONDS = 3600.0

State = Literal["served", "closed", "missing", "locked"]

# Reads every value of every row: DuckDB verifies the checksum of each block it reads.
_SCAN = Template("SELECT count(*) AS rows, bit_xor(hash(stored)) AS sum FROM $table AS stored")
_VERSION = "SELECT coalesce(max(version), 0) AS version FROM schema_version"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """What `check` found.

    Attributes:
        path: the store file.
        state: served by its owner, closed, missing, or locked by a process that does not answer.
        problems: what is wrong, in words; empty when the store is sound.
        schema_version: None when it could not be read.
        rows: rows per table; a table that could not be read is missing here.
        bytes: size of the file.
        spool_batches: acknowledged batches that wait for their replay.
        spool_broken: batches that could not be replayed.
        newest_backup: None when there is none.
    """

    path: Path
    state: State
    problems: tuple[str, ...]
    schema_version: int | None
    rows: dict[str, int]
    bytes: int
    spool_batches: int
    spool_broken: int
    newest_backup: Path | None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What `restore` did; `replaced` is the former store file, kept beside the new one."""

    restored_from: Path
    schema_version: int
    replaced: Path | None


def check(config: Config) -> StoreCheck:
    """Read the whole store once, through its owner if it runs; never raises for a sick store."""
    problems: list[str] = []
    rows: dict[str, int] = {}
    version: int | None = None
    state: State = "served"
    try:
        with _client(config, "reader") as client:
            client.ping()
            version = _scan(client.read, rows, problems)
    except (StoreUnavailableError, ConfigError):
        state, version = _check_file(config.store, rows, problems)
    except StoreError as error:
        problems.append(str(error))
    spool = Spool(config.store.spool)
    broken = len(spool.broken_files())
    if broken:
        problems.append(f"{broken} batches in {spool.broken} could not be replayed: see *.reason")
    return StoreCheck(
        path=config.store.path,
        state=state,
        problems=tuple(problems),
        schema_version=version,
        rows=rows,
        bytes=config.store.path.stat().st_size if config.store.path.exists() else 0,
        spool_batches=len(spool.pending()),
        spool_broken=broken,
        newest_backup=next(iter(backups_of(config.store)), None),
    )


def backup(config: Config, clock: Clock = utc_now) -> Path:
    """Copy the store, as it is at one moment, into `store.backups` and return the new file.

    The owner may run and be written to meanwhile.

    Raises:
        StoreError: it could not be copied; nothing is left behind.
    """

    def copy(partial: Path) -> None:
        try:
            _back_up_served(config, partial)
        except (StoreUnavailableError, ConfigError):
            _back_up_closed(config.store, partial)

    return write_backup(config.store, copy, f"{clock():{STAMP}}")


def write_backup(store: StoreConfig, copy: Callable[[Path], None], label: str) -> Path:
    """Have a copy made, look whether it can be opened, and give it its name.

    Args:
        store: where backups are.
        copy: copies the store into a new file.
        label: of the backup; the newest is the one that sorts last.

    Raises:
        StoreError: it could not be copied; nothing is left behind.
    """
    store.backups.mkdir(parents=True, exist_ok=True)
    final = store.backups / f"telemetry-{label}.duckdb"
    partial = final.with_suffix(".partial")
    try:
        copy(partial)
        open_file(partial, store.memory_limit, read_only=True).close()
        sync(partial)
        partial.rename(final)
        sync(store.backups)
    except BaseException:
        partial.unlink(missing_ok=True)
        wal_of(partial).unlink(missing_ok=True)
        raise
    return final


def restore(config: Config, path: Path, clock: Clock = utc_now) -> Restored:
    """Replace the store by a backup; the replaced file is kept beside it.

    Raises:
        StoreLockedError: the owner runs; stop it first.
        StoreTooNewError: a newer Lakehelm made the backup.
        StoreCorruptError: the backup is damaged; nothing was changed.
        StoreError: there is no such file.
    """
    store = config.store
    if not path.is_file():
        raise StoreError(f"There is no backup {path}")
    version = _version_of(path, store.memory_limit)
    newest = newest_version()
    if version > newest:
        raise StoreTooNewError(
            f"Backup {path} has schema version {version}, this Lakehelm knows up to {newest}"
        )
    store.path.parent.mkdir(parents=True, exist_ok=True)
    replaced = _swap(store, path, f"{clock():{STAMP}}")
    return Restored(restored_from=path, schema_version=version, replaced=replaced)


def _swap(store: StoreConfig, source: Path, stamp: str) -> Path | None:
    if not store.path.exists():
        copy_file(source, store.path)
        return None
    try:
        present = open_file(store.path, store.memory_limit)
    except StoreCorruptError:
        put_aside(wal_of(store.path), stamp, "replaced")
        aside = put_aside(store.path, stamp, "replaced")
        copy_file(source, store.path)
        return aside
    # The old file stays locked until the new one has taken its name: no owner can slip in between.
    with present:
        present.execute("CHECKPOINT")
        aside = store.path.with_name(f"{store.path.name}.replaced-{stamp}")
        aside.hardlink_to(store.path)
        copy_file(source, store.path)
    return aside


def _check_file(
    store: StoreConfig, rows: dict[str, int], problems: list[str]
) -> tuple[State, int | None]:
    if not store.path.exists():
        return "missing", None
    try:
        with open_file(store.path, store.memory_limit, read_only=True) as connection:

            def read(sql: str) -> pa.Table:
                try:
                    return connection.execute(sql).to_arrow_table()
                except duckdb.Error as error:
                    raise StoreError(first_line(error)) from error

            return "closed", _scan(read, rows, problems)
    except StoreLockedError as error:
        problems.append(f"{error}; it does not answer on the store's ports")
        return "locked", None
    except StoreError as error:
        problems.append(str(error))
        return "closed", None


def _scan(read: Callable[[str], pa.Table], rows: dict[str, int], problems: list[str]) -> int | None:
    for name in TABLES:
        try:
            found = read(_SCAN.substitute(table=identifier(name)))
            rows[name] = int(found.column("rows")[0].as_py())
        except StoreUnavailableError:
            raise
        except StoreError as error:
            problems.append(f"Table {name} cannot be read: {error}")
    try:
        return int(read(_VERSION).column("version")[0].as_py())
    except StoreUnavailableError:
        raise
    except StoreError as error:
        problems.append(f"The schema version cannot be read: {error}")
        return None


def _back_up_served(config: Config, partial: Path) -> None:
    with _client(config, "writer") as client:
        try:
            client.command(f"backup store {partial.name}")
        except StoreUnavailableError:
            raise
        except StoreError as error:
            client.command(f"discard backup {partial.name}")
            raise StoreError(f"The store cannot be backed up to {partial}: {error}") from error


def _back_up_closed(store: StoreConfig, partial: Path) -> None:
    if not store.path.exists():
        raise StoreError(f"There is no store {store.path} yet: nothing to back up")
    with open_file(store.path, store.memory_limit) as connection:
        try:
            connection.execute(backup_script(connection, partial))
        except duckdb.Error as error:
            raise StoreError(
                f"The store cannot be backed up to {partial}: {first_line(error)}"
            ) from error


def _client(config: Config, role: Role) -> StoreClient:
    token = config.store.writer_token if role == "writer" else config.store.reader_token
    client = StoreClient(config.store, token=resolve_secret(token), role=role)
    client.answer_within(_WHOLE_STORE_SECONDS)
    return client


def _version_of(path: Path, memory_limit: int) -> int:
    with open_file(path, memory_limit, read_only=True) as connection:
        return schema_version(connection)

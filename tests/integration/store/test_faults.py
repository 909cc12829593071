"""Kills during a migration, a full disk, backups of a live store."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse_core import duck
from lakehouse_core.domain.errors import (
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from lakehouse_core.store.backup import backup, check, restore
from lakehouse_core.store.batch import prepare
from lakehouse_core.store.migrate import migrate, schema_version
from lakehouse_core.store.owner import OwnerStore
from lakehouse_core.store.rows import to_arrow
from tests.factories import query_event
from tests.integration.store.conftest import wait_until
from tests.integration.store.migrating_process import ROWS, STEPS
from tests.integration.store.owner_process import READER, WRITER

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from lakehouse_core.config import Config
    from tests.conftest import DemoConfig
    from tests.integration.store.conftest import OwnerProcess

pytestmark = pytest.mark.duckdb


def events(count: int, size: int = 1) -> pa.Table:
    text = "".join(random.Random(1).choices("abcdefghij", k=size))  # noqa: S311 not to compress
    return to_arrow("query_event", [query_event(sql_text=text) for _ in range(count)])


# --- migrations --------------------------------------------------------------------------------


def test_a_migration_killed_anywhere_is_not_there_or_all_there(tmp_path: Path) -> None:
    file = tmp_path / "store.duckdb"
    outcomes = []
    for attempt in range(6):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.store.migrating_process", str(file)],
            stdout=subprocess.PIPE,
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"first\n"
            # A little later each time: somewhere inside the second migration.
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.04 * attempt + 0.001)
            process.kill()
        with duck.connect(file) as connection:
            version = schema_version(connection)
            columns = [row[0] for row in connection.execute("DESCRIBE a").fetchall()]
            count = connection.execute("SELECT count(*) FROM a").fetchone()
        outcomes.append((version, columns, count))
        if version == 2:
            break
    assert outcomes[0] == (1, ["i"], (10,))
    assert set(map(str, outcomes)) <= {
        str((1, ["i"], (10,))),
        str((2, ["i", "j"], (ROWS,))),
    }
    with duck.connect(file) as connection:
        assert migrate(connection, STEPS) == 2
        assert connection.execute("SELECT count(j) FROM a").fetchone() == (ROWS,)


# --- disk full ---------------------------------------------------------------------------------


def can_mount() -> bool:
    """Whether a small file system can be mounted here, which wants root."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        mounted = subprocess.run([*MOUNT, folder], check=False, capture_output=True)
        if mounted.returncode == 0:
            subprocess.run(["umount", folder], check=True)
    return mounted.returncode == 0


MOUNT = ("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs")
KINDS = ("file size", "disk") if can_mount() else ("file size",)


class Room:
    """A place whose space can be taken and given back."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self._kind = kind
        self._ballast = folder / "ballast"
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def take(self, but: int) -> None:
        """Leave so many bytes."""
        if self._kind == "disk":
            self._ballast.write_bytes(b"\0" * (shutil.disk_usage(self.folder).free - but))
        else:
            largest = max(path.stat().st_size for path in self.folder.glob("*.duckdb*"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest + but, self._limits[1]))

    def give_back(self) -> None:
        """Take nothing any more."""
        self._ballast.unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)


@pytest.fixture(params=KINDS)
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    """A folder that can be filled: a small file system, or a limit on the size of files."""
    place = tmp_path / "small"
    place.mkdir()
    if request.param == "disk":
        subprocess.run([*MOUNT, str(place)], check=True)
    made = Room(place, request.param)
    try:
        yield made
    finally:
        made.give_back()
        if request.param == "disk":
            subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_costs_the_write_only_and_passes(room: Room) -> None:
    with OwnerStore.at(room.folder) as store:
        first = events(100)
        assert store.upsert("query_event", first) == 100
        big = events(3000, size=3000)
        room.take(but=300_000)
        with pytest.raises(StoreFullError, match="No space left"):
            store.upsert("query_event", big)
        assert store.read("SELECT count(*) AS n FROM query_event").to_pylist() == [{"n": 100}]
        assert store.upsert("query_event", first) == 0
        room.give_back()
        assert store.upsert("query_event", big) == 3000
    with OwnerStore.at(room.folder) as store:
        assert store.recovery is None
        assert store.read("SELECT count(*) AS n FROM query_event").to_pylist() == [{"n": 3100}]


def test_a_full_disk_keeps_what_was_spooled_until_there_is_space(room: Room) -> None:
    with OwnerStore.at(room.folder) as store:
        spool = store.spool
        spool.keep(spool.write("query_event", prepare("query_event", events(3000, size=1000))))
        room.take(but=100_000)
        with pytest.raises(StoreFullError):
            store.replay_spool()
        assert len(spool.pending()) == 1
        assert spool.broken_files() == []
        room.give_back()
        assert store.replay_spool() == 1
        assert store.read("SELECT count(*) AS n FROM query_event").to_pylist() == [{"n": 3000}]


# --- check, backup, restore --------------------------------------------------------------------


@pytest.fixture
def config(owner: OwnerProcess, load_demo_config: DemoConfig, tmp_path: Path) -> Config:
    """A configuration whose store is the one of `owner`."""
    (tmp_path / "writer").write_text(WRITER)
    (tmp_path / "reader").write_text(READER)
    return load_demo_config(
        tmp_path,
        LAKEHELM__STORE__PATH=owner.config.path,
        LAKEHELM__STORE__SPOOL=owner.config.spool,
        LAKEHELM__STORE__BACKUPS=owner.config.backups,
        LAKEHELM__STORE__PORT=owner.config.port,
        LAKEHELM__STORE__WRITER_TOKEN=f"file:{tmp_path / 'writer'}",
        LAKEHELM__STORE__READER_TOKEN=f"file:{tmp_path / 'reader'}",
    )


def rows_of(file: Path) -> int:
    with duck.connect(file, read_only=True) as connection:
        found = connection.execute("SELECT count(*) FROM query_event").fetchone()
    assert found is not None
    return int(found[0])


def test_a_backup_of_a_live_store_is_whole_and_can_be_restored(
    owner: OwnerProcess, config: Config
) -> None:
    owner.start()
    with owner.client("writer") as writer:
        writer.upsert("query_event", events(500))
        saved = backup(config)
        writer.upsert("query_event", events(7))
    found = check(config)
    assert (found.ok, found.state, found.rows["query_event"]) == (True, "served", 507)
    assert found.newest_backup == saved
    assert [path.name for path in owner.config.backups.iterdir()] == [saved.name]
    assert rows_of(saved) == 500
    with pytest.raises(StoreLockedError, match=str(owner.pid)):
        restore(config, saved)

    owner.stop()
    done = restore(config, saved)
    assert done.replaced is not None
    assert rows_of(done.replaced) == 507
    owner.start()
    with owner.client("reader") as reader:
        assert reader.read("SELECT 1 FROM query_event").num_rows == 500
        assert reader.read("SELECT max(version) AS v FROM schema_version").to_pylist() == [
            {"v": done.schema_version}
        ]
    with owner.client("writer") as writer:
        assert writer.upsert("query_event", events(1)) == 1


def test_a_backup_is_one_moment_while_others_write(owner: OwnerProcess, config: Config) -> None:
    owner.start()
    module = "tests.integration.store.writing_process"
    place = (str(owner.folder), str(owner.config.port))
    writer = subprocess.Popen([sys.executable, "-m", module, *place, "w", "100000", "100"])
    try:
        notes = owner.folder / "w.acknowledged"
        wait_until(lambda: notes.exists() and notes.read_text() != "")
        saved = [backup(config) for _ in range(3)]
    finally:
        writer.kill()
        writer.wait()
    counts = [rows_of(file) for file in saved]
    assert counts == sorted(counts)
    assert all(count % 100 == 0 and count > 0 for count in counts)


def test_a_closed_store_is_checked_and_backed_up_too(owner: OwnerProcess, config: Config) -> None:
    assert check(config).state == "missing"
    with pytest.raises(StoreError, match="nothing to back up"):
        backup(config)
    with OwnerStore.open(owner.config) as store:
        store.upsert("query_event", events(20))
    saved = backup(config)
    assert rows_of(saved) == 20
    found = check(config)
    assert (found.ok, found.state, found.rows["query_event"]) == (True, "closed", 20)


def test_check_finds_a_flipped_bit(owner: OwnerProcess, config: Config) -> None:
    with OwnerStore.open(owner.config) as store:
        store.upsert("query_event", events(2000, size=400))
    content = bytearray(owner.config.path.read_bytes())
    # The last block but one holds rows, not the catalog.
    for position in range(12_288, len(content), 262_144):
        content[position + 100_000] ^= 0xFF
    owner.config.path.write_bytes(content)
    found = check(config)
    assert not found.ok
    assert found.problems


def test_check_tells_of_spooled_and_broken_batches(owner: OwnerProcess, config: Config) -> None:
    with owner.client("writer") as writer:
        writer.upsert("query_event", events(1))
        writer.spool.quarantine(writer.spool.keep(writer.spool.pending()[0]), "test")
        writer.upsert("query_event", events(1))
    found = check(config)
    assert (found.spool_batches, found.spool_broken, found.ok) == (1, 1, False)


def test_a_locked_store_that_does_not_answer_is_reported(
    owner: OwnerProcess, config: Config
) -> None:
    owner.start()
    deaf = config.model_copy(
        update={"store": config.store.model_copy(update={"port": config.gateway.admin_port})}
    )
    found = check(deaf)
    assert (found.state, found.ok) == ("locked", False)
    assert str(owner.pid) in found.problems[0]


def test_a_backup_that_is_damaged_or_too_new_is_refused(
    owner: OwnerProcess, config: Config, tmp_path: Path
) -> None:
    with OwnerStore.open(owner.config) as store:
        store.upsert("query_event", events(3))
    saved = backup(config)
    before = owner.config.path.read_bytes()
    torn = tmp_path / "torn.duckdb"
    torn.write_bytes(saved.read_bytes()[:50_000])
    with pytest.raises(StoreCorruptError, match="torn"):
        restore(config, torn)
    with duck.connect(saved) as connection:
        connection.execute("INSERT INTO schema_version VALUES (999, '0999_future', now())")
    with pytest.raises(StoreTooNewError, match="999"):
        restore(config, saved)
    with pytest.raises(StoreError, match="no backup"):
        restore(config, tmp_path / "none.duckdb")
    assert owner.config.path.read_bytes() == before


def is_stopped(pid: int) -> bool:
    """Whether every thread of a process stands still; the signal takes them one by one."""
    states = [
        (task / "stat").read_text().rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]
    return set(states) == {"T"}


def test_a_stopped_owner_is_a_time_out_and_not_a_hang(owner: OwnerProcess) -> None:
    owner.start()
    with owner.client("writer") as writer:
        with owner.client("reader") as reader:
            assert reader.ping() > 0
            writer.answer_within(1)
            reader.answer_within(1)
            os.kill(owner.pid, signal.SIGSTOP)
            wait_until(lambda: is_stopped(owner.pid))
            try:
                with pytest.raises(StoreUnavailableError, match="no answer within 1 s"):
                    reader.read("SELECT 1")
                assert writer.upsert("query_event", events(5)) == 5
                assert len(writer.spool.pending()) == 1
                reader.close()
            finally:
                os.kill(owner.pid, signal.SIGCONT)
        wait_until(lambda: writer.spool.pending() == [])

"""Several processes on one store: at once, through kills and restarts; nothing lost or doubled."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from lakehouse_core import duck
from lakehouse_core.domain.errors import PortTakenError, StoreLockedError, StoreUnavailableError
from lakehouse_core.store import serve
from lakehouse_core.store.owner import OwnerStore, Tokens
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.store.spool import Spool
from tests.factories import query_event, watermark
from tests.integration.store.conftest import OwnerProcess, wait_until
from tests.integration.store.owner_process import READER, WRITER
from tests.integration.store.writing_process import batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.duckdb

DOUBLES = """
SELECT count(*) - count(DISTINCT (engine_id, query_id)) AS doubled FROM query_event
"""
FOUND = "SELECT engine_id, count(DISTINCT query_id) AS n FROM query_event GROUP BY ALL ORDER BY 1"


@pytest.fixture
def writing(owner: OwnerProcess) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Writing processes of a test; killed at its end."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def start_writing(
    owner: OwnerProcess, name: str, batches: int, rows: int
) -> subprocess.Popen[bytes]:
    module = "tests.integration.store.writing_process"
    place = (str(owner.folder), str(owner.config.port))
    return subprocess.Popen([sys.executable, "-m", module, *place, name, str(batches), str(rows)])


def acknowledged(owner: OwnerProcess, name: str) -> set[int]:
    file = owner.folder / f"{name}.acknowledged"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return {int(line) for line in lines}


def test_processes_write_and_read_at_once_without_a_lock_error(
    owner: OwnerProcess, writing: list[subprocess.Popen[bytes]]
) -> None:
    owner.start()
    # Two names, four processes: each batch is written by two of them at about the same time.
    writing += [start_writing(owner, name, 15, 40) for name in ("a", "b", "a", "b")]
    with owner.client("reader") as reader:
        while any(process.poll() is None for process in writing):
            assert reader.read(DOUBLES).to_pylist() == [{"doubled": 0}]
        assert [process.returncode for process in writing] == [0, 0, 0, 0]
        assert reader.read(FOUND).to_pylist() == [
            {"engine_id": "a", "n": 600},
            {"engine_id": "b", "n": 600},
        ]
        assert reader.read(DOUBLES).to_pylist() == [{"doubled": 0}]
    assert list((owner.config.spool / "inflight").iterdir()) == []


def test_sigkill_of_the_owner_during_heavy_ingestion_loses_and_doubles_nothing(
    owner: OwnerProcess, writing: list[subprocess.Popen[bytes]]
) -> None:
    names, rows = ("left", "right"), 200
    moments = random.Random(7)  # noqa: S311 when to kill
    owner.start()
    writing += [start_writing(owner, name, 100_000, rows) for name in names]
    for _ in range(4):
        for name in names:
            wait_for_more(owner, name, moments.randrange(2, 8))
        owner.kill()
        for name in names:
            wait_for_more(owner, name, 2)
        owner.start()
    (owner.folder / "enough").touch()
    assert [process.wait() for process in writing] == [0, 0]
    check_all_arrived(owner, names, rows)


def test_sigkill_of_a_client_leaves_whole_batches_and_no_litter(
    owner: OwnerProcess, writing: list[subprocess.Popen[bytes]]
) -> None:
    owner.start()
    for _ in range(3):
        process = start_writing(owner, "c", 100_000, 300)
        writing.append(process)
        wait_for_more(owner, "c", 2)
        process.kill()
        process.wait()
    owner.kill()
    owner.start()
    assert list((owner.config.spool / "inflight").iterdir()) == []
    with owner.client("reader") as reader:
        assert reader.read(DOUBLES).to_pylist() == [{"doubled": 0}]
        parts = reader.read(
            "SELECT split_part(query_id, '-', 1)::INTEGER AS number, count(*) AS n "
            "FROM query_event GROUP BY 1"
        ).to_pylist()
    assert {row["n"] for row in parts} == {300}
    assert acknowledged(owner, "c") <= {row["number"] for row in parts}


def wait_for_more(owner: OwnerProcess, name: str, batches: int) -> None:
    wanted = len(acknowledged(owner, name)) + batches
    wait_until(lambda: len(acknowledged(owner, name)) >= wanted, seconds=60)


def check_all_arrived(owner: OwnerProcess, names: tuple[str, ...], rows: int) -> None:
    """Every acknowledged event is there exactly once, as it was sent; none waits or is broken."""
    spool = Spool(owner.config.spool)
    wait_until(lambda: spool.pending() == [], seconds=60)
    assert spool.broken_files() == []
    with owner.client("reader") as reader, owner.client("writer") as writer:
        assert reader.read(DOUBLES).to_pylist() == [{"doubled": 0}]
        found = {row["engine_id"]: row["n"] for row in reader.read(FOUND).to_pylist()}
        for name in names:
            sent = acknowledged(owner, name)
            assert sent == set(range(len(sent)))
            assert found[name] == len(sent) * rows
            # What is stored equals what was sent: sending it again changes nothing.
            again = [batch(name, number, rows) for number in sorted(sent)[::9]]
            assert [writer.upsert("query_event", one) for one in again] == [0] * len(again)


def test_while_the_owner_is_away_batches_are_kept_and_arrive_in_order(owner: OwnerProcess) -> None:
    with owner.client("writer") as writer, owner.client("reader") as reader:
        events = [query_event() for _ in range(10)]
        assert writer.upsert("query_event", to_arrow("query_event", events)) == 10
        for position in ("1", "2", "3"):
            writer.upsert("watermark", to_arrow("watermark", [watermark(position=position)]))
        assert len(writer.spool.pending()) == 4
        with pytest.raises(StoreUnavailableError):
            reader.read("SELECT 1")
        owner.start()
        assert writer.spool.pending() == []
        assert reader.read("SELECT position FROM watermark").to_pylist() == [{"position": "3"}]
        owner.kill()
        writer.upsert("watermark", to_arrow("watermark", [watermark(position="4")]))
        assert len(writer.spool.pending()) == 1
        owner.start()
        writer.upsert("watermark", to_arrow("watermark", [watermark(position="5")]))
        assert reader.read("SELECT position FROM watermark").to_pylist() == [{"position": "5"}]
        assert writer.upsert("query_event", to_arrow("query_event", events)) == 0


def test_a_client_replays_what_it_kept_before_it_writes_more(owner: OwnerProcess) -> None:
    owner.start()
    with owner.client("writer") as writer, owner.client("reader") as reader:
        parked = owner.folder / "parked"
        owner.kill()
        writer.upsert("watermark", to_arrow("watermark", [watermark(position="kept")]))
        kept = writer.spool.pending()[0]
        kept.rename(parked)
        owner.start()
        # As if the owner had not looked at its spool since: the client must do it.
        parked.rename(kept)
        writer.upsert("watermark", to_arrow("watermark", [watermark(position="new")]))
        assert reader.read("SELECT position FROM watermark").to_pylist() == [{"position": "new"}]
        assert writer.spool.pending() == []


def test_the_owner_looks_at_its_spool_by_itself(owner: OwnerProcess) -> None:
    with owner.client("writer") as writer, owner.client("reader") as reader:
        writer.upsert("query_event", to_arrow("query_event", [query_event()]))
        kept = writer.spool.pending()[0]
        parked = owner.folder / "parked"
        kept.rename(parked)
        owner.start()
        parked.rename(kept)
        wait_until(lambda: reader.read("SELECT 1 FROM query_event").num_rows == 1)


def test_clients_go_on_after_the_owner_was_restarted(owner: OwnerProcess) -> None:
    owner.start()
    with owner.client("writer") as writer, owner.client("reader") as reader:
        writer.upsert("query_event", to_arrow("query_event", [query_event()]))
        assert owner.stop() == 0
        with pytest.raises(StoreUnavailableError, match="python -m agents"):
            reader.ping()
        owner.start()
        assert reader.read("SELECT 1 FROM query_event").num_rows == 1
        assert reader.ping() > 0
        assert writer.upsert("query_event", to_arrow("query_event", [query_event()])) == 1
        assert writer.spool.pending() == []


def test_a_second_owner_is_told_who_holds_the_store(owner: OwnerProcess) -> None:
    owner.start()
    with pytest.raises(StoreLockedError, match=rf"held by process {owner.pid} .*agents process"):
        OwnerStore.open(owner.config)


def test_a_taken_port_is_named_and_the_file_is_let_go(owner: OwnerProcess, tmp_path: Path) -> None:
    owner.start()
    other = owner.config.model_copy(update={"path": tmp_path / "other.duckdb"})
    with pytest.raises(PortTakenError, match=f"{owner.config.port}.*taken"):
        OwnerStore.open(other, tokens=Tokens("first-token", "second-token"))
    OwnerStore.open(other).close()


def test_a_store_in_threads_is_served_while_it_is_written_in_process(tmp_path: Path) -> None:
    served = OwnerProcess(tmp_path)
    with ExitStack() as stack:
        store = stack.enter_context(
            OwnerStore.open(served.config, tokens=Tokens("first-token", "second-token"))
        )
        process = start_writing_with(served, stack, "first-token")
        while process.poll() is None:
            store.upsert("query_event", batch("shared", 0, 50))
            store.upsert("query_event", batch("own", 0, 50))
        assert process.returncode == 0
        assert store.read(FOUND).to_pylist() == [
            {"engine_id": "own", "n": 50},
            {"engine_id": "shared", "n": 500},
        ]
        assert store.read(DOUBLES).to_pylist() == [{"doubled": 0}]


def test_servers_start_afresh_when_connections_of_dead_clients_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = OwnerProcess(tmp_path)
    with (
        duck.connect(extensions=("quack",)) as connection,
        duck.connect(extensions=("quack",)) as forgotten,
        served.client("reader") as reader,
    ):
        servers = serve.Servers(connection, served.config, Tokens(WRITER, READER))
        servers.start()
        address = f"quack:127.0.0.1:{served.config.port}"
        forgotten.execute(f"ATTACH '{address}' AS left_behind (TOKEN '{WRITER}')")
        assert not servers.tend()
        monkeypatch.setattr(serve, "MOST_CONNECTIONS", 0)
        assert servers.tend()
        assert not servers.tend()
        assert reader.read("SELECT 1 AS one").to_pylist() == [{"one": 1}]
        servers.stop()


def test_an_owner_that_lost_its_database_opens_it_again(tmp_path: Path) -> None:
    served = OwnerProcess(tmp_path)
    tokens = Tokens(WRITER, READER)
    with OwnerStore.open(served.config, tokens=tokens) as store, served.client("reader") as reader:
        store.upsert("query_event", batch("own", 0, 10))
        # As after a fatal error of DuckDB: the instance is of no use any more.
        store._connection.close()
        with pytest.raises(StoreUnavailableError, match="reopened"):
            store.read("SELECT 1")
        assert store.read("SELECT 1 FROM query_event").num_rows == 10
        assert store.upsert("query_event", batch("own", 1, 10)) == 10
        assert reader.read("SELECT 1 FROM query_event").num_rows == 20


def start_writing_with(
    served: OwnerProcess, stack: ExitStack, token: str
) -> subprocess.Popen[bytes]:
    script = (
        "import sys; from tests.integration.store import owner_process; "
        f"owner_process.WRITER = {token!r}; "
        "from tests.integration.store import writing_process; writing_process.main()"
    )
    arguments = (str(served.folder), str(served.config.port), "shared", "10", "50")
    process = stack.enter_context(subprocess.Popen([sys.executable, "-c", script, *arguments]))
    stack.callback(process.kill)
    return process

"""Replays of one process take turns: its threads wait for each other and never for themselves."""

from __future__ import annotations

import fcntl
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import StoreUnavailableError
from lakehouse_core.store import spool as spools
from lakehouse_core.store.batch import prepare
from lakehouse_core.store.rows import to_arrow
from tests.factories import query_event, watermark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore
    from lakehouse_core.store.spool import Spool

SECONDS = 10.0


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Two threads beside the test's own."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def short_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may replay for a moment only."""
    monkeypatch.setattr(spools, "_LOCK_SECONDS", 0.02)


def put(spool: Spool, table: str, record: object) -> Path:
    return spool.keep(spool.write(table, prepare(table, to_arrow(table, [record]))))


def begin_replay(store: OwnerStore, threads: ThreadPoolExecutor) -> Future[int]:
    """A replay in another thread, one step before it asks for its turn."""
    stray = store.spool.inflight / "of-nobody.watermark.parquet"
    stray.touch()
    replaying = threads.submit(store.replay_spool)
    # Strays are removed first.
    deadline = time.monotonic() + SECONDS
    while stray.exists():
        assert time.monotonic() < deadline, "the replay did not begin"
        time.sleep(0.001)
    return replaying


def position(store: OwnerStore) -> list[str]:
    return list(store.read("SELECT position FROM watermark")["position"].to_pylist())


def test_a_thread_waits_for_the_replay_of_another_however_long_that_takes(
    store: OwnerStore, threads: ThreadPoolExecutor, short_of_patience: None
) -> None:
    put(store.spool, "watermark", watermark(position="old"))
    new = to_arrow("watermark", [watermark(position="new")])
    with store.alone():  # as a long write does
        replaying = begin_replay(store, threads)
        writing = threads.submit(store.upsert, "watermark", new)
        with pytest.raises(TimeoutError):
            writing.result(timeout=0.2)
    assert writing.result(SECONDS) == 1
    replaying.result(SECONDS)
    assert position(store) == ["new"]


def test_who_writes_alone_does_not_wait_for_a_replay_that_waits_for_it(
    store: OwnerStore, threads: ThreadPoolExecutor, short_of_patience: None
) -> None:
    put(store.spool, "watermark", watermark(position="old"))
    with store.alone():
        replaying = begin_replay(store, threads)
        assert store.upsert("watermark", to_arrow("watermark", [watermark(position="new")])) == 1
    assert replaying.result(SECONDS) == 0
    assert position(store) == ["new"]
    assert store.spool.pending() == []


def test_a_store_that_is_reopened_in_the_middle_of_a_replay_goes_on_with_the_next(
    store: OwnerStore, short_of_patience: None
) -> None:
    put(store.spool, "watermark", watermark())
    # As DuckDB does after a fatal error: nobody can use the database until it is opened again.
    store._connection.close()
    with pytest.raises(StoreUnavailableError, match="A write to watermark failed"):
        store.replay_spool()
    assert store.replay_spool() == 1
    assert store.read("SELECT 1 FROM watermark").num_rows == 1


def test_another_process_that_replays_stops_only_writes_of_what_waits(
    store: OwnerStore, threads: ThreadPoolExecutor
) -> None:
    put(store.spool, "watermark", watermark())
    with (store.spool.folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = threads.submit(store.replay_spool)
        event = to_arrow("query_event", [query_event()])
        assert threads.submit(store.upsert, "query_event", event).result(SECONDS) == 1
        assert not waiting.done()
    assert waiting.result(SECONDS) == 1


def test_another_process_that_replays_for_too_long_is_an_error_that_says_so(
    store: OwnerStore, short_of_patience: None
) -> None:
    put(store.spool, "watermark", watermark())
    with (store.spool.folder / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StoreUnavailableError, match="is still under way"):
            store.upsert("watermark", to_arrow("watermark", [watermark()]))
    assert len(store.spool.pending()) == 1

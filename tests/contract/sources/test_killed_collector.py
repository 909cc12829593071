"""A collector that is killed at any moment loses nothing and doubles nothing."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents.collect import run_once
from lakehouse_core.store.owner import OwnerStore
from tests.contract.sources.tallies import complete, letters, totals
from tests.contract.sources.worlds import KINDS, SOURCES, WORLDS
from tests.factories import NOW

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import pyarrow as pa

KILLS = 6
PATIENCE_SECONDS = 60

pytestmark = pytest.mark.duckdb  # opens the store again and again


class TellingStore:
    """The store, telling the parent before and after each write so that it can choose a moment."""

    def __init__(self, store: OwnerStore, pipe: Connection) -> None:
        self._store = store
        self._pipe = pipe

    def read(self, sql: str, **params: Any) -> pa.Table:
        return self._store.read(sql, **params)

    def upsert(self, table: str, rows: pa.Table) -> int:
        self._pipe.send("before")
        changed = self._store.upsert(table, rows)
        self._pipe.send("after")
        return changed

    def close(self) -> None:
        self._store.close()


def collect_in_child(kind: str, place: str, folder: str, pipe: Connection) -> None:
    """What the process that gets killed does."""
    with OwnerStore.at(Path(folder)) as store:
        telling = TellingStore(store, pipe)
        run_once(SOURCES[kind](place), telling, lambda: NOW, timeout=timedelta(minutes=1))
    pipe.send("done")


@pytest.mark.parametrize("kind", KINDS)
def test_killed_again_and_again_it_ends_with_every_query_once(kind: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.contract.sources.test_killed_collector"])
    luck = random.Random(kind)  # noqa: S311 a repeatable choice of moments
    world = WORLDS[kind](tmp_path)
    folder = tmp_path / "store"
    queries = 0
    deaths = 0
    try:
        for _ in range(KILLS):
            for _ in range(4):
                world.run(queries)
                queries += 1
            ours, theirs = context.Pipe(duplex=False)
            child = context.Process(
                target=collect_in_child, args=(kind, world.place, str(folder), theirs)
            )
            child.start()
            theirs.close()
            for _ in range(luck.randint(1, 12)):
                assert ours.poll(PATIENCE_SECONDS)
                if ours.recv() == "done":
                    break
            else:
                assert child.pid is not None
                os.kill(child.pid, signal.SIGKILL)
            child.join(PATIENCE_SECONDS)
            ours.close()
            deaths += child.exitcode == -signal.SIGKILL
        with OwnerStore.at(folder) as store:
            report = run_once(world.source(), store, lambda: NOW, timeout=timedelta(minutes=1))
            assert report.error is None
            assert totals(store) == complete(world, queries)
            assert letters(store) == []
    finally:
        world.close()
    assert deaths >= KILLS // 2, "it was hardly ever killed: the test shows nothing"

"""kill -9 of the job, and of whoever started it: one outcome, no row lost or doubled."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.catalog.location import local_path
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.maintenance import State
from lakehouse_core.maintenance.execute import Maintainer, Surroundings
from lakehouse_core.maintenance.job import RunFolder, run_of
from lakehouse_core.maintenance.lease import lease_file
from lakehouse_core.maintenance.verify import OPERATION
from lakehouse_core.runtime.leftover import processes_of
from lakehouse_core.store.owner import OwnerStore
from tests.integration.maintenance.world import World, quick

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakehouse_core.domain.maintenance import Action
    from lakehouse_core.runtime.jobs import Progress

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(900)]  # of a busy machine

AGENTS = """
import pickle
import sys
from pathlib import Path
from lakehouse_core.config.environment import read_machine
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.maintenance.execute import Maintainer, Surroundings
from lakehouse_core.store.owner import OwnerStore

config = pickle.loads(Path(sys.argv[1]).read_bytes())
with OwnerStore.open(config.store) as store:
    Maintainer(config, store, Surroundings(machine=read_machine(), clock=utc_now)).run_once()
"""


class Killer:
    """Ends the job when a moment has come; asked ten times a second, as the real one is."""

    def __init__(self, world: World, action: Action, moment: str) -> None:
        self.world, self.action, self.moment = world, action, moment
        self.files = set(self._files())
        self.lock: sqlite3.Connection | None = None
        self.is_done = False

    def on_action(self, _: str, progress: Progress) -> None:
        step = progress.what.removeprefix(self.action.action_id).strip()
        if self.moment == "before write" and step == "look":
            self.kill()
        elif self.moment == "before commit" and step == "compact":
            # Nobody can commit while this is held; files are written all the same.
            path = self.world.config.catalogs["lake"].path
            self.lock = sqlite3.connect(path, isolation_level=None)
            self.lock.execute("BEGIN IMMEDIATE")
        elif self.moment == "after commit" and step == "verify":
            self.kill()

    def is_stopping(self) -> bool:
        if self.lock is not None and set(self._files()) - self.files:
            self.kill()
        return False

    def kill(self) -> None:
        if self.is_done:
            return
        run_id = run_of(
            self.world.config.home, self.world.now(self.action).operation_id or ""
        ).run_id
        for pid in processes_of(run_id):
            os.kill(pid, signal.SIGKILL)
        self.is_done = True
        if self.lock is not None:
            self.lock.close()
            self.lock = None

    def _files(self) -> list[Path]:
        folder = local_path(self.world.metadata(self.action.table_id).table_location) / "data"
        return list(folder.rglob("*.parquet"))


def settled(world: World, action: Action) -> Action:
    maintainer = world.new_maintainer()
    with closing(maintainer):
        for _ in range(3):
            maintainer.run_once()
            if world.now(action).state in {State.VERIFIED, State.FAILED}:
                break
    return world.now(action)


def operations(world: World, table_id: str) -> set[str]:
    return {
        one.summary[OPERATION]
        for one in world.metadata(table_id).snapshots
        if OPERATION in one.summary
    }


def wait_for(condition: Callable[[], bool], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


@pytest.mark.parametrize("moment", ["before write", "before commit", "after commit"])
def test_a_killed_job_is_classified_and_carried_on(world: World, moment: str) -> None:
    table_id = world.create(files=4)
    rows = world.rows(table_id)
    approved = world.approve(table_id)
    killer = Killer(world, approved, moment)
    around = Surroundings(
        machine=read_machine(),
        clock=world.clock,
        on_action=killer.on_action,
        is_stopping=killer.is_stopping,
    )
    with closing(Maintainer(world.config, world.store, around)) as maintainer:
        maintainer.run_once()
    assert killer.is_done
    between = world.now(approved)
    is_committed = moment == "after commit"
    assert between.state is (State.VERIFIED if is_committed else State.SCHEDULED)
    assert world.rows(table_id) == rows  # readable, no half state
    done = settled(world, approved)
    assert done.state is State.VERIFIED, done.explanation
    assert done.attempts == (1 if is_committed else 2)
    assert operations(world, table_id) == {done.operation_id}  # never twice
    assert world.rows(table_id) == rows
    assert world.is_whole(table_id)


def test_killed_agents_take_their_job_with_them(world: World, tmp_path: Path) -> None:
    table_id = world.create(files=4)
    rows = world.rows(table_id)
    approved = world.approve(table_id)
    world.maintainer.close()
    world.store.close()
    file = tmp_path / "config"
    file.write_bytes(pickle.dumps(world.config))
    agents = subprocess.Popen([sys.executable, "-c", AGENTS, str(file)])
    runs = world.config.home / "run" / "maintenance"
    try:
        wait_for(
            lambda: runs.is_dir() and any((one / "plan.json").exists() for one in runs.iterdir())
        )
        run_id = next(runs.iterdir()).name
        wait_for(lambda: len(processes_of(run_id)) >= 2)  # Python and the JVM
    finally:
        agents.kill()
        agents.wait()
    wait_for(lambda: not processes_of(run_id))
    with OwnerStore.open(world.config.store) as store:
        again = World(world.config, store)
        assert again.now(approved).state is State.RUNNING
        done = settled(again, approved)
        again.maintainer.close()
    assert done.state is State.VERIFIED, done.explanation
    assert done.attempts == 2
    assert world.rows(table_id) == rows
    assert len(operations(world, table_id)) == 1


def test_a_catalog_out_of_reach_between_rewrite_and_commit_leaves_no_half_state(
    world: World,
) -> None:
    table_id = world.create(files=4)
    rows = world.rows(table_id)
    approved = world.approve(table_id)
    before = world.metadata(table_id).location
    held: list[sqlite3.Connection] = []

    def hold(_: str, progress: Progress) -> None:
        if progress.what.endswith("compact") and not held:
            path = world.config.catalogs["lake"].path
            held.append(sqlite3.connect(path, isolation_level=None, check_same_thread=False))
            held[0].execute("BEGIN EXCLUSIVE")

    around = Surroundings(machine=read_machine(), clock=world.clock, on_action=hold)
    with closing(Maintainer(world.config, world.store, around)) as maintainer:
        maintainer.run_once()
        held[0].close()
        after = world.now(approved)
        assert after.state in {State.SCHEDULED, State.RUNNING}, after.explanation
        assert world.metadata(table_id).location == before
        assert world.rows(table_id) == rows
        assert world.is_whole(table_id)
        maintainer.run_once()  # the table can be asked again what became of it
        after = world.now(approved)
        assert after.state is State.SCHEDULED, after.explanation
        world.clock.turn(hours=1)  # the pause after a conflict
    done = settled(world, approved)
    assert done.state is State.VERIFIED, done.explanation
    assert world.rows(table_id) == rows


def test_agents_paused_past_their_lease_commit_nothing(world: World, tmp_path: Path) -> None:
    table_id = world.create(files=4)
    rows, before = world.rows(table_id), world.metadata(table_id).location
    approved = world.approve(table_id)
    world.maintainer.close()
    world.store.close()
    config = quick(world.config, lease="3s")
    file = tmp_path / "config"
    file.write_bytes(pickle.dumps(config))
    lease = lease_file(config.home, table_id)
    agents = subprocess.Popen([sys.executable, "-c", AGENTS, str(file)])
    paused = [agents.pid]
    lock = sqlite3.connect(config.catalogs["lake"].path, isolation_level=None)
    try:
        log = wait_for_log(config.home, f"{approved.action_id} look")
        lock.execute("BEGIN IMMEDIATE")  # nobody commits before we look
        folder = RunFolder(config.home, log.stem)
        paused += processes_of(folder.run_id)
        for pid in paused:
            os.kill(pid, signal.SIGSTOP)
        # Others are told that the store is taken, and do nothing.
        other = subprocess.run(
            [sys.executable, "-c", AGENTS, str(file)], capture_output=True, text=True, check=False
        )
        assert other.returncode != 0
        assert "StoreLockedError" in other.stderr
        ends = datetime.fromisoformat(json.loads(lease.read_text())["expires_at"])
        wait_for(lambda: datetime.now(UTC) > ends)
        for pid in paused[1:]:  # the job alone: nobody is there to end it
            os.kill(pid, signal.SIGCONT)
        wait_for(lambda: approved.action_id in folder.report())
        told = folder.report()[approved.action_id]
        assert told["outcome"] == "lost", told
        assert "(token 1)" in told["error"]
    finally:
        lock.close()
        for pid in paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        agents.wait(180)
    assert world.metadata(table_id).location == before
    with OwnerStore.open(config.store) as store:
        again = World(world.config, store)
        assert again.now(approved).state is State.SCHEDULED
        done = settled(again, approved)
        again.maintainer.close()
    assert done.state is State.VERIFIED, done.explanation
    tokens = {
        one.summary["lakehelm.lease-token"]
        for one in world.metadata(table_id).snapshots
        if OPERATION in one.summary
    }
    assert tokens == {"2"}
    assert world.rows(table_id) == rows


def wait_for_log(home: Path, text: str) -> Path:
    """The log of the run that says so."""
    found: list[Path] = []

    def is_there() -> bool:
        logs = (home / "logs" / "maintenance").glob("*.log")
        found.extend(one for one in logs if text in one.read_text())
        return bool(found)

    wait_for(is_there)
    return found[0]

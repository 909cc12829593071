"""Each action is judged by itself, at its turn, by what it was approved for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakehouse_core.catalog.location import local_path
from lakehouse_core.domain.maintenance import Change, Kind, State
from lakehouse_core.maintenance.job import run_of
from tests.unit.maintenance.yard import Fate, Killed

if TYPE_CHECKING:
    from tests.unit.maintenance.yard import Yard

pytestmark = pytest.mark.slow


def test_an_action_that_cannot_be_judged_waits_and_says_why(yard: Yard) -> None:
    """The table's owner wrote `8MB` where Iceberg wants a number."""
    odd = {"commit.manifest.target-size-bytes": "8MB"}
    broken = yard.approve(yard.create(**odd), Kind.REWRITE_MANIFESTS, priority=9.0)
    sound = yard.approve(yard.create(), priority=0.1)
    yard.maintainer.run_once()
    waits = yard.now(broken)
    assert waits.state is State.SCHEDULED
    assert "8MB" in (waits.explanation or "")
    assert waits.not_before is not None
    assert waits.not_before > yard.clock()
    assert yard.now(sound).state is State.VERIFIED


def test_an_action_that_cannot_be_settled_holds_up_no_other(yard: Yard) -> None:
    left = yard.approve(yard.create())
    yard.fate = Fate(dies="after_commit", kills_agents=True)
    with pytest.raises(Killed):
        yard.maintainer.run_once()
    report = run_of(yard.config.home, yard.now(left).operation_id or "").files.report
    report.write_text(json.dumps({"actions": [{"outcome": "done"}]}))  # it names no action
    yard.fate = Fate()
    sound = yard.approve(yard.create())
    restarted = yard.new_maintainer()
    restarted.run_once()
    assert yard.now(left).state is State.RUNNING
    assert yard.now(sound).state is State.VERIFIED
    report.unlink()
    restarted.run_once()
    restarted.close()
    assert yard.now(left).state is State.VERIFIED


def test_an_action_that_has_to_wait_anyway_is_not_looked_at(yard: Yard) -> None:
    """Its table cannot even be read, which nobody finds out before its turn has come."""
    table_id = yard.create()
    approved = yard.approve(table_id, Kind.REMOVE_ORPHANS)
    yard.maintainer._leases.acquire(table_id, holder="other", action_id="x")
    local_path(str(yard.metadata(table_id).history[0].manifest_list)).unlink()
    yard.maintainer.run_once()
    waits = yard.now(approved)
    assert waits.state is State.SCHEDULED
    assert "other runs are at work" in (waits.explanation or "")
    assert waits.not_before is not None
    yard.clock.turn(minutes=10)
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.REFUSED


def test_a_stream_that_runs_and_is_silent_keeps_its_files(yard: Yard) -> None:
    """What a Flink job wrote since its last commit looks like orphans, however old it is."""
    table_id = yard.create(files=0)
    for number in range(4):
        yard.append(table_id, number, **{"flink.job-id": "j1"})
    yard.clock.turn(days=5)
    known = {"engine_id": "flink", "job_id": "j1", "state": "RUNNING", "seen_at": yard.clock()}
    yard.store.upsert("flink_job", pa.Table.from_pylist([known]))
    approved = yard.approve(table_id, Kind.REMOVE_ORPHANS)
    yard.maintainer.run_once()
    assert "flink job j1 runs and has not committed" in (yard.now(approved).explanation or "")
    ended = known | {"state": "FINISHED", "seen_at": yard.clock()}
    yard.store.upsert("flink_job", pa.Table.from_pylist([ended]))
    yard.clock.turn(hours=1)
    yard.maintainer.run_once()
    assert yard.now(approved).state is not State.SCHEDULED


def test_an_approval_is_void_when_somebody_else_has_done_the_work(yard: Yard) -> None:
    fewer = Change(name="data_files", unit="files", before=30, after=1)
    approved = yard.approve(yard.create(files=2), predicted=(fewer,))
    yard.maintainer.run_once()
    void = yard.now(approved)
    assert void.state is State.EXPIRED
    assert "data files 30 then, 2 now" in (void.explanation or "")
    assert yard.jobs == []

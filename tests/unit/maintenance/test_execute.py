"""From approved to proven, on real tables: one outcome each, whatever dies on the way."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.domain.maintenance import Kind, State
from lakehouse_core.maintenance.audit import AUDIT_SQL, read_head, verify_chain
from lakehouse_core.maintenance.records import audit_of
from lakehouse_core.maintenance.verify import OPERATION
from lakehouse_core.runtime.jobs import JobEnd
from lakehouse_core.sql.sketch import LiteralCell
from lakehouse_core.store.rows import to_arrow
from tests.factories import decision_request
from tests.unit.maintenance.yard import Fate, Killed, Yard

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse_core.domain.maintenance import Action

pytestmark = pytest.mark.slow


def is_free(yard: Yard, table_id: str) -> bool:
    rows = yard.store.read(
        "SELECT released_at FROM table_lease WHERE table_id = $table", table=table_id
    )
    return all(one is not None for one in rows.column("released_at").to_pylist())


def commits_of(yard: Yard, one: Action) -> set[str]:
    """Operations in the table's history, I4: each of ours belongs to an approved action."""
    return {
        snapshot.summary[OPERATION]
        for snapshot in yard.metadata(one.table_id).history
        if OPERATION in snapshot.summary
    }


def test_an_approved_action_is_done_and_proven(yard: Yard) -> None:
    table_id = yard.create(files=6)
    rows = yard.rows(table_id)
    approved = yard.approve(table_id)
    assert yard.maintainer.run_once() == 1
    done = yard.now(approved)
    assert done.state is State.VERIFIED, done.explanation
    realised = {change.name: [change.before, change.after] for change in done.realised}
    assert realised["data_files"] == [6, 1]
    assert realised["total_rows"] == [6, 6]
    assert "data files 6 → 1" in (done.explanation or "")
    assert all(check["ok"] for check in done.verification)
    assert done.result_snapshot_id == yard.metadata(table_id).history[0].snapshot_id
    assert commits_of(yard, done) == {done.operation_id}
    assert yard.rows(table_id) == rows
    assert is_free(yard, table_id)
    entries = audit_of(yard.store.read(AUDIT_SQL))
    assert [one.verb for one in entries] == [
        "proposed", "approved", "running", "verifying", "verified",
    ]  # fmt: skip
    assert verify_chain(entries, read_head(yard.store.path)).is_intact


def literal(table_id: str, operator: str, text: str, template: str = "t1") -> LiteralCell:
    return LiteralCell(
        template_id=template,
        table_name=table_id,
        column_name="id",
        role="filter_range",
        operator=operator,
        literal_kind="number",
        part="sample",
        revision=1,
        literals=(text,),
        literal_count=1,
        is_complete=True,
        is_negated=False,
        is_conjunct=True,
    )


def test_the_conditions_of_readers_are_planned_before_and_after(yard: Yard) -> None:
    table_id = yard.create(files=6)  # id 0 to 5, a file each
    cells = [
        literal(table_id, ">=", "2"),
        literal(table_id, "<=", "3"),
        literal(table_id, "=", "99", "t2"),
    ]
    yard.store.upsert("column_literal", to_arrow("column_literal", cells))
    approved = yard.approve(table_id)
    yard.maintainer.run_once()
    done = yard.now(approved)
    assert done.state is State.VERIFIED, done.explanation
    realised = {change.name: [change.before, change.after] for change in done.realised}
    assert realised["planned_files"] == [2, 1]  # ids 2 and 3, then the one file; nobody has a 99
    before, after = (figure or 0 for figure in realised["planned_bytes"])
    assert 0 < after < before


def test_without_known_readers_nothing_is_said_of_their_plans(yard: Yard) -> None:
    approved = yard.approve(yard.create(files=3))
    yard.maintainer.run_once()
    names = {change.name for change in yard.now(approved).realised}
    assert "data_files" in names
    assert not names & {"planned_files", "planned_bytes"}


def test_what_was_done_is_not_done_again(yard: Yard) -> None:
    table_id = yard.create()
    first = yard.approve(table_id)
    yard.maintainer.run_once()
    before = yard.metadata(table_id).location
    again = yard.approve(table_id)
    yard.maintainer.run_once()
    assert yard.now(first).state is State.VERIFIED
    assert yard.now(again).state is State.REFUSED
    assert yard.metadata(table_id).location == before
    assert len(yard.jobs) == 1


def test_several_tables_share_one_job(yard: Yard) -> None:
    approved = [yard.approve(yard.create(files=3), priority=float(n)) for n in range(3)]
    yard.maintainer.run_once()
    assert [yard.now(one).state for one in approved] == [State.VERIFIED] * 3
    assert yard.jobs == [[one.action_id for one in reversed(approved)]]  # best first


@pytest.mark.parametrize("dies", ["before", "after_commit", "after_report"])
@pytest.mark.parametrize("kills_agents", [False, True])
def test_a_job_or_agents_killed_anywhere_leave_one_outcome(
    yard: Yard, dies: str, kills_agents: bool
) -> None:
    table_id = yard.create()
    rows = yard.rows(table_id)
    approved = yard.approve(table_id)
    yard.fate = Fate(dies=dies, kills_agents=kills_agents)
    if kills_agents:
        with pytest.raises(Killed):
            yard.maintainer.run_once()
    else:
        yard.maintainer.run_once()
    yard.fate = Fate()
    restarted = yard.new_maintainer()
    for _ in range(3):
        restarted.run_once()
    restarted.close()
    done = yard.now(approved)
    assert done.state is State.VERIFIED, done.explanation
    worked = [one for plan in yard.plans for one in plan["actions"] if not one["proves"]]
    assert len(worked) == (2 if dies == "before" else 1)  # never twice
    assert len(yard.jobs) == (1 if dies == "after_report" else 2)  # one that compares, else
    assert commits_of(yard, done) == {done.operation_id}
    assert yard.rows(table_id) == rows
    assert is_free(yard, table_id)


def test_a_job_that_always_dies_is_given_up(yard: Yard) -> None:
    approved = yard.approve(yard.create())
    yard.fate = Fate(dies="before")
    for _ in range(5):
        yard.maintainer.run_once()
    failed = yard.now(approved)
    assert failed.state is State.FAILED
    assert failed.attempts == len(yard.jobs) == 3
    assert "exit code -9" in (failed.explanation or "")


def test_a_conflict_is_retried_later_and_then_given_up_by_name(yard: Yard) -> None:
    approved = yard.approve(yard.create())
    yard.fate = Fate(claims={"outcome": "conflict", "error": "Missing data file x.parquet"})
    yard.maintainer.run_once()
    waiting = yard.now(approved)
    assert waiting.state is State.SCHEDULED
    assert waiting.not_before is not None
    assert waiting.not_before > yard.clock()
    yard.maintainer.run_once()
    assert len(yard.jobs) == 1  # the table is left alone meanwhile
    for _ in range(3):
        yard.clock.turn(hours=1)
        yard.maintainer.run_once()
    assert yard.now(approved).state is State.FAILED
    assert "Missing data file x.parquet" in (yard.now(approved).explanation or "")


@pytest.mark.parametrize(
    ("claims", "state"),
    [
        ({"outcome": "nothing"}, State.REFUSED),
        ({"outcome": "refused", "error": "gc.enabled"}, State.REFUSED),
        ({"outcome": "failed", "error": "no space left"}, State.FAILED),
        ({"outcome": "stopped"}, State.SCHEDULED),
        ({"outcome": "lost", "error": "The lease was taken over"}, State.SCHEDULED),
        ({"outcome": "unknown", "error": "CommitStateUnknown"}, State.SCHEDULED),
    ],
)
def test_every_outcome_has_its_state(yard: Yard, claims: dict[str, Any], state: State) -> None:
    approved = yard.approve(yard.create())
    yard.fate = Fate(claims=claims)
    yard.maintainer.run_once()
    assert yard.now(approved).state is state


def test_an_unknown_commit_that_landed_is_found_by_its_id(yard: Yard) -> None:
    table_id = yard.create()
    approved = yard.approve(table_id)
    real = yard._work

    def lost(one: dict[str, Any]) -> dict[str, Any]:
        return real(one) | {"outcome": "unknown", "error": "CommitStateUnknownException"}

    yard._work = lost  # type: ignore[method-assign]
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.VERIFIED


def test_other_content_stops_the_table_until_a_human_approves(yard: Yard) -> None:
    table_id = yard.create()
    first = yard.approve(table_id)
    bad = {"name": "content", "expected": "a", "found": "b", "ok": False}
    yard.fate = Fate(claims={"outcome": "failed", "rolled_back": True, "checks": [bad]})
    waiting = yard.approve(table_id, priority=0.1)
    yard.maintainer.run_once()
    failed = yard.now(first)
    assert failed.state is State.FAILED
    assert "taken back" in (failed.explanation or "")
    yard.fate = Fate()
    by_policy = yard.approve(table_id, decided_by="policy:1", priority=0.2)
    yard.clock.turn(minutes=1)
    yard.maintainer.run_once()
    assert yard.now(by_policy).state in {State.REFUSED, State.EXPIRED}
    assert yard.now(waiting).state is State.REFUSED
    assert failed.action_id in (yard.now(waiting).explanation or "")
    human = yard.approve(table_id)
    yard.maintainer.run_once()
    assert yard.now(human).state is State.VERIFIED


def careless(yard: Yard, table_id: str, then: Callable[[], object] = lambda: None) -> None:
    """The job loses a file it has written, and says that all is well."""
    real = yard._work

    def work(one: dict[str, Any]) -> dict[str, Any]:
        told = real(one)
        files = yard.change(
            table_id, lambda t: [task.file.file_path for task in t.scan().plan_files()]
        )
        Path(files[0].removeprefix("file://")).unlink()
        then()
        return told

    yard._work = work  # type: ignore[method-assign]


def test_a_file_lost_by_the_job_is_noticed_by_our_own_look_and_taken_back(yard: Yard) -> None:
    table_id = yard.create()
    rows, before = yard.rows(table_id), yard.metadata(table_id).history[0].snapshot_id
    approved = yard.approve(table_id)
    careless(yard, table_id)
    yard.maintainer.run_once()
    failed = yard.now(approved)
    assert failed.state is State.FAILED
    assert "every reachable file is there" in (failed.explanation or "")
    assert f"taken back to snapshot {before}" in (failed.explanation or "")
    assert yard.metadata(table_id).history[0].snapshot_id == before
    assert yard.rows(table_id) == rows
    told = yard.store.read("SELECT * FROM alert WHERE subject = $table", table=table_id)
    (alert,) = told.to_pylist()
    assert alert["kind"] == "maintenance"
    assert approved.action_id in alert["body"]
    assert alert["settled"]  # no channel is configured


def test_nothing_is_taken_back_that_another_writer_has_built_on(yard: Yard) -> None:
    table_id = yard.create()
    approved = yard.approve(table_id)
    later: list[int] = []
    careless(yard, table_id, lambda: later.append(yard.append(table_id, 99)))
    yard.maintainer.run_once()
    failed = yard.now(approved)
    assert failed.state is State.FAILED
    assert "NOT taken back, because another writer" in (failed.explanation or "")
    assert yard.metadata(table_id).history[0].snapshot_id == later[0]


def test_a_rewrite_that_makes_it_worse_is_recorded(yard: Yard) -> None:
    table_id = yard.create(files=3)
    approved = yard.approve(table_id)
    real = yard._work

    def clumsy(one: dict[str, Any]) -> dict[str, Any]:
        told = real(one)
        summary = {OPERATION: one["operation_id"]}
        for number in range(4):
            yard.append(table_id, number, **summary)
        return told

    yard._work = clumsy  # type: ignore[method-assign]
    yard.maintainer.run_once()
    failed = yard.now(approved)
    assert failed.state is State.FAILED
    assert any(not check["ok"] for check in failed.verification)
    assert len(yard.rows(table_id)) == 3  # taken back


def test_a_cancel_ends_what_runs(yard: Yard) -> None:
    approved = yard.approve(yard.create())

    real = yard._job

    def job(folder: Any, plan: Any, is_stopping: Any) -> Any:
        wish = decision_request(
            action_id=approved.action_id, verb="cancel", state="done", asked_at=yard.clock()
        )
        yard.store.upsert("decision_request", to_arrow("decision_request", [wish]))
        assert not is_stopping()
        assert folder.stop_file.exists()
        return real(folder, plan, is_stopping)

    yard._job = job  # type: ignore[method-assign]
    yard.new_maintainer().run_once()
    assert yard.now(approved).state is State.CANCELLED
    assert not commits_of(yard, approved)


def test_a_cancel_costs_the_others_of_the_job_no_attempt(yard: Yard) -> None:
    approved = yard.approve(yard.create())
    yard.fate = Fate(claims={"outcome": "stopped"})
    for _ in range(5):
        yard.maintainer.run_once()
    assert (yard.now(approved).state, yard.now(approved).attempts) == (State.SCHEDULED, 0)
    yard.fate = Fate()
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.VERIFIED


def test_an_approval_that_is_too_old_expires(yard: Yard) -> None:
    approved = yard.approve(yard.create())
    yard.clock.turn(days=8)
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.EXPIRED
    assert yard.jobs == []


def test_a_table_held_by_another_run_waits(yard: Yard) -> None:
    table_id = yard.create()
    approved = yard.approve(table_id)
    yard.maintainer._leases.acquire(table_id, holder="other", action_id="x")
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.SCHEDULED
    yard.clock.turn(seconds=yard.config.maintenance.lease.total_seconds() + 60)
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.VERIFIED


def test_a_kind_without_snapshots_killed_after_its_work_is_proven(yard: Yard) -> None:
    table_id = yard.create(files=7)
    yard.clock.turn(days=10)
    approved = yard.approve(table_id, Kind.EXPIRE_SNAPSHOTS)
    yard.fate = Fate(dies="before")
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.SCHEDULED
    yard.fate = Fate(claims={"outcome": "nothing"})
    yard.maintainer.run_once()
    assert yard.now(approved).state is State.VERIFIED
    assert timedelta(0) < yard.clock() - approved.proposed_at


def test_a_holder_that_slept_past_its_lease_is_ended_and_the_next_has_a_greater_token(
    yard: Yard,
) -> None:
    table_id = yard.create()
    approved = yard.approve(table_id)
    short = yard.config.maintenance.model_copy(update={"lease": timedelta(milliseconds=300)})
    real = yard._job

    def paused(folder: Any, plan: Any, is_stopping: Any) -> Any:
        yard.clock.turn(minutes=10)  # as if the whole process had been stopped that long
        deadline = time.monotonic() + 20
        while not is_stopping():
            assert time.monotonic() < deadline, "the lost lease was never noticed"
            time.sleep(0.01)
        return JobEnd(None, "this process is stopping")

    yard._job = paused  # type: ignore[method-assign]
    yard.new_maintainer(maintenance=short).run_once()
    assert yard.now(approved).state is State.SCHEDULED
    assert not commits_of(yard, approved)
    yard._job = real  # type: ignore[method-assign]
    yard.new_maintainer().run_once()
    assert yard.now(approved).state is State.VERIFIED
    tokens = [
        one.summary["lakehelm.lease-token"]
        for one in yard.metadata(table_id).history
        if OPERATION in one.summary
    ]
    assert set(tokens) == {"2"}

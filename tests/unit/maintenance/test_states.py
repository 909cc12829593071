"""The ledger: a state leads only where it may, an old revision changes nothing, all is audited."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.maintenance import NEXT, Action, State
from lakehouse_core.maintenance.audit import AUDIT_SQL, Note, head_file, read_head, verify_chain
from lakehouse_core.maintenance.records import actions_of, audit_of
from lakehouse_core.maintenance.states import Ledger, StaleActionError, Step, TransitionError
from tests.factories import NOW, action
from tests.stores import emptied

if TYPE_CHECKING:
    from lakehouse_core.domain.maintenance import AuditEntry
    from lakehouse_core.store.owner import OwnerStore


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    return emptied(shared_store)


@pytest.fixture
def ledger(store: OwnerStore) -> Ledger:
    return Ledger(store, lambda: NOW)


def entries(store: OwnerStore) -> tuple[AuditEntry, ...]:
    return audit_of(store.read(AUDIT_SQL))


def stored(store: OwnerStore) -> dict[str, Action]:
    return {one.action_id: one for one in actions_of(store.read("SELECT * FROM action"))}


def test_an_action_comes_back_as_it_was_written(store: OwnerStore, ledger: Ledger) -> None:
    proposed = ledger.propose(action())
    assert ledger.get(proposed.action_id) == proposed
    assert proposed.revision == 1


def test_every_step_is_one_audit_row(store: OwnerStore, ledger: Ledger) -> None:
    proposed = ledger.propose(action())
    approved = ledger.move(proposed, State.APPROVED, by="ana", why={"reason": "slow"})
    assert approved.revision == 2
    assert [(one.actor, one.verb) for one in entries(store)] == [
        ("lakehelm", "proposed"),
        ("ana", "approved"),
    ]
    assert '"reason":"slow"' in entries(store)[1].detail
    assert verify_chain(entries(store), read_head(store.path)).is_intact


def test_a_change_to_an_old_revision_is_refused(store: OwnerStore, ledger: Ledger) -> None:
    proposed = ledger.propose(action())
    ledger.move(proposed, State.APPROVED, by="ana")
    with pytest.raises(StaleActionError, match="approved now"):
        ledger.move(proposed, State.REJECTED, by="bo")
    assert ledger.get(proposed.action_id).state is State.APPROVED
    assert len(entries(store)) == 2


def test_an_unknown_action_is_named(ledger: Ledger) -> None:
    with pytest.raises(NotFoundError, match="recommend list"):
        ledger.get("'; DROP TABLE action; --")


def test_of_several_steps_all_are_taken_or_none(store: OwnerStore, ledger: Ledger) -> None:
    one, other = ledger.propose(action()), ledger.propose(action(table_id="lake.demo.churn"))
    ledger.move(other, State.REJECTED, by="ana")
    steps = [
        Step(before=one, after=replace(one, state=State.APPROVED), by="policy:1"),
        Step(before=other, after=replace(other, state=State.APPROVED), by="policy:1"),
    ]
    with pytest.raises(StaleActionError):
        ledger.take(steps)
    assert ledger.get(one.action_id).state is State.PROPOSED


def test_racing_threads_approve_once(store: OwnerStore) -> None:
    proposed = Ledger(store, lambda: NOW).propose(action())
    outcomes: list[str] = []
    start = threading.Barrier(4)

    def approve(name: str) -> None:
        start.wait()
        try:
            Ledger(store, lambda: NOW).move(proposed, State.APPROVED, by=name)
        except StaleActionError:
            outcomes.append("refused")
        else:
            outcomes.append("done")

    threads = [threading.Thread(target=approve, args=(f"u{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done", "refused", "refused", "refused"]
    assert [one.seq for one in entries(store)] == [1, 2]


def test_rows_cut_off_the_chain_leave_a_gap_for_ever(store: OwnerStore, ledger: Ledger) -> None:
    proposed = ledger.propose(action())
    approved = ledger.move(proposed, State.APPROVED, by="ana")
    store.transact("audit", ["DELETE FROM audit WHERE seq = 2"])
    ledger.move(approved, State.CANCELLED, by="bo")
    verdict = verify_chain(entries(store), read_head(store.path))
    assert verdict.first_bad == 2
    assert [one.seq for one in entries(store)] == [1, 3]


def test_a_head_that_cannot_be_written_is_caught_up_later(
    store: OwnerStore, ledger: Ledger
) -> None:
    proposed = ledger.propose(action())
    blocking = head_file(store.path).with_name(f"{head_file(store.path).name}.partial")
    blocking.mkdir()
    try:
        approved = ledger.move(proposed, State.APPROVED, by="ana")
    finally:
        blocking.rmdir()
    assert ledger.get(proposed.action_id) == approved
    assert verify_chain(entries(store), read_head(store.path)).is_intact
    ledger.move(approved, State.CANCELLED, by="ana")
    head = read_head(store.path)
    assert head is not None
    assert head.seq == 3


def test_names_of_others_are_data(store: OwnerStore, ledger: Ledger) -> None:
    name = 'lake.demo."a\'; DROP TABLE action; --\n\u2028{x}"'
    proposed = ledger.propose(action(table_id=name))
    ledger.note(Note(actor="a'\"b", verb="approve refused", action_id="x'", detail={"n": name}))
    assert ledger.get(proposed.action_id).table_id == name
    assert verify_chain(entries(store), read_head(store.path)).is_intact


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(State)), max_size=20))
def test_any_course_of_events_keeps_states_and_chain_in_order(
    shared_store: OwnerStore, course: list[tuple[int, State]]
) -> None:
    store = emptied(shared_store)
    ledger = Ledger(store, lambda: NOW)
    held = [ledger.propose(action(table_id=f"lake.demo.t{n}")) for n in range(3)]
    taken = 3
    for number, to in course:
        before = held[number]
        try:
            held[number] = ledger.move(before, to, by="ana")
            assert to is before.state or to in NEXT[before.state]
            taken += 1
        except TransitionError:
            assert to not in NEXT[before.state]
    assert stored(store) == {one.action_id: one for one in held}
    assert len(entries(store)) == taken
    assert verify_chain(entries(store), read_head(store.path)).is_intact
    assert sum(one.revision for one in held) == taken


@pytest.mark.parametrize(
    ("statement", "first_bad"),
    [
        ("UPDATE audit SET actor = 'mallory' WHERE seq = 3", 3),
        ("UPDATE audit SET detail = '{}' WHERE seq = 5", 5),
        ("UPDATE audit SET noted_at = noted_at + INTERVAL 1 HOUR WHERE seq = 1", 1),
        ("DELETE FROM audit WHERE seq = 2", 2),
        ("DELETE FROM audit WHERE seq = 1", 1),
        ("DELETE FROM audit WHERE seq >= 4", 4),
        ("DELETE FROM audit", 1),
        ("UPDATE audit SET seq = CASE seq WHEN 2 THEN 4 ELSE 2 END WHERE seq IN (2, 4)", 2),
        ("INSERT INTO audit SELECT * FROM audit WHERE seq = 3", 3),
        ("INSERT INTO audit SELECT * REPLACE (6 AS seq) FROM audit WHERE seq = 5", 6),
    ],
)
def test_what_is_done_to_stored_rows_is_found(
    store: OwnerStore, ledger: Ledger, statement: str, first_bad: int
) -> None:
    held = ledger.propose(action())
    for state in (State.APPROVED, State.RUNNING, State.VERIFYING, State.VERIFIED):
        held = ledger.move(held, state, by="ana")
    assert verify_chain(entries(store), read_head(store.path)).is_intact
    store.transact("audit", [statement])
    assert verify_chain(entries(store), read_head(store.path)).first_bad == first_bad

"""Leases: one holder at a time, tokens only grow, whoever was silent for too long is told."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from lakehouse_core.maintenance.lease import (
    LeaseHeldError,
    LeaseLostError,
    TableLeases,
    lease_file,
)
from tests.factories import NOW
from tests.stores import emptied

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.domain.maintenance import TableLease
    from lakehouse_core.store.owner import OwnerStore

LENGTH = timedelta(minutes=2)
TABLE = "lake.demo.events"


class Watch:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def leases(shared_store: OwnerStore, watch: Watch, tmp_path: Path) -> TableLeases:
    return TableLeases(emptied(shared_store), watch, LENGTH, tmp_path)


def take(leases: TableLeases, holder: str = "one", table: str = TABLE) -> TableLease:
    return leases.acquire(table, holder=holder, action_id="a-1")


def test_a_held_table_is_not_given_to_another(leases: TableLeases) -> None:
    take(leases)
    with pytest.raises(LeaseHeldError, match="held by one for action a-1"):
        take(leases, "two")
    assert take(leases, "two", "lake.demo.churn").token == 1


def test_a_released_table_is_free_and_its_token_grows(leases: TableLeases) -> None:
    leases.release(take(leases))
    assert take(leases, "two").token == 2


def test_a_silent_holder_loses_the_table_at_the_end_of_its_time(
    leases: TableLeases, watch: Watch
) -> None:
    old = take(leases)
    watch.now += LENGTH
    new = take(leases, "two")
    assert new.token > old.token
    assert not leases.is_current(old)
    with pytest.raises(LeaseLostError, match="taken over by two"):
        leases.renew(old)
    leases.release(old)
    assert leases.is_current(new)


def test_a_holder_that_renews_keeps_the_table(leases: TableLeases, watch: Watch) -> None:
    lease = take(leases)
    for _ in range(5):
        watch.now += LENGTH / 2
        lease = leases.renew(lease)
    assert leases.is_current(lease)
    assert [one.token for one in leases.held()] == [1]


def test_a_lease_that_ran_out_is_not_renewed(leases: TableLeases, watch: Watch) -> None:
    lease = take(leases)
    watch.now += LENGTH
    with pytest.raises(LeaseLostError, match="it ended"):
        leases.renew(lease)


def test_a_clock_set_back_shortens_no_lease(leases: TableLeases, watch: Watch) -> None:
    lease = take(leases)
    watch.now -= timedelta(hours=1)
    assert leases.renew(lease).expires_at == lease.expires_at


def told(home: Path, table: str = TABLE) -> tuple[int, datetime, bool]:
    """Token, end and release, as a job reads them."""
    lease = json.loads(lease_file(home, table).read_text())
    ends = datetime.fromisoformat(lease["expires_at"])
    return lease["token"], ends, lease["released_at"] is not None


def test_the_lease_in_force_is_told_in_a_file(
    leases: TableLeases, watch: Watch, tmp_path: Path
) -> None:
    lease = take(leases)
    assert told(tmp_path) == (1, lease.expires_at, False)
    watch.now += LENGTH / 2
    leases.renew(lease)
    assert told(tmp_path) == (1, watch.now + LENGTH, False)
    leases.release(lease)
    assert told(tmp_path)[2]
    take(leases, "two")
    assert told(tmp_path) == (2, watch.now + LENGTH, False)
    leases.release(lease)  # lost long ago
    assert told(tmp_path) == (2, watch.now + LENGTH, False)


def test_names_of_tables_make_file_names_of_any_length(leases: TableLeases, tmp_path: Path) -> None:
    table = "lake.a/../b." + "ü" * 400
    take(leases, table=table)
    assert told(tmp_path, table)[0] == 1


class LeaseMachine(RuleBasedStateMachine):
    """Holders that come, renew, pause and go in any order."""

    store: OwnerStore
    taken = Bundle("taken")

    @initialize()
    def begin(self) -> None:
        self.watch = Watch()
        self.leases = TableLeases(emptied(self.store), self.watch, LENGTH, self.store.path.parent)
        self.all: list[TableLease] = []

    @rule(target=taken, holder=st.sampled_from("abc"))
    def acquire(self, holder: str) -> TableLease | None:
        held = [one for one in self.all if self.leases.is_current(one)]
        try:
            lease = take(self.leases, holder)
        except LeaseHeldError:
            assert held
            return None
        assert not held
        assert all(lease.token > one.token for one in self.all)
        self.all.append(lease)
        return lease

    @rule(lease=taken)
    def renew(self, lease: TableLease | None) -> None:
        if lease is None:
            return
        was_current = self.leases.is_current(lease)
        try:
            self.leases.renew(lease)
        except LeaseLostError:
            assert not was_current
        else:
            assert was_current

    @rule(lease=taken)
    def release(self, lease: TableLease | None) -> None:
        if lease is not None:
            others = [one for one in self.all if one != lease and self.leases.is_current(one)]
            self.leases.release(lease)
            assert not self.leases.is_current(lease)
            assert all(self.leases.is_current(one) for one in others)

    @rule(seconds=st.integers(1, 200))
    def wait(self, seconds: int) -> None:
        self.watch.now += timedelta(seconds=seconds)

    @invariant()
    def one_holder_at_most(self) -> None:
        assert sum(self.leases.is_current(one) for one in self.all) <= 1


@pytest.mark.slow
def test_whatever_happens_one_holder_at_most_has_the_table(shared_store: OwnerStore) -> None:
    LeaseMachine.store = shared_store
    run_state_machine_as_test(
        LeaseMachine, settings=settings(max_examples=15, stateful_step_count=15, deadline=None)
    )

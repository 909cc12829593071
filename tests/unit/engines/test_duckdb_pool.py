"""Slots, and instances that are replaced while others still work on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from lakehouse_core.domain.errors import EngineUnavailableError, QueryCancelledError
from lakehouse_core.engines.duckdb import pool as pool_module
from lakehouse_core.engines.duckdb.instance import Instance, InstanceSettings
from lakehouse_core.engines.duckdb.pool import Pool, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.duckdb


@pytest.fixture
def opened() -> list[Instance]:
    return []


@pytest.fixture
def pool(tmp_path: Path, opened: list[Instance]) -> Iterator[Pool]:
    settings = InstanceSettings(
        memory_limit_bytes=2**28, threads=1, slots=2, warehouse=tmp_path / "warehouse"
    )

    def open_instance() -> Instance:
        opened.append(Instance(settings))
        return opened[-1]

    pool = Pool(open_instance)
    yield pool
    pool.close()


def ticket(name: str = "q") -> Ticket:
    return Ticket(frozenset({name}))


def is_closed(instance: Instance) -> bool:
    try:
        instance.ping()
    except duckdb.ConnectionException:
        return True
    return False


def test_one_instance_serves_one_query_after_the_other(pool: Pool, opened: list[Instance]) -> None:
    for _ in range(3):
        with pool.slot(ticket()) as slot:
            assert slot.run("SELECT 1 AS one").to_pylist() == [{"one": 1}]

    assert len(opened) == 1


def test_an_instance_that_never_rests_is_replaced_once_its_log_has_grown(
    pool: Pool, opened: list[Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MAX_LOG_ENTRIES", 10)
    with pool.slot(ticket("long")) as long_running:
        with pool.slot(ticket("busy")) as slot:
            slot.log_entries = 11
        with pool.slot(ticket("next")) as slot:
            assert slot in opened[1].slots
        assert long_running.run("SELECT 1 AS one").num_rows == 1
        assert not is_closed(opened[0])

    assert is_closed(opened[0])
    assert not is_closed(opened[1])


def test_a_broken_instance_gets_no_further_query(pool: Pool, opened: list[Instance]) -> None:
    with pool.slot(ticket()) as slot:
        pool.retire(slot)

    with pool.slot(ticket()) as slot:
        assert slot in opened[1].slots
    assert is_closed(opened[0])


def test_a_query_cancelled_before_it_runs_does_not_run(pool: Pool) -> None:
    mine = ticket("mine")

    with pool.slot(mine) as slot:
        assert pool.cancel("mine")
        with pytest.raises(QueryCancelledError), pool.running(mine, slot):
            pytest.fail("it ran")


def test_a_cancelled_query_does_not_disturb_the_next_on_its_slot(pool: Pool) -> None:
    first = ticket("first")
    with pool.slot(first) as slot, pool.running(first, slot):
        pass
    assert not pool.cancel("first")

    with pool.slot(ticket("second")) as slot:
        assert slot.run("SELECT 2 AS two").to_pylist() == [{"two": 2}]


def test_a_closed_pool_gives_no_slot(pool: Pool, opened: list[Instance]) -> None:
    pool.instance()
    pool.close()

    with pytest.raises(EngineUnavailableError), pool.slot(ticket()):
        pytest.fail("there was a slot")
    assert is_closed(opened[0])

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.gateway.costs import CostCounters
from tests.stores import emptied
from tests.unit.spend.conftest import NOW, rules
from tests.unit.spend.ledger import HOUR, Ledger, Part

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore


AT = NOW.replace(minute=0) - 5 * HOUR


@pytest.fixture
def store(shared_store: OwnerStore) -> OwnerStore:
    return emptied(shared_store)


def samples(counters: CostCounters) -> dict[tuple[str, ...], float]:
    counters.refresh()
    return {
        tuple(sample.labels.values()): sample.value
        for family in counters.collector().collect()
        for sample in family.samples
        if sample.name == "lakehouse_cost_total"
    }


def test_settled_hours_are_counted_by_engine_workload_and_kind(store: OwnerStore) -> None:
    ledger = Ledger()
    ledger.charge(AT, "trino", Part(cost="2", user="etl_x"), Part(cost="1", kind="idle"))
    ledger.charge(AT + HOUR, "trino", Part(cost="9", user="ana"), is_provisional=True)
    ledger.charge(AT, "athena", Part(cost="0", user="ana"), basis="unpriced")
    ledger.write(store)
    assert samples(CostCounters(store, rules(), lambda: NOW)) == {
        ("trino", "etl", "query", "modelled", "USD"): 2,
        ("trino", "idle", "idle", "modelled", "USD"): 1,
    }


def test_counters_never_fall_when_the_store_drops_history(store: OwnerStore) -> None:
    moment = NOW
    ledger = Ledger()
    ledger.charge(AT - timedelta(days=90), "trino", Part(cost="2", user="ana"))
    ledger.charge(AT + HOUR, "trino", Part(cost="3", user="ana"))
    ledger.write(store)
    counters = CostCounters(store, rules(), lambda: moment)
    key = ("trino", "other", "query", "modelled", "USD")
    assert samples(counters)[key] == 5
    store.transact("cost_hour", ["DELETE FROM cost_hour WHERE cost = 2"])
    assert samples(counters)[key] == 5  # not read again within the minute
    moment = NOW + timedelta(minutes=2)
    assert samples(counters)[key] == 5
    more = Ledger()
    more.charge(AT + 2 * HOUR, "trino", Part(cost="4", user="ana"))
    more.write(store)
    moment = NOW + timedelta(minutes=4)
    assert samples(counters)[key] == 9


def test_a_bill_in_the_place_of_modelled_cost_is_not_counted_twice(store: OwnerStore) -> None:
    moment = NOW
    ledger = Ledger()
    ledger.charge(AT, "trino", Part(cost="4", user="ana"), Part(cost="1", kind="idle"))
    ledger.charge(AT, "spark", Part(cost="2", user="ana"))
    ledger.write(store)
    counters = CostCounters(store, rules(), lambda: moment)
    samples(counters)
    for table in ("charge", "cost_hour"):
        billed = f"UPDATE {table} SET basis = 'billed', cost = cost * 2 WHERE engine_id = 'trino'"  # noqa: S608 one of two
        store.transact(table, [billed])
    moment = NOW + timedelta(minutes=2)
    found = samples(counters)
    assert sum(cost for key, cost in found.items() if key[0] == "trino") == 10
    assert found["trino", "other", "query", "billed", "USD"] == 5
    assert found["spark", "other", "query", "modelled", "USD"] == 2
    for table in ("charge", "cost_hour"):
        store.transact(table, [f"UPDATE {table} SET cost = cost / 2 WHERE basis = 'billed'"])  # noqa: S608 as above
    moment = NOW + timedelta(minutes=4)
    assert samples(counters) == found  # a counter must not fall
    more = Ledger()
    more.charge(AT + HOUR, "trino", Part(cost="7", user="ana"), basis="billed")
    more.write(store)
    moment = NOW + timedelta(minutes=6)
    assert sum(cost for key, cost in samples(counters).items() if key[0] == "trino") == 12

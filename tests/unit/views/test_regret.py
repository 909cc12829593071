"""Regret: what was spent against the best single engine and the best engine for each template."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lakehouse_core.views.compare import compare_engines
from lakehouse_core.views.regret import routing_regret
from tests.unit.views.conftest import Shelf, clock
from tests.unit.views.past import cost, ran


def fill(store: Shelf) -> None:
    """Each engine is good at one template; a third template ran on one engine only."""
    ran(store, "t1", "trino", [4.0] * 10)
    ran(store, "t1", "duckdb", [1.0] * 10)
    ran(store, "t2", "trino", [1.0] * 10)
    ran(store, "t2", "duckdb", [2.0] * 10)
    ran(store, "t3", "trino", [5.0] * 10)
    prices = {("t1", "trino"): "0.4", ("t1", "duckdb"): "0.1", ("t2", "trino"): "0.1"}
    cost(store, prices | {("t2", "duckdb"): "0.2", ("t3", "trino"): "0.5"})


@pytest.mark.slow
def test_regret_against_one_engine_and_against_the_best_for_each(store: Shelf) -> None:
    fill(store)
    found = routing_regret(store.store, clock, window="7d")
    seconds, money = found.seconds, found.cost
    assert seconds.actual == pytest.approx(80.0)
    single, oracle = seconds.against("best_single"), seconds.against("oracle")
    assert single is not None
    assert oracle is not None
    assert single.engine == "duckdb"
    assert single.total == pytest.approx(60.0)
    assert single.regret_ratio == pytest.approx(1 / 3)
    assert oracle.total == pytest.approx(40.0)
    assert oracle.regret == pytest.approx(40.0)
    assert money.actual == Decimal(8)
    assert {one.engine: one.total for one in money.engines} == {
        "duckdb": Decimal(6),
        "trino": Decimal(10),
    }
    assert all(isinstance(one.regret, Decimal) for one in (*money.baselines, *money.engines))
    assert [(one.template_id, one.best_engine) for one in money.worst] == [
        ("t1", "duckdb"),
        ("t2", "trino"),
    ]


@pytest.mark.slow
def test_runs_without_evidence_are_told_apart(store: Shelf) -> None:
    fill(store)
    found = routing_regret(store.store, clock, window="7d").seconds
    assert (found.runs, found.compared_runs) == (50, 40)
    assert found.without_evidence_share == pytest.approx(0.2)


@pytest.mark.slow
def test_shadow_runs_are_evidence_but_nobody_asked_for_them(store: Shelf) -> None:
    ran(store, "t1", "trino", [2.0] * 10)
    ran(store, "t1", "duckdb", [1.0] * 6, protocol="shadow")
    cost(store, {("t1", "trino"): "0.40", ("t1", "duckdb"): "0.10"})
    found = routing_regret(store, clock, window="24h")
    seconds = found.seconds
    assert (seconds.runs, seconds.compared_runs) == (10, 10)
    assert seconds.actual == pytest.approx(20.0)
    oracle = seconds.against("oracle")
    assert oracle is not None
    assert oracle.total == pytest.approx(10.0)
    single = found.cost.against("best_single")
    assert single is not None
    assert single.engine == "duckdb"
    (contest,) = compare_engines(store, clock, window="24h").contests
    assert {one.engine_id: one.shadow_runs for one in contest.engines} == {"duckdb": 6, "trino": 0}


@pytest.mark.slow
def test_nobody_does_better_than_the_oracle(store: Shelf) -> None:
    # What was done is better than the best engine with enough runs: a third one served a few.
    ran(store, "t1", "trino", [4.0] * 6)
    ran(store, "t1", "spark", [5.0] * 6)
    ran(store, "t1", "duckdb", [0.1] * 4)
    ran(store, "t2", "trino", [2.0] * 6)
    ran(store, "t2", "duckdb", [1.0] * 6)
    found = routing_regret(store.store, clock, window="7d").seconds
    oracle = found.against("oracle")
    assert oracle is not None
    assert oracle.total <= found.actual
    assert all(oracle.total <= one.total for one in (*found.baselines, *found.engines))
    assert oracle.total == pytest.approx(24.0 + 30.0 + 0.4 + 12.0)


@pytest.mark.slow
def test_the_rules_are_a_baseline_where_they_are_given(store: Shelf) -> None:
    fill(store)
    rules = {("t1", None): "duckdb", ("t2", None): "spark"}
    found = routing_regret(store.store, clock, window="7d", rules=rules).seconds.against("rules")
    assert found is not None
    assert found.total == pytest.approx(20 + 30)  # nothing is known of spark: as it was
    assert found.evidence_share == pytest.approx(0.5)


def test_nothing_measured_is_no_regret_and_no_zero(store: Shelf) -> None:
    found = routing_regret(store.store, clock, window="7d").cost
    assert found.baselines == ()
    assert found.without_evidence_share is None

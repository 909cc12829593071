"""Who wins where: only on enough runs, of one size, by what an answer costs."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lakehouse_core.views.compare import Contest, compare_engines
from tests.unit.views.conftest import Shelf, clock
from tests.unit.views.past import cost, ran


def contest(store: Shelf, template: str = "t1") -> Contest:
    found = compare_engines(store.store, clock, window="7d", template=template)
    (only,) = found.contests
    return only


def test_the_cheaper_engine_wins_with_its_figures(store: Shelf) -> None:
    ran(store, "t1", "trino", [2.0, 2.1, 1.9, 2.0, 2.2, 2.0])
    ran(store, "t1", "duckdb", [1.0, 1.1, 0.9, 1.0, 1.2, 1.0])
    cost(store, {("t1", "trino"): "0.50", ("t1", "duckdb"): "0.10"})
    found = contest(store)
    assert (found.winner, found.measure) == ("duckdb", "cost")
    assert found.confidence is not None
    assert found.confidence > 0.99
    assert "duckdb answers 1,000 runs for 100.00 USD, trino for 500.00" in found.why
    by_name = {one.engine_id: one for one in found.engines}
    assert by_name["trino"].runs == 6
    assert by_name["trino"].p50_seconds == pytest.approx(2.0)
    assert by_name["trino"].cost_per_run == Decimal("0.5")
    assert by_name["trino"].basis == ("modelled",)


def test_too_few_runs_are_not_compared_and_it_says_so(store: Shelf) -> None:
    ran(store, "t1", "trino", [2.0] * 6)
    ran(store, "t1", "duckdb", [1.0] * 4)
    found = contest(store)
    assert found.winner is None
    assert found.confidence is None
    assert "fewer than 5 finished runs on duckdb 4" in found.why


def test_what_lies_within_the_noise_has_no_winner(store: Shelf) -> None:
    ran(store, "t1", "trino", [0.5, 4.0, 1.0, 9.0, 2.0])
    ran(store, "t1", "duckdb", [0.6, 3.0, 1.1, 8.5, 2.0])
    found = contest(store)
    assert found.winner is None
    assert "too near to tell" in found.why


def test_a_day_is_not_compared_with_a_year(store: Shelf) -> None:
    ran(store, "t1", "trino", [9.0] * 6, estimated_bytes=2**40)
    ran(store, "t1", "duckdb", [1.0] * 6, estimated_bytes=2**20)
    found = compare_engines(store.store, clock, window="7d")
    assert [one.winner for one in found.contests] == [None, None]
    assert {one.size for one in found.contests} == {"1.0 MiB to 4.0 MiB", "1.0 TiB to 4.0 TiB"}


def test_waiting_for_a_place_is_time(store: Shelf) -> None:
    ran(store, "t1", "trino", [1.0] * 5, queue_ms=4_000)
    assert contest(store).engines[0].p50_seconds == pytest.approx(5.0)


def test_failures_cost_the_engine_and_wrong_statements_do_not(store: Shelf) -> None:
    ran(store, "t1", "trino", [1.0] * 10, failed=5)
    ran(store, "t1", "trino", [1.0] * 3, failed=3, error_class="user_error")
    ran(store, "t1", "duckdb", [1.5] * 10)
    found = contest(store)
    assert found.winner == "duckdb"  # trino needs two runs for an answer
    assert {one.engine_id: one.failure_rate for one in found.engines} == {
        "duckdb": 0.0,
        "trino": 0.5,
    }

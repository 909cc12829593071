from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.domain.maintenance import State
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.finops.whatif import Change, NoAnswer, mean_of
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.costs import CostFilters
from lakehouse_core.views.savings import savings_ledger
from lakehouse_core.views.whatif import (
    idle_shutdown,
    maintenance_switched,
    price_change,
    template_elsewhere,
)
from tests.factories import action, query_event
from tests.ui.scenario import rows_of
from tests.unit.spend.conftest import NOW, clock
from tests.unit.spend.ledger import HOUR, Ledger, Part

if TYPE_CHECKING:
    from lakehouse_core.store.owner import OwnerStore

START = NOW.replace(minute=0) - timedelta(days=2)
WINDOW = CostFilters(window="2d")


def answered(answer: Change | NoAnswer) -> Change:
    assert isinstance(answer, Change), answer
    return answer


def test_a_price_that_falls_by_a_tenth_saves_a_tenth(empty: OwnerStore) -> None:
    ledger = Ledger()
    for n in range(48):
        cost = "1" if n % 2 else "3"
        ledger.charge(START + n * HOUR, "trino", Part(cost=cost, user="ana"))
    ledger.write(empty)
    found = answered(price_change(empty, WINDOW, clock, engine="trino", percent=Decimal(-10)))
    assert found.now == 2 * 730
    assert found.expected == -2 * 73
    assert found.low < found.expected < found.high < 0
    assert (found.n, found.n_of) == (48, "whole hours")


def test_hours_without_a_charge_cost_nothing(empty: OwnerStore) -> None:
    ledger = Ledger()
    first = NOW.replace(minute=0) - timedelta(days=28)
    for n in range(4 * 7 * 24):
        ledger.charge(first + n * HOUR, "spark", Part(cost="1", user="ana"))
    for week in range(4):  # an hour of trino in each
        ledger.charge(first + timedelta(days=7 * week + 3), "trino", Part(cost="1", user="ana"))
    ledger.write(empty)
    asked = CostFilters(window="30d")
    found = answered(price_change(empty, asked, clock, engine="trino", percent=Decimal(-10)))
    assert found.n_of == "whole days"
    assert 4 <= found.now <= 5
    assert round(found.expected, 9) == round(-found.now / 10, 9)


def test_a_price_of_an_engine_that_was_not_charged_has_no_answer(empty: OwnerStore) -> None:
    found = price_change(empty, WINDOW, clock, engine="trino", percent=Decimal(10))
    assert isinstance(found, NoAnswer)
    assert "charged nothing in the whole hours of" in found.reason  # the running one may be


def test_a_template_costs_elsewhere_what_it_cost_there(empty: OwnerStore) -> None:
    ledger = Ledger()
    for n in range(10):
        part = Part(cost="0.50", user="ana", template="t1", queries=5)
        ledger.charge(START + n * HOUR, "trino", part)
    for n in range(5):
        part = Part(cost="0.04", user="ana", template="t1", queries=2)
        ledger.charge(START + n * HOUR, "duckdb", part, method="bytes")
    ledger.write(empty)
    found = answered(template_elsewhere(empty, WINDOW, clock, template="t1", to="duckdb"))
    runs = Decimal(50) * 730 / 48
    assert found.now == Decimal("0.1") * runs
    assert found.expected == (Decimal("0.02") - Decimal("0.1")) * runs
    assert found.n == 60
    assert "50 on trino, 10 on duckdb" in found.n_of
    assert any("trino is paid by time" in one for one in found.caveats)
    assert not any("duckdb is paid" in one for one in found.caveats)


def test_a_run_of_hours_costs_all_of_them(empty: OwnerStore) -> None:
    ledger = Ledger()
    for run in range(6):
        for hour in range(4):
            at = START + (6 * run + hour) * HOUR
            queries = 0 if hour else 1
            for engine, cost in (("trino", "1"), ("duckdb", "0.5")):
                part = Part(cost=cost, user="ana", template="t1", queries=queries)
                ledger.charge(at, engine, part)
    ledger.write(empty)
    found = answered(template_elsewhere(empty, WINDOW, clock, template="t1", to="duckdb"))
    assert found.now == Decimal(24) * 730 / 48
    assert found.expected == -found.now / 2


def test_a_template_that_never_ran_there_has_no_answer(empty: OwnerStore) -> None:
    ledger = Ledger()
    for n in range(10):
        ledger.charge(START + n * HOUR, "trino", Part(cost="1", user="ana", template="t1"))
    ledger.write(empty)
    found = template_elsewhere(empty, WINDOW, clock, template="t1", to="duckdb")
    assert isinstance(found, NoAnswer)
    assert "on duckdb 0 runs" in found.reason


def test_an_idle_engine_is_shut_down_after_its_patience(empty: OwnerStore) -> None:
    """Two hours: a query in the first half hour, then nothing for ninety minutes."""
    ledger = Ledger()
    ledger.charge(START, "trino", Part(cost="1.5", user="ana"), Part(cost="1.5", kind="idle"))
    ledger.charge(START + HOUR, "trino", Part(cost="3", kind="idle"))
    ledger.write(empty)
    one = query_event(
        engine_id=EngineId("trino"),
        submitted_at=START,
        started_at=START,
        ended_at=START + timedelta(minutes=30),
    )
    empty.upsert("query_event", to_arrow("query_event", [one]))
    window = CostFilters(window=f"{START:%Y-%m-%dT%H:%M}/{START + 2 * HOUR:%Y-%m-%dT%H:%M}")
    found = answered(
        idle_shutdown(empty, window, clock, engine="trino", minutes=30, restart_minutes=Decimal(2))
    )
    month = Decimal(730) / 2
    assert found.now == Decimal("4.5") * month
    assert found.low == -3 * month  # the second hour alone lies behind the patience
    assert found.high == (Decimal("0.1") - 3) * month
    assert (found.n, found.n_of) == (1, "shutdowns in the window")
    never = answered(idle_shutdown(empty, window, clock, engine="trino", minutes=91))
    assert never.low == never.high == 0


def test_a_query_that_runs_on_is_not_idle_and_a_simulated_one_is_none(empty: OwnerStore) -> None:
    ledger = Ledger()
    for n in range(2):
        ledger.charge(START + n * HOUR, "trino", Part(cost="3", kind="idle"))
    ledger.write(empty)
    shared = {"engine_id": EngineId("trino"), "started_at": START, "ended_at": None}
    running = query_event(
        **shared,
        submitted_at=START - HOUR,
        status=QueryStatus.RUNNING,
        collected_at=START + HOUR,
    )
    simulated = query_event(
        **shared, submitted_at=START, origin="simulated", collected_at=START + 2 * HOUR
    )
    empty.upsert("query_event", to_arrow("query_event", [running, simulated]))
    window = CostFilters(window=f"{START:%Y-%m-%dT%H:%M}/{START + 2 * HOUR:%Y-%m-%dT%H:%M}")
    found = answered(idle_shutdown(empty, window, clock, engine="trino", minutes=15))
    assert found.n == 1
    assert found.low == Decimal("-2.25") * 365  # three quarters of the second hour


def test_predictions_that_came_to_nothing_count(empty: OwnerStore) -> None:
    states = {f"a{n}": (State.VERIFIED, 10) for n in range(4)}
    actions = [
        action(action_id=name, dedupe_key=name, state=state, gain_usd_month=Decimal(gain))
        for name, (state, gain) in (states | {"open": (State.PROPOSED, 100)}).items()
    ]
    empty.upsert("action", to_arrow("action", actions))
    base = {"engine_id": "trino", "template_id": "t", "measured_at": NOW, "runs_before": 20}
    saved = [
        base | {"action_id": f"a{n}", "runs_after": 20, "usd_month": Decimal(20 * (n % 2))}
        for n in range(4)
    ]
    empty.upsert("savings", rows_of("savings", saved))
    ledger = savings_ledger(empty, limit=3)
    assert [ledger.actions, ledger.saved_usd_month] == [4, Decimal(40)]
    assert [row.saved_usd_month for row in ledger.rows] == [Decimal(n) for n in (20, 20, 0)]
    assert ledger.rows[0].predicted_usd_month == 10
    found = answered(maintenance_switched(empty, clock, to="on"))
    assert (found.n, found.expected) == (4, Decimal(-100))  # two of four saved nothing


def test_an_engine_without_idle_time_has_no_answer(empty: OwnerStore) -> None:
    found = idle_shutdown(empty, WINDOW, clock, engine="athena", minutes=5)
    assert isinstance(found, NoAnswer)


def test_maintenance_off_loses_what_was_measured(empty: OwnerStore) -> None:
    assert isinstance(maintenance_switched(empty, clock, to="off"), NoAnswer)
    assert isinstance(maintenance_switched(empty, clock, to="on"), NoAnswer)
    base = {"engine_id": "trino", "measured_at": NOW - timedelta(days=1), "action_id": "a1"}
    rows = [
        base | {"template_id": "t1", "runs_before": 50, "runs_after": 40, "usd_month": Decimal(30)},
        base | {"template_id": "t2", "runs_before": 3, "runs_after": 4, "usd_month": Decimal(8)},
    ]
    empty.upsert("savings", rows_of("savings", rows))
    found = answered(maintenance_switched(empty, clock, to="off"))
    assert [found.low, found.expected, found.high] == [Decimal(n) for n in (30, 38, 38)]
    assert found.n == 97


@given(st.lists(st.decimals(0, 10**4, places=4), min_size=2, max_size=30))
def test_a_mean_lies_in_its_range_and_equal_values_leave_none(values: list[Decimal]) -> None:
    found = mean_of(values)
    assert found.low <= found.expected <= found.high
    if len(set(values)) == 1:
        assert found.low == found.high


def test_more_measurements_make_the_range_narrower() -> None:
    few, many = mean_of([Decimal(1), Decimal(3)] * 3), mean_of([Decimal(1), Decimal(3)] * 30)
    assert many.high - many.low < few.high - few.low


@pytest.mark.parametrize("percent", [-50, 0, 50])
def test_the_range_of_a_price_holds_its_expected_change(empty: OwnerStore, percent: int) -> None:
    ledger = Ledger()
    for n in range(8):
        ledger.charge(START + n * HOUR, "trino", Part(cost=str(1 + n), user="ana"))
    ledger.write(empty)
    asked = replace(WINDOW, currency="USD")
    found = answered(price_change(empty, asked, clock, engine="trino", percent=Decimal(percent)))
    assert found.low <= found.expected <= found.high

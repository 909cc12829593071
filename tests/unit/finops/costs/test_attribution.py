"""Charges are split to the last digit, by the statement that Spark and DuckDB share."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_core.domain.attribution import BETWEEN_QUERIES, HOUR_US, NO_QUERY, NOT_USED
from lakehouse_core.domain.money import Money, MoneyError, divide, per_thousand
from lakehouse_core.domain.query import QueryStatus
from tests.unit.finops.costs.traces import (
    at,
    charge,
    check_conservation,
    query,
    shares_by_hand,
    split,
    trace,
)

amounts = st.integers(0, 10**15).map(lambda nanos: Decimal(nanos).scaleb(-9))


@given(amounts, st.lists(st.integers(0, 10**14), max_size=50))
def test_what_is_divided_adds_up(amount: Decimal, weights: list[int]) -> None:
    shares = divide(amount, weights)
    assert sum(shares) == (amount if sum(weights) else 0)
    assert all(share >= 0 for share in shares)
    for share, weight in zip(shares, weights, strict=True):
        exact = amount * weight / (sum(weights) or 1)
        assert abs(share - exact) < Decimal("0.000000001") * 2


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        ("0.100000000", "100.00"),
        ("0.000012771", "0.0128"),
        ("0.000000163", "0.000163"),
        ("0.000000000", "0.00"),
        ("-0.000000163", "-0.000163"),
    ],
)
def test_what_a_thousand_cost_tells_small_amounts_apart(amount: str, told: str) -> None:
    assert per_thousand(Decimal(amount)) == told


def test_two_currencies_do_not_add_up() -> None:
    with pytest.raises(MoneyError, match="USD and EUR"):
        Money(Decimal(1), "USD") + Money(Decimal(1), "EUR")
    assert str(Money(Decimal("0.5"), "USD") + Money(Decimal("0.25"), "USD")) == "0.750000000 USD"


spans = st.tuples(st.floats(-2, 6), st.one_of(st.just(0.0), st.floats(0, 20_000)))


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(spans, max_size=12), st.lists(amounts, min_size=1, max_size=6))
def test_each_hour_is_split_as_by_hand(
    queries: list[tuple[float, float]], costs: list[Decimal]
) -> None:
    events = [query(begin, round(seconds, 6)) for begin, seconds in queries]
    charges = [charge(hour, str(cost)) for hour, cost in enumerate(costs)]
    rows = split(events, charges)
    check_conservation(charges, rows)
    for hour, one in enumerate(charges):
        mine = {r["query_id"] or "": r["cost"] for r in rows if r["hour_at"] == one.hour_at}
        expected = shares_by_hand(one, events, hour)
        assert {"": Decimal(0)} | mine == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_thousands_of_invented_hours_add_up(seed: int) -> None:
    events, charges = trace(seed, hours=1_000, queries=12_000)
    told = {one.query_id: f"0.{number % 997:04}" for number, one in enumerate(events[::2])}
    rows = split(events, charges, told)
    check_conservation(charges, rows)
    # Nothing is lost: whoever executed in an hour that is charged has a row there.
    assert {one.query_id for one in events if one.submitted_at >= at(0)} <= {
        row["query_id"] for row in rows
    }
    counted = [row["query_id"] for row in rows if row["is_counted"]]
    assert len(counted) == len(set(counted))


def test_a_cluster_that_waits_is_idle() -> None:
    rows = split([query(0.25, 900), query(0.25, 1800)], [charge(0, "4"), charge(1, "2")])
    assert [(row["kind"], row["reason"], row["cost"]) for row in rows if not row["query_id"]] == [
        ("idle", BETWEEN_QUERIES, Decimal(2)),
        ("idle", NO_QUERY, Decimal(2)),
    ]
    assert sorted(row["cost"] for row in rows if row["query_id"]) == [
        Decimal("0.666666666"),
        Decimal("1.333333334"),
    ]


def test_a_query_over_full_hours_is_counted_once_and_paid_in_each() -> None:
    (one,) = [query(0.5, 7200)]
    rows = split([one], [charge(hour, "1") for hour in range(3)])
    mine = [row for row in rows if row["query_id"]]
    assert [(row["cost"], row["is_counted"]) for row in mine] == [
        (Decimal("0.5"), True),
        (Decimal(1), False),
        (Decimal("0.5"), False),
    ]
    assert sum(row["execution_us"] for row in mine) == 2 * HOUR_US


def test_waiting_and_planning_are_not_execution() -> None:
    waited = query(0.5, 60, queued_ms=600_000.0, planning_ms=60_000.0, submitted_at=at(0.25))
    rows = split([waited], [charge(0, "60", capacity=None)])
    assert [row["execution_us"] for row in rows if row["query_id"]] == [60_000_000]


def test_failed_and_cancelled_queries_cost_too() -> None:
    failed = query(0.1, 10, status=QueryStatus.FAILED)
    cancelled = query(0.2, 10, status=QueryStatus.CANCELLED)
    rows = split([failed, cancelled], [charge(0, "1", capacity=None)])
    assert [row["cost"] for row in rows] == [Decimal("0.5"), Decimal("0.5")]


def test_a_query_without_an_end_is_paid_until_it_was_last_seen() -> None:
    lost = query(0.0, None, collected_at=at(0.5))
    rows = split([lost], [charge(0, "1"), charge(1, "1")])
    assert [(row["kind"], row["cost"]) for row in rows] == [
        ("query", Decimal("0.5")),
        ("idle", Decimal("0.5")),
        ("idle", Decimal(1)),
    ]


def test_bytes_are_paid_for_where_the_query_ended_with_a_minimum() -> None:
    scan = {"meter": "scan", "method": "bytes", "capacity": None, "minimum_bytes": 10_000_000}
    large = query(0.9, 720, bytes_scanned=30_000_000)
    small = query(1.5, 1, bytes_scanned=1)
    free = query(1.6, 1, bytes_scanned=10**9, status=QueryStatus.FAILED)
    charges = [charge(0, "1", **scan), charge(1, "4", failed_is_free=True, **scan)]
    rows = split([large, small, free], charges)
    check_conservation(charges, rows)
    costs = {(row["query_id"], row["hour_at"]): row["cost"] for row in rows}
    assert costs[large.query_id, at(0)] == 0
    assert costs[None, at(0)] == Decimal(1)
    assert costs[large.query_id, at(1)] == Decimal(3)
    assert costs[small.query_id, at(1)] == Decimal(1)
    assert costs[free.query_id, at(1)] == 0
    assert {row["reason"] for row in rows if row["kind"] == "unallocated"} == {NOT_USED}


def test_more_on_the_bill_than_queries_used_is_unallocated() -> None:
    billed = charge(0, "10", meter="scan", method="bytes", capacity=4 * 10**9)
    rows = split([query(0.5, 1, bytes_scanned=10**9)], [billed])
    assert [(row["kind"], row["cost"]) for row in rows] == [
        ("query", Decimal("2.5")),
        ("unallocated", Decimal("7.5")),
    ]


def test_what_the_engine_says_its_queries_used_decides_what_was_idle() -> None:
    told = charge(
        0, "8", engine_id="snowflake", resource="WH", capacity=None, attributed=Decimal("0.25")
    )
    mine = query(0.5, 5, engine_id="snowflake", tags=("warehouse=WH",))
    other = query(0.5, 5, engine_id="snowflake", tags=("warehouse=OTHER",))
    rows = split([mine, other], [told])
    assert [(row["query_id"], row["cost"]) for row in rows] == [
        (mine.query_id, Decimal(2)),
        (None, Decimal(6)),
    ]


def test_queries_pay_the_credits_that_snowflake_charges_them_with_not_their_time() -> None:
    snow = {"engine_id": "snowflake", "tags": ("warehouse=WH",)}
    told = charge(
        0,
        "8",
        engine_id="snowflake",
        resource="WH",
        quantity=Decimal(4),
        capacity=None,
        attributed=Decimal(1),
    )
    dear, cheap, over = query(0.1, 10, **snow), query(0.2, 990, **snow), query(0.5, 3600, **snow)
    known = {dear.query_id: "0.6", cheap.query_id: "0.2", over.query_id: "0.4"}
    rows = split([dear, cheap, over], [told], known)
    check_conservation([told], rows)
    costs = {row["query_id"]: row["cost"] for row in rows}
    assert costs == {  # of the last one half lies in the next hour
        dear.query_id: Decimal("1.2"),
        cheap.query_id: Decimal("0.4"),
        over.query_id: Decimal("0.4"),
        None: Decimal(6),
    }


def test_a_query_that_snowflake_says_nothing_of_pays_like_the_others_for_its_time() -> None:
    snow = {"engine_id": "snowflake", "tags": ("warehouse=WH",)}
    base = {"engine_id": "snowflake", "capacity": None}
    compute = charge(0, "3", resource="WH", attributed=Decimal(1), **base)
    services = charge(0, "1", resource="WH", meter="cloud_services", **base)
    known, unknown, elsewhere = (
        query(0.1, 20, **snow),
        query(0.3, 10, **snow),
        query(0.5, 30, engine_id="snowflake", tags=("warehouse=OTHER",)),
    )
    told = {known.query_id: "0.5", elsewhere.query_id: "9"}
    charges = [compute, services, charge(0, "6", resource="OTHER", **base)]
    rows = split([known, unknown, elsewhere], charges, told)
    check_conservation(charges, rows)
    costs = {(row["query_id"], row["meter"]): row["cost"] for row in rows}
    assert costs[known.query_id, "compute"] == Decimal(2)
    assert costs[unknown.query_id, "compute"] == Decimal(1)
    assert costs[unknown.query_id, "cloud_services"] == Decimal("0.333333334")
    assert costs[elsewhere.query_id, "compute"] == Decimal(6)
    nothing = split([known, unknown], [compute], {known.query_id: "0"})
    assert [row["cost"] for row in nothing] == [Decimal(2), Decimal(1)]


def test_what_is_not_to_be_split_is_whole_and_says_why() -> None:
    charges = [
        charge(0, "-3", method="none", reason="negative amount", meter="credit"),
        charge(0, "1", method="resource", meter="storage", engine_id="storage:lake"),
    ]
    rows = split([query(0.5, 5)], charges)
    assert [(row["kind"], row["reason"], row["cost"]) for row in rows] == [
        ("resource", "", Decimal(1)),
        ("unallocated", "negative amount", Decimal(-3)),
    ]


def test_labels_leave_out_what_only_one_query_has() -> None:
    tags = ("team=bi", "parameterized_hash=12", "trace=00112233445566778899", "warehouse=A")
    one, two = query(0.1, 1, tags=tags), query(0.2, 1, tags=("warehouse=A", "team=bi"))
    other = query(0.3, 1, tags=("team=etl", "warehouse=A"))
    rows = split([one, two, other], [charge(0, "1")])
    labels = {row["query_id"]: row["label_id"] for row in rows}
    assert labels[one.query_id] == labels[two.query_id] != labels[other.query_id]


def test_order_of_arrival_changes_nothing() -> None:
    events, charges = trace(7, hours=20, queries=200)
    assert sorted(map(str, split(events, charges))) == sorted(
        map(str, split(events[::-1], charges[::-1]))
    )

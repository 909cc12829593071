"""Hours are charged from what is known of them, and every hour in the store adds up."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from agents import finops
from agents.watch import Lease
from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.domain.engine import ObservedState
from lakehouse_core.domain.flink import SlotTime
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.finops.attribution import settle_hours
from lakehouse_core.finops.metering import engine_charges
from lakehouse_core.finops.meters import Facts
from lakehouse_core.finops.prices import keep_prices
from lakehouse_core.finops.reconcile import ReconciledHour, reconcile
from lakehouse_core.store.rows import to_arrow
from tests.factories import NOW, engine_probe, lake_table, table_metrics
from tests.ui.scenario import rows_of
from tests.unit.finops.costs.traces import FIRST, START, at, query, trace

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore

LATER = at(30)

pytestmark = pytest.mark.slow


def told(store: OwnerStore, *queries: Any) -> None:
    store.upsert("query_event", to_arrow("query_event", queries))


def probed(store: OwnerStore, engine: str, first: float, last: float, state: str) -> None:
    steps = int((last - first) * 360) + 1
    probes = [
        engine_probe(
            engine_id=EngineId(engine),
            probed_at=at(first) + timedelta(seconds=10 * step),
            observed=ObservedState(state),
        )
        for step in range(steps)
    ]
    store.upsert("engine_probe", to_arrow("engine_probe", probes))


def settle(store: OwnerStore, config: Config, now: Any = LATER) -> dict[tuple[str, int], Any]:
    finops.run_once(store, config, lambda: now, Lease())
    found = reconcile(store, START - timedelta(days=90), now + timedelta(days=1))
    assert [one.difference for one in found] == [Decimal(0)] * len(found)
    return {(one.engine_id, int(one.hour_at.timestamp()) // 3600 - FIRST): one for one in found}


def priced(config: Config, **given: Any) -> Config:
    section = PricesConfig.model_validate(given)
    section.know({name: one.type for name, one in config.engines.items()})
    return config.model_copy(update={"prices": section})


def test_a_cluster_is_charged_while_it_is_up(store: OwnerStore, demo_config: Config) -> None:
    config = priced(
        demo_config, book={"t": {"engine": "trino", "unit": "cluster_hour", "list_price": "6"}}
    )
    probed(store, "trino", 0.0, 0.5, "healthy")
    probed(store, "trino", 0.5 + 10 / 3600, 1.0, "unhealthy")
    told(store, query(0.25, 360), query(1.5, 36))
    found = settle(store, config)
    first, second = found["trino", 0], found["trino", 1]
    assert (first.metered, first.attributed) == (Decimal("3.016666667"), Decimal("0.6"))
    assert first.idle == first.metered - first.attributed
    # Nobody looked in the second hour, but it ran a query: it was up at least so long.
    assert (second.metered, second.attributed, second.idle) == (Decimal("0.06"),) * 2 + (
        Decimal(0),
    )


def test_cores_are_charged_by_what_queries_used(store: OwnerStore, demo_config: Config) -> None:
    config = priced(demo_config, book={"c": {"unit": "core_hour", "list_price": "3600"}})
    told(
        store,
        query(0.5, 10, engine_id="duckdb", cpu_ms=4_000.0),
        query(0.6, 10, engine_id="duckdb", cpu_ms=None, status=QueryStatus.FAILED),
    )
    hour = settle(store, config)["duckdb", 0]
    assert (hour.metered, hour.attributed, hour.idle) == (Decimal(14), Decimal(14), Decimal(0))
    assert (hour.queries, hour.basis) == (2, ("modelled",))


def test_an_engine_without_a_price_says_so(store: OwnerStore, demo_config: Config) -> None:
    told(store, query(0.5, 10))
    hour = settle(store, priced(demo_config, list_prices=False))["trino", 0]
    assert (hour.metered, hour.queries, hour.basis) == (Decimal(0), 1, ("unpriced",))
    assert hour.reasons == ("engine trino has no price: add one under prices.book",)


def test_what_changes_late_restates_only_its_hours(store: OwnerStore, demo_config: Config) -> None:
    told(store, query(0.5, 10), query(20.5, 10))
    settle(store, demo_config)
    before = store.read("SELECT * FROM charge ORDER BY ALL").to_pylist()
    told(store, query(2.5, 3600, collected_at=LATER))
    later = LATER + timedelta(minutes=1)
    found = settle(store, demo_config, later)
    assert found["trino", 2].attributed > 0
    assert found["trino", 3].attributed > 0
    after = store.read("SELECT * FROM charge WHERE computed_at < $at ORDER BY ALL", at=later)
    assert [row for row in before if row in after.to_pylist()] == before
    assert finops.run_once(store, demo_config, lambda: later, Lease()).rows == 0


def test_who_reads_while_an_hour_is_settled_finds_that_it_adds_up(
    store: OwnerStore, demo_config: Config
) -> None:
    """The running hour is charged anew every minute, and pages read at any moment."""
    seen: list[Decimal] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            seen.extend(one.difference for one in reconcile(store, START, LATER))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(8):
            told(store, query(2.5 + number / 100, 20 + number, query_id=f"q{number}"))
            settle(store, demo_config, LATER + timedelta(minutes=number))
    finally:
        is_over.set()
        reader.join()
    assert len(seen) > 8
    assert set(seen) == {Decimal(0)}


def test_a_first_run_that_was_cut_off_is_carried_on(store: OwnerStore, demo_config: Config) -> None:
    told(store, query(0.5, 10), query(26.5, 10))
    lease = Lease()
    book = keep_prices(store, demo_config, LATER)
    newest = [FIRST + hour for hour in range(20, 31)]
    settle_hours(store, demo_config, book, newest, LATER)  # as far as it came
    lease.lose()
    assert finops.run_once(store, demo_config, lambda: LATER, lease).rows == 0
    left = finops.changed_hours(store, demo_config, LATER, None)
    assert FIRST in left
    assert FIRST + 26 not in left
    found = settle(store, demo_config)
    assert found["trino", 0].attributed > 0
    assert found["trino", 26].attributed > 0


def test_a_price_that_changed_counts_from_then_on(store: OwnerStore, demo_config: Config) -> None:
    def by(rate: str) -> Config:
        return priced(demo_config, book={"c": {"unit": "core_hour", "list_price": rate}})

    one = query(0.0, 3600, engine_id="duckdb", cpu_ms=3_600_000.0)
    told(store, one)
    settle(store, by("1"), at(0.5))
    hour = settle(store, by("3"), at(0.75))["duckdb", 0]
    assert hour.metered == Decimal("1.5")  # three quarters of it at 1, one at 3
    stretches = store.read("SELECT price_id, quantity, cost FROM charge WHERE engine_id = 'duckdb'")
    assert sorted(row["cost"] for row in stretches.to_pylist()) == [
        Decimal("0.75"),
        Decimal("0.75"),
    ]


def test_storage_is_charged_by_the_hour(store: OwnerStore, demo_config: Config) -> None:
    store.upsert("lake_table", to_arrow("lake_table", [lake_table(table_id="lake.a.t")]))
    size = table_metrics(table_id="lake.a.t", total_bytes=730 * 10**9, collected_at=at(0.5))
    store.upsert("table_metrics", to_arrow("table_metrics", [size]))
    told(store, query(0.1, 1), query(2.1, 1))
    found = settle(store, demo_config)
    assert {key[1] for key in found if key[0] == "storage:lake"} == set(range(30))
    assert found["storage:lake", 1].attributed == Decimal("0.023")


def test_flink_jobs_are_charged_by_their_slots(store: OwnerStore, demo_config: Config) -> None:
    config = priced(
        demo_config, book={"s": {"engine": "flink", "unit": "slot_hour", "list_price": "1"}}
    )
    job = query(0.0, None, engine_id="flink", query_id="job", collected_at=at(1.5))
    told(store, job)
    held = SlotTime(
        engine_id=EngineId("flink"), job_id="job", started_at=at(0.5), ended_at=at(1.5), slots=4
    )
    store.upsert("flink_slot_time", to_arrow("flink_slot_time", [held]))
    found = settle(store, config)
    assert [found["flink", hour].attributed for hour in (0, 1)] == [Decimal(2), Decimal(2)]
    assert [found["flink", hour].queries for hour in (0, 1)] == [1, 0]


def credit(meter: str, quantity: str, day_compute: str = "100") -> dict[str, Any]:
    return {
        "unit": "credit",
        "meter": meter,
        "resource": "WH",
        "quantity": Decimal(quantity),
        "attributed": Decimal("0.5"),
        "day_compute": Decimal(day_compute),
        "day_services": Decimal(20),
    }


def test_cloud_services_are_billed_beyond_a_tenth_of_the_day(demo_config: Config) -> None:
    config = priced(
        demo_config, book={"s": {"engine": "snow", "unit": "credit", "list_price": "2"}}
    )
    book = config.prices.book_of(config.prices.all_prices(NOW))
    fact = Facts(
        runs={"WH": 1, "": 1}, metered=[credit("compute", "4"), credit("cloud_services", "5")]
    )
    charges = {
        one.meter + one.resource: one for one in engine_charges(book, "snow", FIRST, fact, NOW)
    }
    assert charges["computeWH"].cost == 8
    assert charges["computeWH"].attributed == Decimal("0.5")
    assert charges["cloud_servicesWH"].quantity == Decimal("2.5")  # half of the day's is free
    assert charges["compute"].basis == "pending"  # a query without a warehouse is not lost


def test_a_warehouse_that_is_not_metered_yet_costs_the_credits_of_its_size(
    store: OwnerStore, demo_config: Config
) -> None:
    section = PricesConfig.model_validate({"editions": {"snow": "enterprise"}})
    section.know({"snow": "snowflake"})
    config = demo_config.model_copy(update={"prices": section})
    medium = ("warehouse=BI", "warehouse_size=Medium")
    shared = {"engine_id": EngineId("snow"), "tags": medium}
    told(store, query(0.25, 900, **shared), query(0.25, 600, **shared), query(1.5, 6, **shared))
    found = settle(store, config)
    hour = found["snow", 0]
    assert (hour.metered, hour.attributed, hour.basis) == (Decimal(3), Decimal(3), ("modelled",))
    assert hour.is_provisional is False  # a day later nothing more comes
    assert found["snow", 1].metered == Decimal("0.2")  # a minute at least
    row = {"engine_id": "snow", "resource": "BI", "meter": "compute", "hour": START}
    told_by_engine = row | {"unit": "credit", "quantity": Decimal(2), "source": "engine"}
    store.upsert("metering", rows_of("metering", [told_by_engine | {"collected_at": LATER}]))
    hour = settle(store, config, LATER + timedelta(minutes=1))["snow", 0]
    assert (hour.metered, hour.basis) == (Decimal(6), ("list",))


def test_credits_that_snowflake_tells_of_a_query_later_divide_its_hour_anew(
    store: OwnerStore, demo_config: Config
) -> None:
    section = PricesConfig.model_validate({"editions": {"snow": "enterprise"}})
    section.know({"snow": "snowflake"})
    config = demo_config.model_copy(update={"prices": section})
    shared = {"engine_id": EngineId("snow"), "tags": ("warehouse=BI",)}
    quick, slow = query(0.25, 100, **shared), query(0.5, 300, **shared)
    told(store, quick, slow)
    row = {"engine_id": "snow", "resource": "BI", "meter": "compute", "hour": START}
    row |= {"unit": "credit", "quantity": Decimal(2), "attributed": Decimal(1), "source": "engine"}
    store.upsert("metering", rows_of("metering", [row | {"collected_at": NOW}]))

    def costs() -> dict[str, Decimal]:
        found = store.read("SELECT query_id, cost FROM cost_query").to_pylist()
        return {one["query_id"]: one["cost"] for one in found}

    settle(store, config)
    assert costs() == {quick.query_id: Decimal("0.75"), slow.query_id: Decimal("2.25")}
    told_later = [
        {
            "engine_id": "snow",
            "query_id": one.query_id,
            "credits": Decimal(credits),
            "started_at": one.submitted_at,
            "ended_at": one.ended_at,
            "collected_at": LATER,
        }
        for one, credits in ((quick, "0.8"), (slow, "0.2"))
    ]
    store.upsert("query_attribution", rows_of("query_attribution", told_later))
    hour = settle(store, config, LATER + timedelta(minutes=1))["snow", 0]
    assert costs() == {quick.query_id: Decimal("2.4"), slow.query_id: Decimal("0.6")}
    assert (hour.metered, hour.attributed, hour.difference) == (Decimal(6), Decimal(3), Decimal(0))


def test_a_bill_of_one_warehouse_leaves_the_others_metered(demo_config: Config) -> None:
    config = priced(
        demo_config, book={"s": {"engine": "snow", "unit": "credit", "list_price": "2"}}
    )
    book = config.prices.book_of(config.prices.all_prices(NOW))
    metered = [credit("compute", "4") | {"resource": name} for name in ("A", "B")]
    fact = Facts(runs={"A": 1, "B": 1}, metered=metered, billed={("compute", "A")}, covered={"A"})
    charges = {one.resource: one for one in engine_charges(book, "snow", FIRST, fact, NOW)}
    assert (charges["A"].cost, charges["A"].quantity) == (Decimal(0), Decimal(4))
    assert (charges["B"].cost, charges["B"].basis) == (Decimal(8), "list")


def test_a_bill_of_one_workgroup_leaves_the_bytes_of_the_others(demo_config: Config) -> None:
    config = priced(
        demo_config, book={"s": {"engine": "ath", "unit": "tb_scanned", "list_price": "5"}}
    )
    book = config.prices.book_of(config.prices.all_prices(NOW))
    use: dict[str, Any] = {
        "runs": {"bi": 1, "etl": 1},
        "scanned": {"bi": 10**12, "etl": 3 * 10**12},
    }
    whole = engine_charges(book, "ath", FIRST, Facts(**use), NOW)
    assert [(one.resource, one.cost) for one in whole] == [("", Decimal(20))]
    fact = Facts(**use, billed={("scan", "etl")}, covered={"etl"})
    charges = {one.resource: one.cost for one in engine_charges(book, "ath", FIRST, fact, NOW)}
    assert charges == {"bi": 5, "etl": 0}


def test_a_run_of_the_agent_on_an_invented_history_adds_up(
    store: OwnerStore, demo_config: Config
) -> None:
    events, _ = trace(3, hours=24, queries=400)
    told(store, *events)
    found = settle(store, demo_config)
    counted = sum(one.queries for one in found.values())
    assert counted == store.read("SELECT count(*) AS n FROM query_event").to_pylist()[0]["n"]
    labels = store.read("SELECT DISTINCT label_id FROM cost_hour WHERE kind = 'query' AND runs > 0")
    known = store.read("SELECT label_id FROM cost_label").to_pylist()
    assert {row["label_id"] for row in labels.to_pylist()} <= {row["label_id"] for row in known}


@pytest.mark.parametrize("table", ["charge", "cost_hour"])
def test_a_digit_that_is_lost_is_found_and_put_right(
    store: OwnerStore, demo_config: Config, table: str
) -> None:
    told(store, query(0.5, 10))
    settle(store, demo_config)
    store.transact(table, [f"UPDATE {table} SET cost = cost + 0.000000001 WHERE cost > 0"])  # noqa: S608
    (broken,) = [
        one.difference
        for one in reconcile(store, START, LATER)
        if one.difference and one.engine_id == "trino"
    ]
    assert abs(broken) == Decimal("0.000000001")
    assert isinstance(settle(store, demo_config)["trino", 0], ReconciledHour)

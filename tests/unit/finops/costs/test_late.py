"""What is told late, bills that come later, prices that change: no hour keeps a wrong cost."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from agents import finops
from agents.watch import Lease
from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.domain.query import EngineId, QueryStatus
from lakehouse_core.finops.attribution import unbalanced_hours
from lakehouse_core.finops.bills import BillOptions, import_bill
from lakehouse_core.finops.reconcile import reconcile
from lakehouse_core.store.retention import apply_retention
from lakehouse_core.store.rows import to_arrow
from tests.factories import lake_table, table_metrics
from tests.ui.scenario import rows_of
from tests.unit.finops.costs.test_bills import HOUR, NOW, write
from tests.unit.finops.costs.test_metering import priced, settle, told
from tests.unit.finops.costs.traces import START, at, query

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow
MIDNIGHT = 4  # hours after the start


def test_a_tax_of_a_time_whose_queries_are_gone_leaves_the_bill_of_it_split(
    store: OwnerStore, demo_config: Config, tmp_path: Path
) -> None:
    config = priced(demo_config)
    told(store, query(0.5, 600))
    used = write(tmp_path, HOUR | {"cost": "9", "currency": "USD"})
    import_bill(store, config, used, BillOptions(), NOW)
    finops.run_once(store, config, lambda: NOW, Lease())
    (before,) = [one for one in reconcile(store, START, at(1)) if one.engine_id == "trino"]
    assert (before.metered, before.attributed) == (Decimal(9), Decimal(9))
    later = NOW + timedelta(days=120)
    apply_retention(
        store, config.store.retention, lambda: later, keep_costs=config.store.cost_retention
    )
    tax = HOUR | {"cost": "1", "currency": "USD", "category": "Tax"}
    import_bill(store, config, write(tmp_path, tax, name="tax.csv"), BillOptions(), later)
    finops.run_once(store, config, lambda: later, Lease())
    (after,) = [one for one in reconcile(store, START, at(1)) if one.engine_id == "trino"]
    assert (after.metered, after.attributed, after.unallocated) == (
        Decimal(10),
        Decimal(9),
        Decimal(1),
    )
    assert unbalanced_hours(store) == []


def metered(store: OwnerStore, hour: int, told_at: datetime, **credits: str) -> None:
    row = {"engine_id": "snow", "resource": "BI", "hour": at(hour), "unit": "credit"}
    row |= {"source": "engine", "collected_at": told_at}
    rows = [row | {"meter": name, "quantity": Decimal(text)} for name, text in credits.items()]
    store.upsert("metering", rows_of("metering", rows))


def test_credits_told_late_free_cloud_services_of_the_whole_day(
    store: OwnerStore, demo_config: Config
) -> None:
    section = PricesConfig.model_validate({"editions": {"snow": "enterprise"}})
    section.know({"snow": "snowflake"})
    config = demo_config.model_copy(update={"prices": section})
    tags = ("warehouse=BI",)
    told(store, query(MIDNIGHT + 0.5, 60, engine_id=EngineId("snow"), tags=tags))
    metered(store, MIDNIGHT, at(MIDNIGHT + 2), compute="1", cloud_services="1")
    settle(store, config, at(MIDNIGHT + 2))
    settle(store, config, at(MIDNIGHT + 27))
    now = at(MIDNIGHT + 27) + timedelta(minutes=5)
    metered(store, MIDNIGHT + 23, now, compute="99")  # the last hour of the same day
    found = settle(store, config, now + timedelta(minutes=1))
    assert found["snow", MIDNIGHT].metered == Decimal(3)  # compute alone: a tenth of 100 is free


def test_a_minimum_counts_in_the_hours_that_its_price_is_for(
    store: OwnerStore, demo_config: Config
) -> None:
    shared: dict[str, Any] = {"engine": "trino", "unit": "tb_scanned", "list_price": "5"}
    old = shared | {"valid_to": at(2).isoformat()}
    new = shared | {"valid_from": at(2).isoformat()}
    rules = {"minimum_bytes": "1TB", "failed_is_free": True}
    config = priced(demo_config, book={"old": old, "new": new | rules})
    for hour in (0, 2):
        told(store, query(hour + 0.5, 60, bytes_scanned=10**11))
        told(store, query(hour + 0.6, 60, bytes_scanned=10**11, status=QueryStatus.FAILED))
    found = settle(store, config)
    assert found["trino", 0].metered == Decimal(1)
    assert found["trino", 2].metered == Decimal(5)


def test_a_storage_price_that_changes_within_an_hour_divides_it(
    store: OwnerStore, demo_config: Config
) -> None:
    old = {"unit": "gb_month", "list_price": "1", "valid_to": at(0.5).isoformat()}
    new = {"unit": "gb_month", "list_price": "3", "valid_from": at(0.5).isoformat()}
    config = priced(demo_config, book={"old": old, "new": new})
    store.upsert("lake_table", to_arrow("lake_table", [lake_table(table_id="lake.a.t")]))
    sizes = table_metrics(table_id="lake.a.t", total_bytes=730 * 10**9, collected_at=START)
    store.upsert("table_metrics", to_arrow("table_metrics", [sizes]))
    told(store, query(0.5, 60))
    found = settle(store, config)
    assert found["storage:lake", 0].metered == Decimal(2)
    assert found["storage:lake", 1].metered == Decimal(3)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_time_that_says_utc_is_utc(
    store: OwnerStore, demo_config: Config, tmp_path: Path, zone: str | None
) -> None:
    config = priced(demo_config)
    line = {"engine": "trino", "cost": "1", "currency": "USD"}
    line |= {"start": "2026-03-28 20:00:00 UTC", "end": "2026-03-28 21:00:00 UTC"}
    report = import_bill(store, config, write(tmp_path, line), BillOptions(zone=zone), NOW)
    assert report.refused == ()
    assert report.hours == (int(START.timestamp()) // 3600,)

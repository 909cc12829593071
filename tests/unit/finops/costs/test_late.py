"""What is told late, or bills that come later still, leave no hour with a cost that is not so."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from agents import finops
from agents.watch import Lease
from lakehouse_core.finops.attribution import unbalanced_hours
from lakehouse_core.finops.bills import BillOptions, import_bill
from lakehouse_core.finops.reconcile import reconcile
from lakehouse_core.store.retention import apply_retention
from tests.unit.finops.costs.test_bills import HOUR, NOW, write
from tests.unit.finops.costs.test_metering import priced, told
from tests.unit.finops.costs.traces import START, at, query

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow


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
    assert (after.metered, after.attributed, after.unallocated) == (10, 9, 1)
    assert unbalanced_hours(store) == []


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

"""What a FOCUS bill says goes out as it came in, and the file keeps FOCUS."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from agents import finops
from agents.watch import Lease
from lakehouse_core.config.finops import FocusSettings
from lakehouse_core.finops.bills import BillOptions, import_bill
from lakehouse_core.finops.focus import export_focus
from lakehouse_core.views.groups import rules_of
from tests.unit.finops.costs.test_bills import HOUR, NOW, write
from tests.unit.finops.costs.test_metering import priced, told
from tests.unit.finops.costs.traces import START, at, query

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.finops.focus import FocusExport
    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow


def line(category: str, effective: str, billed: str) -> dict[str, str]:
    return {
        "ChargePeriodStart": HOUR["start"],
        "ChargePeriodEnd": HOUR["end"],
        "ResourceName": "trino",
        "EffectiveCost": effective,
        "BilledCost": billed,
        "BillingCurrency": "USD",
        "ChargeCategory": category,
    }


def exported(store: OwnerStore, config: Config, path: Path, bill: Path) -> FocusExport:
    import_bill(store, config, bill, BillOptions(), NOW)
    finops.run_once(store, config, lambda: NOW, Lease())
    return export_focus(store, rules_of(config), FocusSettings(), START, at(3), path)


def test_a_focus_bill_comes_out_as_it_went_in(
    store: OwnerStore, demo_config: Config, tmp_path: Path
) -> None:
    config = priced(demo_config)
    told(store, query(0.1, 100), query(0.5, 600, user_name="bo"), query(0.6, 77, user_name="cy"))
    lines = [
        line("Usage", "8", "10.000000001"),
        line("Credit", "-3", "-3"),
        line("Tax", "2", "2"),
        line("Purchase", "0", "1000"),
        line("Adjustment", "-0.5", "-0.25"),
    ]
    path = tmp_path / "focus.parquet"
    found = exported(store, config, path, write(tmp_path, *lines))
    assert found.verdict.violations == ()
    assert found.is_ok
    sums: dict[str, tuple[Decimal, Decimal]] = {}
    for row in pq.read_table(path).to_pylist():
        if row["x_Engine"] == "trino" and row["x_CostBasis"] == "billed":
            one = sums.get(row["ChargeCategory"], (Decimal(0), Decimal(0)))
            sums[row["ChargeCategory"]] = (
                one[0] + row["EffectiveCost"],
                one[1] + row["BilledCost"],
            )
    assert sums == {
        "Usage": (Decimal(8), Decimal("10.000000001")),
        "Credit": (Decimal(-3), Decimal(-3)),
        "Tax": (Decimal(2), Decimal(2)),
        "Purchase": (Decimal(0), Decimal(1000)),
        "Adjustment": (Decimal("-0.5"), Decimal("-0.25")),
    }


@pytest.mark.parametrize(("category", "told_as"), [("", "Adjustment"), ("Usage", "Usage")])
def test_a_refund_has_no_unit_price(
    store: OwnerStore, demo_config: Config, tmp_path: Path, category: str, told_as: str
) -> None:
    config = priced(demo_config)
    told(store, query(0.5, 600))
    path = tmp_path / "focus.parquet"
    found = exported(store, config, path, write(tmp_path, line(category, "-3", "-3")))
    assert found.verdict.violations == ()
    (row,) = [row for row in pq.read_table(path).to_pylist() if row["EffectiveCost"] < 0]
    assert row["ChargeCategory"] == told_as
    assert row["ChargeClass"] == ("Correction" if told_as == "Usage" else None)
    assert row["ListUnitPrice"] is None
    assert row["PricingQuantity"] is None


def test_a_bill_without_list_prices_keeps_focus(
    store: OwnerStore, demo_config: Config, tmp_path: Path
) -> None:
    config = priced(demo_config)
    told(store, query(0.5, 600), query(0.6, 77, user_name="cy"))
    path = tmp_path / "focus.parquet"
    used = line("Usage", "8", "8") | {"ListCost": "0", "ContractedCost": "8"}
    used |= {"ConsumedQuantity": "4", "ConsumedUnit": "Hours"}
    found = exported(store, config, path, write(tmp_path, used))
    assert found.verdict.violations == ()
    rows = [row for row in pq.read_table(path).to_pylist() if row["x_CostBasis"] == "billed"]
    assert sum(row["ConsumedQuantity"] for row in rows) == Decimal(4)
    assert {row["ContractedUnitPrice"] for row in rows} == {Decimal(2)}

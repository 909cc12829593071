from __future__ import annotations

import csv
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from lakehouse_core.config.finops import FocusSettings
from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.finops.focus import export_focus
from lakehouse_core.finops.focus_check import check_file
from lakehouse_core.finops.focus_columns import VERSIONS, columns
from lakehouse_core.views.costs import CostFilters, cost_report
from tests.unit.spend.conftest import clock, rules

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.finops.focus import FocusExport
    from lakehouse_core.finops.focus_columns import Version
    from lakehouse_core.store.owner import OwnerStore


def export(
    store: OwnerStore, path: Path, version: Version = "1.4", length: str = "3d"
) -> FocusExport:
    window = cost_report(store, CostFilters(window=length), rules(), clock).window
    return export_focus(store, rules(), FocusSettings(), window.start, window.end, path, version)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_export_keeps_focus_and_holds_every_charge(
    filled: OwnerStore, tmp_path: Path, version: Version, suffix: str
) -> None:
    found = export(filled, tmp_path / f"focus.{suffix}", version)
    assert found.verdict.violations == ()
    assert found.is_ok
    report = cost_report(filled, CostFilters(window="3d"), rules(), clock)
    (totals,) = found.verdict.totals
    assert totals["EffectiveCost"] == report.total.cost == found.metered["USD"]
    assert totals["BilledCost"] == 0  # modelled: there is no invoice
    mandatory = {name for name, one in columns(version).items() if one.is_mandatory}
    assert len(mandatory) == 21
    assert mandatory <= set(found.verdict.columns)


def broken(path: Path, row: int, column: str, value: str) -> Path:
    """A copy with one value changed."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[row - 1][column] = value
    copy = path.with_name("broken.csv")
    with copy.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return copy


@pytest.fixture(scope="module")
def good(filled: OwnerStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("focus") / "focus.csv"
    assert export(filled, path, length="6h").is_ok
    return path


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("ServiceName", "", "null"),
        ("PricingQuantity", "", "priced"),
        ("ChargeCategory", "Consumption", "allowed"),
        ("EffectiveCost", "1,5", "decimal"),
        ("ListUnitPrice", "-1", "price"),
        ("ChargePeriodStart", "2026-11-14 03:00", "time"),
        ("BillingCurrency", "usd", "currency"),
        ("AllocatedTags", "[1]", "json"),
        ("ChargePeriodEnd", "2026-11-01T00:00:00Z", "period"),
        ("BillingPeriodEnd", "2026-11-02T00:00:00Z", "period"),
        ("ListCost", "12", "product.list"),
        ("ContractedCost", "12", "product.contracted"),
        ("ServiceSubcategory", "Data Warehouses", "subcategory"),
        ("AllocatedResourceId", "", "allocation"),
        ("PricingUnit", "€", "unit"),
    ],
)
def test_a_broken_copy_is_told_with_its_row_and_rule(
    good: Path, column: str, value: str, rule: str
) -> None:
    verdict = check_file(broken(good, 7, column, value))
    assert not verdict.is_ok
    assert (rule, 7) in {(one.rule, one.row) for one in verdict.violations}


def test_a_cost_that_lost_a_digit_breaks_the_sum_of_its_charge(good: Path) -> None:
    with good.open(encoding="utf-8", newline="") as file:
        cost = Decimal(list(csv.DictReader(file))[6]["EffectiveCost"])
    verdict = check_file(broken(good, 7, "EffectiveCost", f"{cost + Decimal('1e-9'):f}"))
    assert {one.rule for one in verdict.violations} == {"sum.origin"}
    assert 7 in {one.row for one in verdict.violations}


def test_a_missing_and_an_unknown_column_are_told(good: Path, tmp_path: Path) -> None:
    with good.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    index = rows[0].index("InvoiceIssuerName")
    rows[0][index] = "Issuer"
    copy = tmp_path / "renamed.csv"
    with copy.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    found = {(one.rule, one.column) for one in check_file(copy).violations}
    assert found == {("column.missing", "InvoiceIssuerName"), ("column.unknown", "Issuer")}


@pytest.mark.slow
def test_parquet_has_types_and_an_empty_text_is_no_value(
    filled: OwnerStore, tmp_path: Path
) -> None:
    path = tmp_path / "focus.parquet"
    export(filled, path)
    table = pq.read_table(path)
    assert str(table.schema.field("EffectiveCost").type) == "decimal128(38, 9)"
    assert str(table.schema.field("ChargePeriodStart").type) == "timestamp[us, tz=UTC]"
    index = table.column_names.index("ServiceName")
    spoilt = table.set_column(index, "ServiceName", [[""] * table.num_rows])
    pq.write_table(spoilt, path)
    verdict = check_file(path)
    assert verdict.broken == table.num_rows
    assert {one.rule for one in verdict.violations} == {"empty"}


def test_no_file_and_no_table_are_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="lakehelm export focus"):
        check_file(tmp_path / "nothing.csv")
    (tmp_path / "broken.parquet").write_text("not parquet", encoding="utf-8")
    with pytest.raises(NotFoundError, match="cannot be read"):
        check_file(tmp_path / "broken.parquet")

"""Bills: what they say is charged to the digit; what they leave open is told, never guessed."""

from __future__ import annotations

import csv
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agents import finops
from agents.watch import Lease
from lakehouse_core.domain.cost import UNKNOWN_ENGINE
from lakehouse_core.finops.attribution import settle_hours, unbalanced_hours
from lakehouse_core.finops.bills import BillError, BillOptions, BillReport, import_bill
from lakehouse_core.finops.prices import keep_prices
from lakehouse_core.finops.reconcile import reconcile
from lakehouse_core.store.retention import apply_retention
from lakehouse_core.store.rows import to_arrow
from lakehouse_core.views.bills import list_bills
from tests.factories import lake_table, table_metrics
from tests.unit.finops.costs.test_metering import priced, told
from tests.unit.finops.costs.traces import START, at, query

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow

NOW = at(60)
HOUR = {"engine": "trino", "start": "2026-03-28T20:00:00Z", "end": "2026-03-28T21:00:00Z"}


def write(folder: Path, *lines: dict[str, Any], name: str = "bill.csv") -> Path:
    columns = list(dict.fromkeys(column for line in lines for column in line))
    path = folder / name
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(lines)
    return path


def take(
    store: OwnerStore, config: Config, path: Path, **options: Any
) -> tuple[BillReport, dict[tuple[str, str], dict[str, Decimal]]]:
    """Import, settle, and what each engine has by currency; every hour must add up."""
    report = import_bill(store, config, path, BillOptions(**options), NOW)
    finops.run_once(store, config, lambda: NOW, Lease())
    found = reconcile(store, START - timedelta(days=400), NOW + timedelta(days=400))
    assert not [one for one in found if one.difference]
    sums: dict[tuple[str, str], dict[str, Decimal]] = {}
    for one in found:
        mine = sums.setdefault((one.engine_id, one.currency), {})
        for name in ("metered", "attributed", "idle", "unallocated"):
            mine[name] = mine.get(name, Decimal(0)) + getattr(one, name)
    return report, sums


@pytest.fixture
def config(demo_config: Config) -> Config:
    return priced(demo_config, bill_names={"*emr*": "spark"})


def test_a_bill_takes_the_place_of_what_we_metered(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 600), query(1.5, 600))
    finops.run_once(store, config, lambda: NOW, Lease())
    bill = write(tmp_path, HOUR | {"cost": "12.345678901", "currency": "USD"})
    report, sums = take(store, config, bill)
    assert (report.new, report.amounts) == (1, {"USD": Decimal("12.345678901")})
    by_hour = {
        one.hour_at: one for one in reconcile(store, START, at(2)) if one.engine_id == "trino"
    }
    assert by_hour[START].attributed == Decimal("12.345678901")
    assert by_hour[START].basis == ("billed",)
    assert by_hour[at(1)].basis == ("modelled",)
    again, same = take(store, config, bill)
    assert (again.new, same) == (0, sums)


def test_a_line_of_days_goes_to_the_hours_that_were_used(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 60), query(5.5, 180))
    finops.run_once(store, config, lambda: NOW, Lease())
    day = {"engine": "trino", "start": "2026-03-28T20:00:00Z", "end": "2026-03-29T20:00:00Z"}
    _, sums = take(store, config, write(tmp_path, day | {"cost": "0.1", "currency": "USD"}))
    assert sums["trino", "USD"]["metered"] == sums["trino", "USD"]["attributed"] == Decimal("0.1")
    hours = [one for one in reconcile(store, START, at(24)) if one.attributed]
    assert [one.attributed for one in hours] == [Decimal("0.025"), Decimal("0.075")]


@pytest.mark.parametrize("parts", [1, 7, 24 * 7 + 1])
def test_hours_of_a_line_nobody_used_add_up_to_it(
    store: OwnerStore, config: Config, tmp_path: Path, parts: int
) -> None:
    end = START + timedelta(hours=parts, minutes=13)
    line = {"engine": "trino", "start": START.isoformat(), "end": end.isoformat()}
    _, sums = take(
        store, config, write(tmp_path, line | {"cost": "0.000000101", "currency": "USD"})
    )
    assert sums["trino", "USD"]["metered"] == sums["trino", "USD"]["idle"] == Decimal("0.000000101")


def test_focus_columns_are_understood_in_parquet(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    focus = {
        "ServiceName": "Amazon EMR",
        "ResourceId": "arn:aws:emr-serverless:1",
        "ServiceCategory": "Analytics",
        "ChargeCategory": "Usage",
        "ChargePeriodStart": "2026-03-28T20:00:00Z",
        "ChargePeriodEnd": "2026-03-28T21:00:00Z",
        "EffectiveCost": "4.5",
        "BilledCost": "5",
        "ListCost": "6",
        "ContractedCost": "5",
        "BillingCurrency": "USD",
        "ConsumedQuantity": "2",
        "ConsumedUnit": "Hours",
    }
    tax = focus | {"ChargeCategory": "Tax", "EffectiveCost": "0.5"}
    path = tmp_path / "focus.parquet"
    pq.write_table(pa.Table.from_pylist([focus, tax]), path)
    report, sums = take(store, config, path)
    assert sums["spark", "USD"] == {
        "metered": Decimal(5),
        "attributed": Decimal(0),
        "idle": Decimal("4.5"),
        "unallocated": Decimal("0.5"),
    }
    assert report.unallocated == {"Tax is not use": Decimal("0.5")}
    (row,) = store.read("SELECT * FROM charge WHERE method = 'seconds'").to_pylist()
    assert (row["list_cost"], row["contracted_cost"], row["quantity"]) == (6, 5, 2)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"cost": "-3", "currency": "USD"}, "negative amount"),
        ({"cost": "3", "currency": "EUR"}, "billed in EUR, the price book is in USD"),
        ({"cost": "3", "currency": "USD", "engine": "oracle"}, "the bill names oracle"),
        ({"cost": "3", "currency": "USD", "category": "Credit"}, "Credit is not use"),
    ],
)
def test_what_cannot_be_split_is_kept_with_the_reason(
    store: OwnerStore, config: Config, tmp_path: Path, line: dict[str, str], reason: str
) -> None:
    told(store, query(0.5, 600))
    report, sums = take(store, config, write(tmp_path, HOUR | line))
    amount = Decimal(line["cost"])
    (told_reason,) = report.unallocated
    assert told_reason.startswith(reason)
    engine = "trino" if line.get("engine") is None else UNKNOWN_ENGINE
    assert sums[engine, line["currency"]]["unallocated"] == amount
    reasons = {r for one in reconcile(store, START, at(1)) for r in one.reasons}
    assert told_reason in reasons


def test_a_line_that_comes_twice_is_charged_and_split_once(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    half = HOUR | {"start": "2026-03-28T20:30:00Z"}
    told(store, query(0.5, 600))
    bill = write(
        tmp_path,
        HOUR | {"cost": "1", "currency": "USD"},
        half | {"cost": "2", "currency": "USD"},
        HOUR | {"cost": "1", "currency": "USD"},
    )
    report, sums = take(store, config, bill)
    assert sums["trino", "USD"]["metered"] == 4
    assert sums["trino", "USD"]["unallocated"] == 3
    assert set(report.unallocated) == {"overlaps line 2 of the same subject"}


def test_a_later_bill_for_the_same_time_must_say_that_it_corrects(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 600))
    take(store, config, write(tmp_path, HOUR | {"cost": "1", "currency": "USD"}))
    second = write(tmp_path, HOUR | {"cost": "7", "currency": "USD"}, name="second.csv")
    report, sums = take(store, config, second)
    assert "imported before: use --replace" in next(iter(report.unallocated))
    assert sums["trino", "USD"]["metered"] == 8
    third = write(tmp_path, HOUR | {"cost": "9", "currency": "USD"}, name="third.csv")
    report, sums = take(store, config, third, is_correction=True)
    assert report.superseded == 2
    assert sums["trino", "USD"]["metered"] == sums["trino", "USD"]["attributed"] == 9


def test_a_correction_keeps_the_lines_that_it_says_again(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 600), query(1.5, 600))
    next_hour = HOUR | {"start": "2026-03-28T21:00:00Z", "end": "2026-03-28T22:00:00Z"}
    second = next_hour | {"cost": "7", "currency": "USD"}
    first = write(tmp_path, HOUR | {"cost": "5", "currency": "USD"}, second)
    _, sums = take(store, config, first)
    assert sums["trino", "USD"]["metered"] == 12
    fixed = write(tmp_path, HOUR | {"cost": "6", "currency": "USD"}, second, name="fixed.csv")
    report, sums = take(store, config, fixed, is_correction=True)
    assert report.superseded == 2
    assert sums["trino", "USD"]["metered"] == sums["trino", "USD"]["attributed"] == 13
    _, same = take(store, config, fixed, is_correction=True)
    assert same == sums
    counting = store.read("SELECT cost FROM bill_line WHERE superseded_by IS NULL ORDER BY cost")
    assert counting.column("cost").to_pylist() == [6, 7]


def test_a_correction_goes_to_the_hours_that_were_used(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 60), query(5.5, 180))
    finops.run_once(store, config, lambda: NOW, Lease())
    day = {"engine": "trino", "start": "2026-03-28T20:00:00Z", "end": "2026-03-29T20:00:00Z"}
    take(store, config, write(tmp_path, day | {"cost": "0.1", "currency": "USD"}))
    fixed = write(tmp_path, day | {"cost": "0.2", "currency": "USD"}, name="fixed.csv")
    take(store, config, fixed, is_correction=True)
    hours = [one for one in reconcile(store, START, at(24)) if one.metered]
    assert [one.attributed for one in hours] == [Decimal("0.05"), Decimal("0.15")]


def test_a_refund_leaves_what_was_used(store: OwnerStore, config: Config, tmp_path: Path) -> None:
    told(store, query(0.5, 600))
    finops.run_once(store, config, lambda: NOW, Lease())
    ((before,),) = (
        [one.attributed for one in reconcile(store, START, at(1)) if one.engine_id == "trino"],
    )
    refund = write(tmp_path, HOUR | {"cost": "-3", "currency": "USD"})
    _, sums = take(store, config, refund)
    assert sums["trino", "USD"]["attributed"] == before > 0
    assert sums["trino", "USD"]["unallocated"] == -3
    tax = HOUR | {"cost": "1", "currency": "USD", "category": "Tax", "meter": "compute"}
    _, sums = take(store, config, write(tmp_path, tax, name="tax.csv"))
    assert sums["trino", "USD"]["attributed"] == before


def test_use_that_is_billed_in_another_currency_is_not_charged_twice(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 600))
    _, sums = take(store, config, write(tmp_path, HOUR | {"cost": "3", "currency": "EUR"}))
    assert sums["trino", "EUR"]["unallocated"] == 3
    assert sums["trino", "USD"]["metered"] == 0


def test_a_bill_may_name_the_storage_of_a_catalog(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    store.upsert("lake_table", to_arrow("lake_table", [lake_table(table_id="lake.a.t")]))
    sizes = table_metrics(table_id="lake.a.t", total_bytes=10**12, collected_at=START)
    store.upsert("table_metrics", to_arrow("table_metrics", [sizes]))
    told(store, query(0.5, 60), query(1.5, 60))
    finops.run_once(store, config, lambda: NOW, Lease())
    named = priced(config, bill_names={"amazon s3": "storage:lake"})
    line = {"start": HOUR["start"], "end": HOUR["end"], "cost": "4", "currency": "USD"}
    s3 = line | {"ServiceName": "Amazon S3", "ServiceCategory": "Storage"}
    take(store, named, write(tmp_path, s3))
    hours = {
        one.hour_at: one
        for one in reconcile(store, START, at(2))
        if one.engine_id == "storage:lake"
    }
    assert (hours[START].metered, hours[START].basis) == (Decimal(4), ("billed",))
    assert hours[at(1)].basis == ("modelled",)


def test_a_bill_of_a_time_whose_queries_are_gone_takes_the_place_of_what_was_charged(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 600), query(0.6, 60, engine_id="duckdb", cpu_ms=1_000.0))
    finops.run_once(store, config, lambda: NOW, Lease())
    before = {one.engine_id: one for one in reconcile(store, START, at(1))}
    assert before["trino"].attributed > 0
    later = NOW + timedelta(days=120)
    apply_retention(
        store, config.store.retention, lambda: later, keep_costs=config.store.cost_retention
    )
    assert store.read("FROM query_event").num_rows == 0
    finops.run_once(store, config, lambda: later, Lease())
    assert {one.engine_id: one for one in reconcile(store, START, at(1))} == before
    bill = write(tmp_path, HOUR | {"cost": "9", "currency": "USD"})
    report = import_bill(store, config, bill, BillOptions(), later)
    assert "the history of queries ended" in next(iter(report.unallocated))
    finops.run_once(store, config, lambda: later, Lease())
    after = {one.engine_id: one for one in reconcile(store, START, at(1))}
    assert after["duckdb"] == before["duckdb"]
    trino = after["trino"]
    assert (trino.metered, trino.unallocated, trino.attributed) == (
        Decimal(9),
        Decimal(9),
        Decimal(0),
    )
    assert not any(one.difference for one in after.values())
    assert unbalanced_hours(store) == []


def test_a_large_line_over_large_quantities_adds_up(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    told(store, query(0.5, 60), query(5.5, 180))
    finops.run_once(store, config, lambda: NOW, Lease())
    store.transact("charge", ["UPDATE charge SET quantity = quantity * 100000"])
    month = HOUR | {"end": "2026-04-28T20:00:00Z", "cost": "999999999.999999999"}
    used = month | {"currency": "USD", "quantity": "123456789012345", "unit": "Bytes"}
    import_bill(store, config, write(tmp_path, used), BillOptions(), NOW)
    (row,) = store.read(
        "SELECT sum(cost) AS cost, sum(quantity) AS quantity FROM charge WHERE basis = 'billed'"
    ).to_pylist()
    assert row == {"cost": Decimal("999999999.999999999"), "quantity": 123456789012345}
    settle_hours(store, config, keep_prices(store, config, NOW), unbalanced_hours(store), NOW)
    assert unbalanced_hours(store) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"cost": "", "currency": "USD"}, "has no amount"),
        ({"cost": "a lot", "currency": "USD"}, "amount a lot is no number"),
        ({"cost": "1", "currency": "dollars"}, "has no ISO 4217 currency"),
        ({"cost": "1", "currency": "USD", "start": ""}, "has no period"),
        ({"cost": "1", "currency": "USD", "start": "yesterday"}, "times have no zone"),
        ({"cost": "1", "currency": "USD", "end": "2026-03-28T19:00:00Z"}, "ends before it starts"),
    ],
)
def test_a_line_that_says_too_little_is_refused_by_number(
    store: OwnerStore, config: Config, tmp_path: Path, line: dict[str, str], why: str
) -> None:
    good = HOUR | {"cost": "1", "currency": "USD"}
    report, sums = take(store, config, write(tmp_path, good, HOUR | line))
    assert (report.new, report.refused_lines) == (1, 1)
    assert report.refused[0].startswith("line 3: ")
    assert why in report.refused[0]
    assert sums["trino", "USD"]["metered"] == 1


def test_imports_are_listed_with_what_is_split_kept_and_refused(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    assert list_bills(store) == ()
    good = HOUR | {"cost": "5", "currency": "USD"}
    refund = HOUR | {"cost": "-1", "currency": "USD"}
    foreign = HOUR | {"cost": "3", "currency": "EUR"}
    take(store, config, write(tmp_path, good, refund, foreign, HOUR | {"currency": "USD"}))
    euro, dollar = list_bills(store)
    assert (euro.currency, euro.amount, euro.allocated) == ("EUR", Decimal(3), Decimal(0))
    assert (dollar.amount, dollar.allocated) == (Decimal(4), Decimal(5))
    assert dollar.unallocated == {"negative amount: a credit or refund is nobody's use": -1}
    assert (dollar.lines, dollar.counting, dollar.refused_lines) == (4, 2, 1)
    assert dollar.refused == ("line 5: has no amount",)
    nothing = write(tmp_path, HOUR | {"currency": "USD", "cost": "x"}, name="nothing.csv")
    import_bill(store, config, nothing, BillOptions(), NOW + timedelta(hours=1))
    newest = list_bills(store)[0]
    assert (newest.file_name, newest.currency, newest.amount) == ("nothing.csv", None, Decimal(0))
    assert newest.refused_lines == 1


def test_local_hours_are_told_apart_where_the_clock_allows_it(
    store: OwnerStore, config: Config, tmp_path: Path
) -> None:
    def local(start: str, end: str) -> dict[str, str]:
        return {"engine": "trino", "start": start, "end": end, "cost": "1", "currency": "USD"}

    bill = write(
        tmp_path,
        local("2026-03-28 22:00:00", "2026-03-28 23:00:00"),
        local("2026-03-29 02:30:00", "2026-03-29 03:30:00"),  # 2:30 does not exist
        local("2026-10-25 02:00:00", "2026-10-25 03:00:00"),  # 2:00 comes twice
    )
    report, sums = take(store, config, bill, zone="Europe/Berlin")
    assert sums["trino", "USD"]["metered"] == 3
    assert sums["trino", "USD"]["unallocated"] == 2
    doubts = sorted(report.unallocated)
    assert "does not exist in Europe/Berlin" in doubts[0]
    assert "comes twice in Europe/Berlin" in doubts[1]
    (first,) = [one.hour_at for one in reconcile(store, START, at(2)) if one.metered]
    assert first == at(1)  # 22:00 in Berlin, before the change


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("a,b\n1,2\n", {}, "has no column chargeperiodstart or start"),
        ("engine,start,end,cost,currency\n", {"zone": "Mars/Base"}, "is no time zone"),
        ("engine,start,end,cost,currency\n", {"engine": "db2"}, "'db2' is not configured"),
    ],
)
def test_a_file_that_is_no_bill_is_refused(
    store: OwnerStore, config: Config, tmp_path: Path, text: str, options: Any, why: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(BillError, match=why):
        import_bill(store, config, path, BillOptions(**options), NOW)
    with pytest.raises(BillError, match="There is no file"):
        import_bill(store, config, tmp_path / "none.csv", BillOptions(), NOW)

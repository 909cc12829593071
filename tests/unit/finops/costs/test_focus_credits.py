"""The FOCUS export names how an hour was divided: by Snowflake's credits where it tells them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from lakehouse_core.config.finops import FocusSettings
from lakehouse_core.config.pricebook import PricesConfig
from lakehouse_core.domain.query import EngineId
from lakehouse_core.finops.bills import BillOptions, import_bill
from lakehouse_core.finops.focus import export_focus
from lakehouse_core.finops.reconcile import reconcile
from lakehouse_core.views.groups import rules_of
from tests.ui.scenario import rows_of
from tests.unit.finops.costs.test_bills import HOUR, write
from tests.unit.finops.costs.test_metering import LATER, settle, told
from tests.unit.finops.costs.traces import START, at, query

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from lakehouse_core.config import Config
    from lakehouse_core.domain.query import QueryEvent
    from lakehouse_core.finops.focus_columns import Version
    from lakehouse_core.store.owner import OwnerStore

pytestmark = pytest.mark.slow


def snowflake(config: Config) -> Config:
    section = PricesConfig.model_validate(
        {"editions": {"snow": "enterprise"}, "bill_names": {"SNOW_*": "snow"}}
    )
    section.know({"snow": "snowflake"})
    return config.model_copy(update={"prices": section})


def with_two_warehouses(store: OwnerStore) -> dict[str, QueryEvent]:
    """Queries of two warehouses in one hour, as the engine metered it."""
    queries = {
        name: query(0.25, 100, engine_id=EngineId("snow"), tags=(f"warehouse={name}",))
        for name in ("BI", "ETL")
    }
    told(store, *queries.values())
    shared = {"engine_id": "snow", "hour": START, "unit": "credit", "source": "engine"}
    rows = [
        shared | {"resource": name, "meter": meter, "quantity": Decimal(2), "collected_at": LATER}
        for name in queries
        for meter in ("compute", "cloud_services")
    ]
    store.upsert("metering", rows_of("metering", rows))
    return queries


def attribute(store: OwnerStore, one: QueryEvent) -> None:
    """What Snowflake charges a query with."""
    row = {
        "engine_id": one.engine_id,
        "query_id": one.query_id,
        "credits": Decimal("0.5"),
        "started_at": one.submitted_at,
        "ended_at": one.ended_at,
        "collected_at": LATER,
    }
    store.upsert("query_attribution", rows_of("query_attribution", [row]))


def methods(
    store: OwnerStore, config: Config, path: Path, version: Version = "1.4"
) -> dict[tuple[str, str], set[str]]:
    """Warehouse and meter → the methods that their rows name."""
    found = export_focus(store, rules_of(config), FocusSettings(), START, at(3), path, version)
    assert found.verdict.violations == ()
    assert found.is_ok
    column = "AllocatedMethodId" if version == "1.4" else "x_AllocatedMethodId"
    named: dict[tuple[str, str], set[str]] = {}
    for row in pq.read_table(path).to_pylist():
        key = (row["ResourceName"], row["ResourceType"])
        named.setdefault(key, set()).add(row[column])
    return named


@pytest.mark.parametrize("version", ["1.4", "1.2"])
def test_a_warehouse_that_is_divided_by_credits_says_so_once_they_are_told(
    store: OwnerStore, demo_config: Config, tmp_path: Path, version: Version
) -> None:
    config, path = snowflake(demo_config), tmp_path / "focus.parquet"
    queries = with_two_warehouses(store)
    settle(store, config)
    before = methods(store, config, path, version)
    assert set(before) == {(w, m) for w in ("BI", "ETL") for m in ("compute", "cloud_services")}
    assert set().union(*before.values()) == {"query-seconds-v1"}
    attribute(store, queries["BI"])
    settle(store, config, LATER + timedelta(minutes=1))
    after = methods(store, config, path, version)
    assert after == before | {("BI", "compute"): {"query-credits-v1"}}


def test_a_bill_of_a_warehouse_is_divided_by_credits_and_says_so(
    store: OwnerStore, demo_config: Config, tmp_path: Path
) -> None:
    config, path = snowflake(demo_config), tmp_path / "focus.parquet"
    queries = with_two_warehouses(store)
    attribute(store, queries["BI"])
    settle(store, config)
    line = HOUR | {"engine": "SNOW_EU", "resource": "BI", "cost": "7", "currency": "USD"}
    import_bill(store, config, write(tmp_path, line), BillOptions(), LATER)
    settle(store, config, LATER + timedelta(minutes=1))
    assert methods(store, config, path)["BI", "compute"] == {"query-credits-v1"}
    (cost,) = store.read(
        "SELECT sum(cost) AS cost FROM cost_hour WHERE resource = 'BI' AND basis = 'billed'"
    ).column("cost")
    assert cost.as_py() == Decimal(7)


class Busy:
    """A store in which the running hour is charged anew after each reading of its rows."""

    def __init__(self, store: OwnerStore, config: Config) -> None:
        self._store, self._config, self.left = store, config, 2

    def read(self, sql: str, **params: Any) -> pa.Table:
        found = self._store.read(sql, **params)
        if '"BilledCost"' in sql and found.num_rows and self.left:
            self.left -= 1
            told(self._store, query(2.5, 20 + self.left))
            settle(self._store, self._config)
        return found


def test_an_hour_that_is_charged_meanwhile_is_exported_as_it_is_in_the_end(
    store: OwnerStore, demo_config: Config, tmp_path: Path
) -> None:
    told(store, query(2.5, 10))
    settle(store, demo_config)
    busy = Busy(store, demo_config)
    path = tmp_path / "focus.parquet"
    found = export_focus(busy, rules_of(demo_config), FocusSettings(), START, at(3), path)
    assert busy.left == 0
    assert found.differences == {}
    assert found.is_ok
    assert found.metered == {"USD": sum(pq.read_table(path)["EffectiveCost"].to_pylist())}
    assert sum(one.metered for one in reconcile(store, START, at(3))) == found.metered["USD"]

"""The demo lake through the source and the health rules: equal numbers, fitting verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.iceberg.source import iceberg_source
from lakehouse_core.catalog import open_catalog
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.health import HealthState
from lakehouse_core.domain.table import TableMetrics, TableName
from lakehouse_core.health import assess, thresholds_for
from lakehouse_core.store.owner import OwnerStore
from tests.unit.catalog.lakes import assert_equal_to_pyiceberg

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config

pytestmark = pytest.mark.lake


@pytest.fixture
def metrics(demo_lake: Config, tmp_path: Path) -> dict[str, TableMetrics]:
    """Metrics of all tables, as the store has them after one sweep."""
    with OwnerStore.at(tmp_path / "store") as store:
        source = iceberg_source(demo_lake, store)
        for batch in source.pull(None):
            for name, rows in batch.rows.items():
                store.upsert(name, rows)
            assert batch.dead_letters == ()
        source.close()
        found = store.read("SELECT * FROM table_metrics").to_pylist()
    return {
        row["table_id"]: TableMetrics(
            **{**row, "file_size_histogram": tuple(row["file_size_histogram"])}
        )
        for row in found
    }


def test_every_number_equals_pyicebergs(
    demo_lake: Config, metrics: dict[str, TableMetrics]
) -> None:
    iceberg = open_catalog("lake", demo_lake.catalogs["lake"]).iceberg()
    tables = {TableName.parse(table_id): found for table_id, found in metrics.items()}
    # Other tests leave tables in the same lake, some of types that pyiceberg does not inspect.
    own = [one for one in tables if one.namespace == ("demo",)]
    assert len(own) >= 13
    for table in own:
        found = tables[table]
        assert_equal_to_pyiceberg(found, iceberg.load_table((*table.namespace, table.name)))
    iceberg.engine.dispose()  # type: ignore[attr-defined]


def test_the_sick_tables_are_worse_than_the_healthy_one(
    demo_lake: Config, metrics: dict[str, TableMetrics]
) -> None:
    now = utc_now()
    verdicts = {
        table_id: assess(found, thresholds_for(demo_lake.health, table_id), now)
        for table_id, found in metrics.items()
    }
    healthy = verdicts["lake.demo.healthy"]
    assert healthy.state is HealthState.HEALTHY
    expected = {
        "lake.demo.events": "small_file_share",
        "lake.demo.orders_cdc": "delete_ratio",
        "lake.demo.skewed": "skew",
        "lake.demo.churn": "snapshots",
    }
    for table_id, rule in expected.items():
        verdict = verdicts[table_id]
        assert verdict.score is not None
        assert healthy.score is not None
        assert verdict.score < healthy.score, table_id
        assert rule in [one.rule for one in verdict.contributors], table_id

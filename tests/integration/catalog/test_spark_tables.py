"""Tables that Spark wrote: v1, v2 with position deletes, v3 with deletion vectors, branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.catalog import open_catalog
from lakehouse_core.catalog.avro_reader import AvroReader
from lakehouse_core.catalog.measure import measure
from lakehouse_core.catalog.reader import TableReader
from lakehouse_core.domain.table import TableMetrics, TableName
from lakehouse_core.engines.spark.sessions import session_class
from tests.factories import NOW, unique
from tests.unit.catalog.lakes import SMALL, assert_equal_to_pyiceberg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql.connect.session import SparkSession

    from lakehouse_core.config import Config

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark(spark_server: Config) -> Iterator[SparkSession]:
    port = spark_server.engines["spark"].port  # type: ignore[union-attr]
    session = session_class()(connection=f"sc://127.0.0.1:{port}")
    session.sql("CREATE NAMESPACE IF NOT EXISTS lake.metadata_tests")
    yield session
    session.stop()


@pytest.fixture
def measured(spark_server: Config, tmp_path: Path) -> Callable[[TableName], TableMetrics]:
    """Our metrics of a table, proven equal to pyiceberg's."""
    catalog = open_catalog("lake", spark_server.catalogs["lake"])
    reader = TableReader(catalog, tmp_path, AvroReader())

    def call(table: TableName) -> TableMetrics:
        iceberg = catalog.iceberg()
        metrics = measure(reader.read(table), small_file_bytes=SMALL, collected_at=NOW)
        assert_equal_to_pyiceberg(metrics, iceberg.load_table((*table.namespace, table.name)))
        iceberg.engine.dispose()  # type: ignore[attr-defined]
        return metrics

    return call


def new_table(spark: SparkSession, columns: str, properties: dict[str, str]) -> TableName:
    table = TableName("lake", ("metadata_tests",), unique("t").replace("-", "_"))
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"CREATE TABLE {table} {columns} TBLPROPERTIES ({listed})")
    return table


def run(spark: SparkSession, sql: str, table: object, **values: int) -> None:
    """Run one statement on the table that it calls `IDENTIFIER(:t)`."""
    spark.sql(sql, args={"t": str(table), **values})


INSERT = """
INSERT INTO IDENTIFIER(:t)
SELECT id, concat('r', id % 3), timestamp_seconds(id * 3600) FROM range(:first, :last)
"""
INSERT_PAIRS = """
INSERT INTO IDENTIFIER(:t) SELECT id, cast(id AS STRING) FROM range(:first, :first + 100)
"""


@pytest.mark.parametrize("version", [1, 2, 3])
def test_deletes_and_a_new_partitioning(
    spark: SparkSession, measured: Callable[[TableName], TableMetrics], version: int
) -> None:
    columns = "(id BIGINT, region STRING, at TIMESTAMP) USING iceberg PARTITIONED BY (region)"
    mode = "copy-on-write" if version == 1 else "merge-on-read"
    properties = {"format-version": str(version), "write.delete.mode": mode}
    table = new_table(spark, columns, properties)
    run(spark, INSERT, table, first=0, last=300)
    run(spark, INSERT, table, first=300, last=400)
    assert measured(table).total_rows == 400
    run(spark, "DELETE FROM IDENTIFIER(:t) WHERE id % 10 = 0", table)
    metrics = measured(table)
    files = {
        1: (0, 0),
        2: (metrics.position_delete_files, 0),
        3: (0, metrics.deletion_vectors),
    }[version]
    assert (metrics.position_delete_files, metrics.deletion_vectors) == files
    assert metrics.deleted_rows == (0 if version == 1 else 40)
    assert metrics.delete_files == sum(files)
    assert bool(metrics.delete_files) == (version > 1)
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD days(at)")
    run(spark, INSERT, table, first=400, last=430)
    assert measured(table).partitions > 3


def test_a_sort_order_and_a_branch(
    spark: SparkSession, measured: Callable[[TableName], TableMetrics]
) -> None:
    table = new_table(spark, "(id BIGINT, k STRING) USING iceberg", {"format-version": "2"})
    spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY k DESC, id")
    for first in (0, 100, 200):
        run(spark, INSERT_PAIRS, table, first=first)
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH dev")
    run(spark, "INSERT INTO IDENTIFIER(:t) VALUES (5000, 'x')", f"{table}.branch_dev")
    metrics = measured(table)
    assert metrics.sort_order == "k DESC NULLS LAST, id ASC NULLS FIRST"
    assert metrics.unsorted_share == 0.0
    assert metrics.sort_overlap is not None
    assert metrics.snapshots == metrics.data_files + 1

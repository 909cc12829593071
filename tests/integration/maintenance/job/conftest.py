"""One Spark session in this process for all tests here; each has a namespace of its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from tests.integration.maintenance.job.lakes import Lake
from tests.integration.sessions import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.java import Java

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def spark(
    lake_config: Config, machine: Machine, spark_java: Java, artifacts: list[Path]
) -> Iterator[SparkSession]:
    del artifacts
    with spark_session(lake_config, machine, spark_java) as session:
        yield session


@pytest.fixture
def lake(lake_config: Config, machine: Machine, spark: SparkSession, tmp_path: Path) -> Lake:
    namespace = f"job_{next(_numbers)}"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
    return Lake(lake_config, machine, spark, namespace, tmp_path)

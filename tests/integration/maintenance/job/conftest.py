"""One Spark session in this process for all tests here; each has a namespace of its own."""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.pipeline.job import job_conf
from lakehouse_core.runtime.spark import spark_environment
from tests.integration.maintenance.job.lakes import Lake

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
    from spark_jobs.maintenance.plan import RunPlan  # noqa: PLC0415 needs pyspark
    from spark_jobs.pipeline.session import open_session  # noqa: PLC0415 as above

    (lake_config.home / "run" / "spark-tmp").mkdir(parents=True, exist_ok=True)
    conf = job_conf(lake_config, machine, rows=0)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_environment(spark_java).items():
            patch.setenv(name, value)
        # A Connect client of an earlier test would turn every function into one of Connect.
        patch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpark's own
            plan = RunPlan(run_id="tests", catalog="lake", actions=(), conf=conf)
            session = open_session(plan, "lakehelm-maintenance")
        yield session
        session.stop()


@pytest.fixture
def lake(lake_config: Config, machine: Machine, spark: SparkSession, tmp_path: Path) -> Lake:
    namespace = f"job_{next(_numbers)}"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
    return Lake(lake_config, machine, spark, namespace, tmp_path)

"""A Spark session in this process, as the jobs open theirs."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.pipeline.job import job_conf
from lakehouse_core.runtime.spark import spark_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.java import Java


@contextmanager
def spark_session(config: Config, machine: Machine, java: Java) -> Iterator[SparkSession]:
    """A session on the lake of a configuration; it takes ten seconds to start."""
    from spark_jobs.maintenance.plan import RunPlan  # noqa: PLC0415 needs pyspark
    from spark_jobs.pipeline.session import open_session  # noqa: PLC0415 as above

    (config.home / "run" / "spark-tmp").mkdir(parents=True, exist_ok=True)
    conf = job_conf(config, machine, rows=0)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_environment(java).items():
            patch.setenv(name, value)
        # A Connect client of an earlier test would turn every function into one of Connect.
        patch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpark's own
            plan = RunPlan(run_id="tests", catalog="lake", actions=(), conf=conf)
            session = open_session(plan, "lakehelm-tests")
        yield session
        session.stop()

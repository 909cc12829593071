"""The same job on a Spark Connect server: no session of its own, modules sent along."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.pipeline.service import Surroundings, run_pipeline
from tests.factories import NOW
from tests.integration.pipeline.test_stages import check, some_events

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from tests.integration.pipeline.lakes import Pipeline

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_the_job_runs_on_a_connect_server(pipeline: Pipeline, spark_server: Config) -> None:
    remote = spark_server.spark.model_copy(update={"remote": spark_server.engines["spark"].url})
    config = pipeline.config.model_copy(update={"spark": remote})
    pipeline.add(*some_events(60, seed=1))
    around = Surroundings(machine=pipeline.machine, clock=lambda: NOW + timedelta(minutes=1))
    report = run_pipeline(config, pipeline.store, around)
    assert (report.outcome, report.rows) == ("ok", 60)
    check(pipeline)

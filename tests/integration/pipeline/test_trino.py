"""The pipeline's tables are tables like any other: Trino reads the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.pipeline.test_stages import some_events
from tests.integration.runtime.test_engines_on_one_lake import ask_trino

if TYPE_CHECKING:
    from lakehouse_core.config import Config
    from tests.integration.pipeline.lakes import Pipeline

pytestmark = [
    pytest.mark.spark,
    pytest.mark.trino,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
COUNTS = {
    "query_event": "SELECT engine_id, count(*), sum(bytes_scanned) FROM {} GROUP BY 1",
    "template_hour": "SELECT engine_id, sum(runs), sum(bytes_scanned) FROM {} GROUP BY 1",
    "usage_day": "SELECT column_name || role, sum(runs), sum(bytes_scanned) FROM {} GROUP BY 1",
}


def test_trino_and_spark_agree(pipeline: Pipeline, trino_server: Config) -> None:
    pipeline.add(*some_events(80, seed=1))
    pipeline.run()
    pipeline.add(*some_events(20, seed=1, bytes_scanned=5))  # changed rows: delete files
    pipeline.run()
    for name, counts in COUNTS.items():
        sql = counts.format(pipeline.table(name))
        spark = {row[0]: (row[1], row[2]) for row in pipeline.spark.sql(sql).collect()}
        trino = {row[0]: (row[1], row[2]) for row in ask_trino(trino_server, sql)}
        assert trino == spark, name
        assert spark

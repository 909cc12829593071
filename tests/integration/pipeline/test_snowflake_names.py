"""A table that Snowflake and Trino read is one table in the pipeline's usage."""

from __future__ import annotations

from dataclasses import replace as with_fields
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from lakehouse_core.config.models import SnowflakeEngine
from lakehouse_core.domain.query import EngineId
from tests.factories import query_event

if TYPE_CHECKING:
    from tests.integration.pipeline.lakes import Pipeline

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_names_that_snowflake_folds_are_the_lakes(pipeline: Pipeline) -> None:
    snowflake = SnowflakeEngine(
        type="snowflake",
        catalog="lake",
        account="a",
        user="u",
        password=SecretStr("env:NONE"),
        lake_database="iceberg_db",
    )
    engines = {**pipeline.config.engines, "snowflake": snowflake}
    pipeline = with_fields(pipeline, config=pipeline.config.model_copy(update={"engines": engines}))
    pipeline.add(
        query_event(
            engine_id=EngineId("snowflake"),
            dialect="snowflake",
            sql_text="SELECT V FROM EVENTS WHERE ID = 1",
            default_catalog="ICEBERG_DB",
            default_namespace="DEMO",
        ),
        query_event(
            engine_id=EngineId("trino"),
            dialect="trino",
            sql_text="SELECT v FROM lake.demo.events WHERE id = 2",
        ),
    )
    pipeline.run()
    used = pipeline.rows("column_usage", "SELECT DISTINCT table_name, column_name FROM gold")
    assert {tuple(row.values()) for row in used.to_pylist()} == {
        ("lake.demo.events", "v"),
        ("lake.demo.events", "id"),
    }

"""One Spark session in this process for all tests here; each has a namespace of its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import pytest

from lakehouse_core.store.owner import OwnerStore
from tests.integration.pipeline.lakes import Pipeline
from tests.integration.sessions import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse_core.config import Config
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.java import Java

_numbers = itertools.count(1)


class NewPipeline(Protocol):
    """Makes an empty pipeline; `beside` shares the store of another."""

    def __call__(self, beside: Pipeline | None = None) -> Pipeline: ...


@pytest.fixture(scope="package")
def spark(
    lake_config: Config, machine: Machine, spark_java: Java, artifacts: list[Path]
) -> Iterator[SparkSession]:
    del artifacts
    with spark_session(lake_config, machine, spark_java) as session:
        yield session


@pytest.fixture
def new_pipeline(
    lake_config: Config, machine: Machine, spark: SparkSession, tmp_path: Path
) -> Iterator[NewPipeline]:
    stores: list[OwnerStore] = []

    def make(beside: Pipeline | None = None) -> Pipeline:
        name = f"ops_{next(_numbers)}"
        settings = lake_config.pipeline.model_copy(
            update={"namespace": name, "landing": tmp_path / name / "landing"}
        )
        config = lake_config.model_copy(update={"pipeline": settings})
        if beside is not None:
            # Nobody has loaded anything for a namespace that is new: forget the watermark.
            beside.store.transact("watermark", ["DELETE FROM watermark WHERE source = 'pipeline'"])
            return Pipeline(config, machine, beside.store, spark)
        stores.append(OwnerStore.at(tmp_path / name))
        return Pipeline(config, machine, stores[-1], spark)

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def pipeline(new_pipeline: NewPipeline) -> Pipeline:
    return new_pipeline()

"""One gateway on DuckDB for the session; its lake has the TPC-H tables."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.integration.gateway.harness import Gateway
from tests.integration.gateway.tpch import make_tpch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.config import Config
    from tests.conftest import DemoConfig


@pytest.fixture(scope="session")
def duckdb_lake(load_demo_config: DemoConfig) -> Config:
    """A lake with TPC-H that only DuckDB reads."""
    config = load_demo_config(
        None,
        LAKEHELM__ENGINES__SPARK__ENABLED="false",
        LAKEHELM__ENGINES__TRINO__ENABLED="false",
    )
    config.catalogs["lake"].warehouse.mkdir(parents=True, exist_ok=True)
    make_tpch(config)
    return config


@pytest.fixture(scope="session")
def gateway(duckdb_lake: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway before DuckDB."""
    with closing(Gateway(duckdb_lake, tmp_path_factory.mktemp("gateway"))) as served:
        yield served

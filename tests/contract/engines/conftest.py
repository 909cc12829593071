"""Each test of the suite runs once per engine of the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.engines.registry import open_engine
from tests.contract.engines.matrix import ENGINES, EngineCase
from tests.contract.engines.tables import ROWS, Table, create_table
from tests.factories import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse_core.config import Config
    from lakehouse_core.engines.base import Engine


@pytest.fixture(params=[case.param() for case in ENGINES])
def case(request: pytest.FixtureRequest) -> EngineCase:
    return request.param


@pytest.fixture
def config(case: EngineCase, request: pytest.FixtureRequest) -> Config:
    return request.getfixturevalue(case.config_fixture)


@pytest.fixture
def engine(case: EngineCase, config: Config) -> Iterator[Engine]:
    engine = open_engine(case.name, config)
    yield engine
    engine.close()


@pytest.fixture
def table(config: Config) -> Table:
    """A table with every type and some awkward values."""
    return create_table(config, ROWS)


@pytest.fixture
def dead_engine(
    case: EngineCase, load_demo_config: Callable[..., Config], tmp_path: Path
) -> Iterator[Engine]:
    """The engine, configured where there is none: nobody listens, and there is no catalog."""
    overrides = {
        f"LAKEHELM__ENGINES__{name}__PORT": str(free_port()) for name in ("SPARK", "TRINO")
    }
    engine = open_engine(case.name, load_demo_config(tmp_path / "nowhere", **overrides))
    yield engine
    engine.close()

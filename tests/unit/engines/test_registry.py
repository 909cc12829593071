"""From a name in the configuration to an adapter."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.engines.registry import open_engine

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config


def test_an_unknown_engine_is_answered_with_those_there_are(demo_config: Config) -> None:
    with pytest.raises(ConfigError, match=r"'presto'.*duckdb, spark, trino"):
        open_engine("presto", demo_config)


@pytest.mark.parametrize("name", ["duckdb", "spark", "trino"])
def test_an_engine_says_what_it_can_do_before_it_is_asked_anything(
    name: str, demo_config: Config
) -> None:
    engine = open_engine(name, demo_config)

    assert engine.engine_id == name
    assert engine.capabilities.dialect == name
    engine.close()


@pytest.mark.slow
def test_opening_engines_loads_no_driver(repository: Path) -> None:
    """Nobody waits for PySpark who only wants to know which engines there are."""
    code = (
        "import sys\n"
        "from lakehouse_core.config import load_config\n"
        "from lakehouse_core.engines.registry import open_engine\n"
        "config = load_config().config\n"
        "for name in ('spark', 'trino'): open_engine(name, config).close()\n"
        "print(sorted({'pyspark', 'grpc', 'trino'} & set(sys.modules)))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=repository
    )

    assert run.stdout.strip() == "[]"

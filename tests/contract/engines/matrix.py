"""The engines the suite runs on, as data: how each is brought up and what only it can say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


@dataclass(frozen=True, slots=True)
class EngineCase:
    """One engine.

    Attributes:
        name: its id in the demo configuration.
        mark: the marker of its tests.
        config_fixture: the fixture whose configuration it runs on.
        endless_sql: a statement that would run for hours.
        cast_error: a word its complaint about a text that is no number has.
    """

    name: str
    mark: str
    config_fixture: str
    endless_sql: str
    cast_error: str

    def param(self) -> ParameterSet:
        return pytest.param(self, id=self.name, marks=getattr(pytest.mark, self.mark))


ENGINES = (
    EngineCase(
        name="duckdb",
        mark="duckdb",
        config_fixture="demo_config",
        endless_sql="SELECT count(*) FROM range(100000000) a, range(100000) b "
        "WHERE a.range + b.range = -1",
        cast_error="Could not convert",
    ),
    EngineCase(
        name="spark",
        mark="spark",
        config_fixture="spark_server",
        endless_sql="SELECT count(*) FROM range(100000000) a, range(100000) b "
        "WHERE a.id + b.id = -1",
        cast_error="CAST_INVALID_INPUT",
    ),
    EngineCase(
        name="trino",
        mark="trino",
        config_fixture="trino_server",
        endless_sql="SELECT count(*) FROM UNNEST(sequence(1, 10000)) a (x) "
        "CROSS JOIN UNNEST(sequence(1, 10000)) b (x) "
        "CROSS JOIN UNNEST(sequence(1, 10000)) c (x) WHERE a.x + b.x + c.x = -1",
        cast_error="Cannot cast",
    ),
)

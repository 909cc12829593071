"""Sessions of the Spark engine that the server has forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import QueryFailedError
from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.spark.adapter import SparkAdapter
from lakehouse_core.engines.spark.sessions import Caller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse_core.config import Config

pytestmark = pytest.mark.spark
ONE = Statement(sql="SELECT 1 AS one", user="Zoë O'Brien; DROP", source="bi tool/7;x=y")


@pytest.fixture
def engine(spark_server: Config) -> Iterator[SparkAdapter]:
    engine = SparkAdapter(EngineId("spark"), spark_server.engines["spark"])
    yield engine
    engine.close()


def test_a_session_that_the_server_dropped_is_replaced_unnoticed(engine: SparkAdapter) -> None:
    """After an hour without a statement, or a restart, the server knows a session no more."""
    engine.execute(ONE)
    forgotten = engine._sessions.get(Caller(ONE.user, ONE.source))
    forgotten.client.release_session()

    assert engine.execute(ONE).rows.to_pylist() == [{"one": 1}]
    assert engine._sessions.get(Caller(ONE.user, ONE.source)) is not forgotten


def test_users_do_not_share_a_session(engine: SparkAdapter) -> None:
    engine.execute(Statement(sql="CREATE TEMPORARY VIEW mine AS SELECT 1 AS one", user="ana"))

    assert engine.execute(Statement(sql="SELECT * FROM mine", user="ana")).rows.num_rows == 1
    with pytest.raises(QueryFailedError, match="mine"):
        engine.execute(Statement(sql="SELECT * FROM mine", user="bruno"))

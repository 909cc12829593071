"""TPC-H through the gateway to a real Trino and a real Spark: what the engine itself says."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from trino.dbapi import connect

from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.routing.request import Request
from tests.integration.gateway.harness import Gateway
from tests.integration.gateway.tpch import make_tpch, queries

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config import Config


def only(config: Config, engine: str) -> Config:
    """The configuration with one engine that everything goes to."""
    routing = type(config.routing)()
    engines = {engine: config.engines[engine]}
    return config.model_copy(update={"engines": engines, "routing": routing, "collect": {}})


def rounded(rows: Any) -> list[list[Any]]:
    return [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]


@pytest.mark.trino
def test_trinos_rows_and_types_are_those_of_trino(trino_server: Config, tmp_path: Path) -> None:
    config = only(trino_server, "trino")
    make_tpch(config)
    port = config.engines["trino"].port
    direct = connect(host="127.0.0.1", port=port, user="ana", catalog="lake", schema="tpch")  # type: ignore[no-untyped-call]
    with closing(Gateway(config, tmp_path)) as gateway:
        through = gateway.connect()
        for number, sql in queries().items():
            ours, theirs = through.cursor(), direct.cursor()
            assert rounded(ours.execute(sql).fetchall()) == rounded(
                theirs.execute(sql).fetchall()
            ), number
            assert ours.description == theirs.description, number
        for sql in (
            "SELECT CAST('x' AS char(3)), TIMESTAMP '2020-01-01 00:00:00.123456789 Europe/Paris'",
            "SELECT MAP(ARRAY['a'], ARRAY[1.5]), ROW(1, 'x'), X'ff00', TIME '01:02:03.004'",
            "SELECT INTERVAL '2' DAY, JSON '[1]', UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'",
        ):
            ours, theirs = through.cursor(), direct.cursor()
            assert ours.execute(sql).fetchall() == theirs.execute(sql).fetchall()
            assert ours.description == theirs.description


@pytest.mark.spark
def test_sparks_rows_are_those_of_spark(spark_server: Config, tmp_path: Path) -> None:
    config = only(spark_server, "spark")
    make_tpch(config)
    with closing(Gateway(config, tmp_path)) as gateway:
        spark = gateway.port._parts.engines[EngineId("spark")]
        for number in (1, 3, 6, 13, 18):
            sql = queries()[number]
            request = Request(sql=sql, dialect="trino", user="ana", catalog="lake", schema="tpch")
            sent = gateway.run(_decided(gateway, request))
            direct = spark.execute(Statement(sql=sent, user="ana")).rows.to_pylist()
            assert rounded(gateway.rows(sql)) == rounded(row.values() for row in direct), number


async def _decided(gateway: Gateway, request: Request) -> str:
    flight = gateway.port._parts.service.decide(request)
    assert flight.decision is not None
    return flight.decision.sql

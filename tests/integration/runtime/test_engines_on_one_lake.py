"""Spark and Trino as we start them: they come up, answer, and see each other's tables."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from lakehouse_core.engines.spark.sessions import session_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.connect.session import SparkSession

    from lakehouse_core.config import Config


@pytest.fixture(scope="module")
def spark(spark_server: Config) -> Iterator[SparkSession]:
    engine = spark_server.engines["spark"]
    session = session_class()(connection=f"sc://{engine.host}:{engine.port}")
    yield session
    session.stop()


def ask_trino(config: Config, sql: str) -> list[list[Any]]:
    engine = config.engines["trino"]
    headers = {"X-Trino-User": "tester", "X-Trino-Catalog": "lake"}
    rows: list[list[Any]] = []
    with closing(http.client.HTTPConnection(engine.host, engine.port, timeout=120)) as trino:
        trino.request("POST", "/v1/statement", body=sql, headers=headers)
        while True:
            answer = json.loads(trino.getresponse().read())
            assert "error" not in answer, answer["error"]["message"]
            rows += answer.get("data", [])
            if "nextUri" not in answer:
                return rows
            path = answer["nextUri"].split(f":{engine.port}", 1)[1]
            trino.request("GET", path, headers=headers)


@pytest.mark.spark
def test_spark_connect_writes_and_reads_the_lake(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.runtime")
    spark.sql("CREATE OR REPLACE TABLE lake.runtime.ping (id INT, at TIMESTAMP) USING iceberg")
    spark.sql("INSERT INTO lake.runtime.ping VALUES (1, TIMESTAMP '2026-11-16 12:00:00')")
    assert spark.table("lake.runtime.ping").collect()[0].id == 1
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.spark
def test_spark_leaves_an_event_log_that_names_the_statement(
    spark: SparkSession, spark_server: Config
) -> None:
    import zstandard  # noqa: PLC0415 only here

    spark.sql("SELECT 4711 AS marked_for_the_event_log").collect()
    folder = spark_server.engines["spark"].event_log
    logs = list(folder.glob("eventlog_v2_*/events_*.zstd"))
    text = b""
    for log in logs:
        with log.open("rb") as raw:
            stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            text += stream.read()
    assert b"marked_for_the_event_log" in text


@pytest.mark.spark
@pytest.mark.trino
def test_trino_reads_what_spark_wrote_and_spark_what_trino_wrote(
    spark: SparkSession, trino_server: Config
) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.runtime")
    spark.sql("CREATE OR REPLACE TABLE lake.runtime.shared (id INT) USING iceberg")
    spark.sql("INSERT INTO lake.runtime.shared VALUES (1)")
    assert ask_trino(trino_server, "SELECT id FROM lake.runtime.shared") == [[1]]
    ask_trino(trino_server, "INSERT INTO lake.runtime.shared VALUES (2)")
    spark.sql("REFRESH TABLE lake.runtime.shared")
    assert {row.id for row in spark.table("lake.runtime.shared").collect()} == {1, 2}


@pytest.mark.trino
def test_trino_keeps_its_history_long_enough_for_a_collector(trino_server: Config) -> None:
    rows = ask_trino(trino_server, "SELECT count(*) FROM system.runtime.queries")
    assert rows[0][0] >= 1
    etc = trino_server.home / "trino" / "etc" / "config.properties"
    assert "query.min-expire-age=30m" in etc.read_text(encoding="utf-8")


@pytest.mark.trino
def test_no_statement_waits_until_trino_has_told_itself_its_catalogs(trino_server: Config) -> None:
    """Catalogs that are announced are unknown for the first seconds: NO_NODES_AVAILABLE."""
    engine = trino_server.engines["trino"]
    headers = {"X-Trino-User": "tester"}
    with closing(http.client.HTTPConnection(engine.host, engine.port, timeout=30)) as trino:
        trino.request("GET", "/v1/service/trino", headers=headers)
        (node,) = json.loads(trino.getresponse().read())["services"]
    assert "lake" not in node["properties"].get("catalogHandleIds", "")
    assert ["lake"] in ask_trino(trino_server, "SHOW CATALOGS")


@pytest.mark.spark
@pytest.mark.trino
def test_engines_listen_on_loopback_only(spark_server: Config, trino_server: Config) -> None:
    ports = {
        spark_server.engines["spark"].port,
        spark_server.engines["spark"].ui_port,
        trino_server.engines["trino"].port,
    }
    addresses = {
        connection.laddr.port: connection.laddr.ip
        for connection in psutil.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port in ports
    }
    assert set(addresses) == ports
    assert {ip.removeprefix("::ffff:") for ip in addresses.values()} == {"127.0.0.1"}

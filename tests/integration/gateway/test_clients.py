"""Clients that are programs of their own on a gateway before DuckDB: Trino's CLI, JDBC, dbt."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.routing.request import Request
from lakehouse_core.runtime.report import SilentReporter
from tests.integration.gateway import clients
from tests.integration.gateway.clients import Jdbc
from tests.integration.gateway.tpch import queries
from tools.trino_clients import ensure_clients

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.java import Java
    from tests.integration.gateway.harness import Gateway
    from tests.network import NetworkGuard

OIDS = {"int32": 23, "int64": 20, "string": 1043, "date32[day]": 1082, "double": 701}
WORDS = {"int32": "integer", "int64": "bigint", "string": "varchar", "date32[day]": "date"}


@pytest.fixture(scope="module")
def jars(machine: Machine, network_guard: NetworkGuard) -> tuple[Path, Path]:
    """The CLI's jar and the driver's."""
    with network_guard.opened():
        return ensure_clients(machine, SilentReporter())


def direct(gateway: Gateway, sql: str, dialect: str) -> tuple[list[str], list[list[Any]]]:
    """Types and rows of the engine itself, asked for what the gateway sends it."""
    request = Request(sql=sql, dialect=dialect, user="ana", catalog="lake", schema="tpch")
    sent = gateway.run(_decided(gateway, request))
    engine = gateway.port._parts.engines[EngineId("duckdb")]
    found = engine.execute(Statement(sql=sent, user="ana")).rows
    types = [str(kind) for kind in found.schema.types]
    return types, plain(row.values() for row in found.to_pylist())


async def _decided(gateway: Gateway, request: Request) -> str:
    flight = gateway.port._parts.service.decide(request)
    assert flight.decision is not None
    return flight.decision.sql


def plain(rows: Any) -> list[list[Any]]:
    return [[round(v, 4) if isinstance(v, float) else v for v in row] for row in rows]


def word(kind: str) -> str:
    """Trino's name of an Arrow type."""
    return WORDS.get(kind) or kind.replace("decimal128", "decimal").replace(", ", ",")


@pytest.mark.duckdb
@pytest.mark.slow
def test_tpch_over_both_protocols_has_the_engines_rows_and_types(gateway: Gateway) -> None:
    cursor = gateway.connect().cursor()
    with psycopg.connect(
        host="127.0.0.1", port=gateway.port.postgres_port, user="ana", dbname="lake",
        options="-c search_path=tpch", autocommit=True,
    ) as postgres:  # fmt: skip
        for number, sql in queries().items():
            types, rows = direct(gateway, sql, "trino")
            assert plain(cursor.execute(sql).fetchall()) == rows, number
            assert [one.type_code for one in cursor.description] == [*map(word, types)], number
            types, rows = direct(gateway, sql, "postgres")
            answer = postgres.execute(sql)
            assert plain(answer.fetchall()) == rows, number
            oids = [column.type_code for column in answer.description or ()]
            assert oids == [OIDS.get(kind, 1700) for kind in types], number


@pytest.mark.spark  # it runs where Java runs
def test_trinos_cli(gateway: Gateway, jars: tuple[Path, Path], spark_java: Java) -> None:
    script = (
        "SHOW CATALOGS; SHOW TABLES LIKE 'part%'; DESCRIBE nation; USE lake.tpch; "
        "PREPARE p FROM SELECT n_name FROM nation WHERE n_nationkey = ?; EXECUTE p USING 7; "
        "DESCRIBE OUTPUT p; DEALLOCATE PREPARE p; SET SESSION query_max_run_time = '5m'; "
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'tpch' "
        "AND table_name LIKE 'r%'; "
        "SELECT CAST(1.50 AS decimal(4,2)), DATE '2026-02-28', true, ARRAY[1, 2], 'Zoë', "
        "CAST(NULL AS varchar)"
    )
    ran = clients.cli(spark_java, jars[0], gateway, script)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[:4] == ["lake", "system", "part", "partsupp"]
    assert lines[4] == "n_nationkey,integer,,"
    described = lines[lines.index("GERMANY") + 1]
    assert described.startswith("n_name,")
    assert described.split(",")[4] == "varchar"
    assert lines[-2:] == ["region", "1.50,2026-02-28,true,[1, 2],Zoë,"]

    failed = clients.cli(spark_java, jars[0], gateway, "SELECT 1,\n  nope FROM nation")
    assert failed.code == 1
    assert "line 2:3" in failed.err
    assert "nope" in failed.err


@pytest.mark.spark  # as above
def test_the_jdbc_driver_runs_tpch(
    gateway: Gateway, jars: tuple[Path, Path], spark_java: Java
) -> None:
    with closing(Jdbc(spark_java, jars[1], gateway)) as jdbc:
        for number in (1, 3, 13, 18):
            sql = queries()[number]
            types, rows = direct(gateway, sql, "trino")
            told = jdbc.ask("query", sql)
            assert told.types == [*map(word, types)], number
            ours = [_texts(row, told.types) for row in told.rows]
            assert ours == [[str(value) for value in row] for row in rows], number
        sql = "SELECT n_name FROM nation WHERE n_nationkey = ? AND n_name <> ?"
        assert jdbc.ask("prepared", sql, "long:7", "text:it's").rows == [["GERMANY"]]
        described = jdbc.ask("described", "SELECT n_name FROM nation WHERE n_name = ?")
        assert (described.labels, described.types) == (["n_name"], ["varchar"])
        ((_, code, _, message),) = jdbc.ask("query", "SELECT nope FROM nation").rows
        assert code == "47"  # COLUMN_NOT_FOUND
        assert "line 1:8" in message


def _texts(values: list[str], types: list[str]) -> list[str]:
    return [
        str(round(float(value), 4)) if kind == "double" else value
        for value, kind in zip(values, types, strict=True)
    ]


@pytest.mark.duckdb
@pytest.mark.slow
def test_dbt_tests_its_sources_and_shows_rows(gateway: Gateway, tmp_path: Path) -> None:
    ran = clients.dbt(gateway, "dbt", tmp_path, "test", "--select", "source:*")
    assert ran.code == 0, ran.out
    ended = clients.dbt_results(tmp_path)
    assert set(ended.values()) == {"pass"}
    assert "source_unique_tpch_nation_n_nationkey" in ended
    shown = clients.dbt(
        gateway, "dbt", tmp_path, "show", "--inline",
        "SELECT n_name FROM {{ source('tpch', 'nation') }} WHERE n_nationkey = 7",
    )  # fmt: skip
    assert "GERMANY" in shown.out, shown.out

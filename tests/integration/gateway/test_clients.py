"""TPC-H over both protocols as DuckDB itself answers it, and dbt as a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from lakehouse_core.domain.query import EngineId
from lakehouse_core.engines.base import Statement
from lakehouse_core.routing.request import Request
from tests.integration.gateway import clients
from tests.integration.gateway.tpch import queries

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.gateway.harness import Gateway

OIDS = {"int32": 23, "int64": 20, "string": 1043, "date32[day]": 1082, "double": 701}
WORDS = {"int32": "integer", "int64": "bigint", "string": "varchar", "date32[day]": "date"}


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

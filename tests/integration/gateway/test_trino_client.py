"""The official Trino client through the gateway to DuckDB, which speaks no Trino."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from trino.exceptions import TrinoQueryError, TrinoUserError

from lakehouse_core.engines.base import Statement
from lakehouse_core.engines.registry import open_engine
from lakehouse_core.routing.request import Request
from tests.integration.gateway.tpch import queries

if TYPE_CHECKING:
    from tests.integration.gateway.harness import Gateway

pytestmark = [pytest.mark.duckdb, pytest.mark.slow]


def test_rows_and_types_arrive_as_they_are(gateway: Gateway) -> None:
    connection = gateway.connect()
    cursor = connection.cursor()
    cursor.execute(
        """SELECT 1 AS n, CAST(2 AS bigint) AS b, CAST('1.50' AS decimal(12,2)) AS d,
        date '2026-02-28' AS day, timestamp '2026-03-29 02:30:00.000001' AS at,
        'Zoë "x"' AS text, true AS ok, CAST(NULL AS varchar) AS nothing, 0.5e0 AS half"""
    )
    (row,) = cursor.fetchall()
    assert row[:8] == [
        1, 2, Decimal("1.50"), date(2026, 2, 28), datetime(2026, 3, 29, 2, 30, 0, 1),  # noqa: DTZ001
        'Zoë "x"', True, None,
    ]  # fmt: skip
    types = [column.type_code for column in cursor.description]
    assert types[:7] == [
        "integer", "bigint", "decimal(12,2)", "date", "timestamp(6)", "varchar", "boolean",
    ]  # fmt: skip


def test_all_tpch_queries_give_what_duckdb_gives(gateway: Gateway) -> None:
    with closing(open_engine("duckdb", gateway.config)) as engine:
        for number, sql in queries().items():
            decided = gateway.run(_decided(gateway, sql))
            direct = engine.execute(Statement(sql=decided, user="ana")).rows
            assert _plain(gateway.rows(sql)) == _plain(
                [list(row.values()) for row in direct.to_pylist()]
            ), number


async def _decided(gateway: Gateway, sql: str) -> str:
    """What the gateway sends for a statement."""
    request = Request(sql=sql, dialect="trino", user="ana", catalog="lake", schema="tpch")
    flight = gateway.port._parts.service.decide(request)
    assert flight.decision is not None
    return flight.decision.sql


def _plain(rows: list[Any]) -> list[list[Any]]:
    return [[_value(value) for value in row] for row in rows]


def _value(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def test_a_large_result_is_paged(gateway: Gateway) -> None:
    rows = gateway.rows("SELECT l_orderkey, l_comment FROM lineitem")
    assert len(rows) == 60175
    assert len({tuple(row) for row in rows}) > 50_000


def test_prepared_statements(gateway: Gateway) -> None:
    sql = "SELECT n_name FROM nation WHERE n_nationkey = ? AND n_name <> ?"
    assert gateway.rows(sql, 7, "it's") == [["GERMANY"]]
    connection = gateway.connect(legacy_prepared_statements=True)
    cursor = connection.cursor()
    assert cursor.execute(sql, [7, "x"]).fetchall() == [["GERMANY"]]


def test_session_properties_and_use(gateway: Gateway) -> None:
    connection = gateway.connect(schema=None, catalog=None)
    cursor = connection.cursor()
    cursor.execute("USE lake.tpch").fetchall()
    cursor.execute("SET SESSION query_max_run_time = '5m'").fetchall()
    assert connection._client_session.properties == {"query_max_run_time": "5m"}
    assert cursor.execute("SELECT count(*) FROM nation").fetchall() == [[25]]


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT nope FROM nation", "COLUMN_NOT_FOUND"),
        ("SELECT 1 FROM no_such_table", "TABLE_NOT_FOUND"),
        ("SELEC 1", "SYNTAX_ERROR"),
        ("EXECUTE missing", "NOT_FOUND"),
        ("START TRANSACTION", "NOT_SUPPORTED"),
        ("", "SYNTAX_ERROR"),
    ],
)
def test_errors_have_trinos_names(gateway: Gateway, sql: str, name: str) -> None:
    with pytest.raises((TrinoUserError, TrinoQueryError)) as caught:
        gateway.rows(sql)
    assert caught.value.error_name == name
    assert "lakehouse_core" not in str(caught.value)


def test_names_are_told_whichever_engine_serves(gateway: Gateway) -> None:
    assert ["tpch"] in gateway.rows("SHOW SCHEMAS FROM lake")
    assert ["lake"] in gateway.rows("SHOW CATALOGS")
    assert gateway.rows("SHOW TABLES LIKE 'part%'") == [["part"], ["partsupp"]]
    described = gateway.rows("DESCRIBE nation")
    assert described[0][:2] == ["n_nationkey", "integer"]
    found = gateway.rows(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
        "tpch",
        "region",
    )
    assert found[1] == ["r_name", "varchar"]
    jdbc = gateway.rows("SELECT TABLE_NAME FROM system.jdbc.tables WHERE TABLE_SCHEM = 'tpch'")
    assert ["lineitem"] in jdbc
    with pytest.raises(TrinoUserError, match="does not exist"):
        gateway.rows("DESCRIBE tpch.no_such_table")


def test_the_session_and_definitions_are_told_whichever_engine_serves(gateway: Gateway) -> None:
    connection = gateway.connect(session_properties={"query_max_run_time": "5m"})
    rows = connection.cursor().execute("SHOW SESSION").fetchall()
    assert [row[:2] for row in rows] == [["query_max_run_time", "5m"]]
    ((told,),) = gateway.rows("SHOW CREATE TABLE nation")
    assert told.startswith("CREATE TABLE lake.tpch.nation (\n   n_nationkey integer")
    with pytest.raises(TrinoUserError, match="does not exist"):
        gateway.rows("SHOW CREATE TABLE no_such_table")


def test_the_engine_is_asked_for_its_functions(gateway: Gateway) -> None:
    cursor = gateway.connect().cursor()
    rows = cursor.execute("SHOW FUNCTIONS LIKE 'regexp%'").fetchall()
    assert [column.name for column in cursor.description] == [
        "Function", "Return Type", "Argument Types", "Function Type", "Deterministic",
        "Description",
    ]  # fmt: skip
    found = [row for row in rows if row[0] == "regexp_matches"]
    assert found[0][:5] == ["regexp_matches", "BOOLEAN", "VARCHAR, VARCHAR", "scalar", True]
    assert all(row[0].startswith("regexp") for row in rows)
    assert len(gateway.rows("SHOW FUNCTIONS")) > 500


def test_an_engine_explains_what_it_would_get(gateway: Gateway) -> None:
    mark = f"mark{datetime.now(UTC).timestamp():.6f}"
    (row,) = gateway.rows(f"EXPLAIN SELECT n_name FROM nation WHERE n_comment <> '{mark}'")  # noqa: S608
    assert row[0] == "physical_plan"
    assert "n_comment" in row[1]
    prepared = "EXPLAIN (TYPE LOGICAL) SELECT n_name FROM nation WHERE n_nationkey = ?"
    assert gateway.rows(prepared, 7)[0][0] == "physical_plan"
    with pytest.raises(TrinoUserError, match="may run the statement"):
        gateway.rows("EXPLAIN ANALYZE SELECT n_name FROM nation")
    gateway.run(gateway.port._parts.recorder.close())
    gateway.port._parts.recorder._is_closing.clear()
    (event,) = [row for row in gateway.records("query_event") if mark in row["sql_text"]]
    assert (event["statement_kind"], event["status"]) == ("explain", "finished")


def test_every_query_is_recorded_once(gateway: Gateway) -> None:
    mark = f"mark{datetime.now(UTC).timestamp():.6f}"
    gateway.rows(f"SELECT count(*) AS c FROM nation WHERE n_comment <> '{mark}'")  # noqa: S608
    with pytest.raises(TrinoUserError):
        gateway.rows(f"SELECT nope AS c FROM nation WHERE n_comment <> '{mark}'")  # noqa: S608
    gateway.run(gateway.port._parts.recorder.close())
    gateway.port._parts.recorder._is_closing.clear()
    events = [row for row in gateway.records("query_event") if mark in row["sql_text"]]
    assert sorted(row["status"] for row in events) == ["failed", "finished"]
    done = next(row for row in events if row["status"] == "finished")
    assert (done["user_name"], done["source"], done["reporter"]) == ("ana", "tests", "gateway")
    assert done["rows_returned"] == 1
    assert done["snapshot_ids"]
    assert done["bytes_scanned"] > 0
    decisions = {row["gateway_id"]: row for row in gateway.records("routing_decision")}
    routed = decisions[done["gateway_id"]]
    assert routed["engine_id"] == "duckdb"
    assert routed["query_id"] == done["query_id"]
    assert min(routed[f"{phase}_ms"] for phase in ("decision", "queue", "engine", "fetch")) >= 0
    assert '"stage": "strategy"' in routed["trace"]
    audits = {row["action_id"]: row for row in gateway.records("query_audit")}
    assert audits[done["gateway_id"]]["verb"] == "finished"

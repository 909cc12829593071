"""PostgreSQL's clients on the gateway: psycopg and psql, and clients that do not behave."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.gateway.harness import Gateway

pytestmark = pytest.mark.slow
LONG = (
    "SELECT count(*) FROM lake.tpch.lineitem a, lake.tpch.lineitem b, lake.tpch.lineitem c "
    "WHERE a.l_comment < b.l_comment AND b.l_comment < c.l_comment"
)


@pytest.fixture
def port(gateway: Gateway) -> int:
    return gateway.port.postgres_port


@pytest.fixture
def client(port: int) -> Iterator[psycopg.Connection[Any]]:
    with connect(port) as connection:
        yield connection


def connect(port: int, **given: Any) -> psycopg.Connection[Any]:
    values = {"host": "127.0.0.1", "port": port, "user": "ana", "dbname": "lake"}
    return psycopg.connect(**{**values, **given}, autocommit=True)


def test_rows_and_types_are_those_of_the_engine(
    gateway: Gateway, client: psycopg.Connection[Any]
) -> None:
    sql = "SELECT * FROM lake.tpch.orders ORDER BY o_orderkey LIMIT 50"
    for binary in (False, True):
        cursor = client.cursor(binary=binary)
        assert cursor.execute(sql).fetchall() == [tuple(row) for row in gateway.rows(sql)]
        kinds = [column.type_code for column in cursor.description or ()]
        assert kinds[:5] == [20, 20, 1043, 1700, 1082]


def test_a_session_names_its_engine(client: psycopg.Connection[Any]) -> None:
    client.execute("SET lakehelm.engine = 'duckdb'")
    assert client.execute("SELECT 1").fetchall() == [(1,)]
    client.execute("SET lakehelm.engine = 'nobody'")
    with pytest.raises(psycopg.Error, match=r"no engine 'nobody'; there are .*duckdb"):
        client.execute("SELECT 1")
    client.execute("RESET lakehelm.engine")
    assert client.execute("SELECT 1").fetchall() == [(1,)]


def test_the_engine_explains_a_statement(client: psycopg.Connection[Any]) -> None:
    sql = "EXPLAIN SELECT n_name FROM lake.tpch.nation WHERE n_nationkey = 7"
    ((_, plan),) = client.execute(sql).fetchall()
    assert "n_nationkey" in plan


def test_parameters_reach_the_engine_as_values(client: psycopg.Connection[Any]) -> None:
    found = client.execute(
        "SELECT count(*) FROM lake.tpch.orders WHERE o_orderdate < %s AND o_totalprice > %s "
        "AND o_clerk <> %s AND o_orderkey <> %s",
        (date(1995, 1, 1), Decimal("1000.50"), "x' OR '1'='1", 7),
    ).fetchone()
    direct = client.execute(
        "SELECT count(*) FROM lake.tpch.orders WHERE o_orderdate < DATE '1995-01-01' AND "
        "o_totalprice > 1000.50 AND o_clerk <> 'x'' OR ''1''=''1' AND o_orderkey <> 7"
    ).fetchone()
    assert found == direct


def test_a_prepared_statement_runs_again_and_again(client: psycopg.Connection[Any]) -> None:
    for key in (1, 2, 3):
        row = client.execute(
            "SELECT n_name FROM lake.tpch.nation WHERE n_nationkey = %s", (key,), prepare=True
        ).fetchone()
        assert row is not None
    assert row == ("CANADA",)


def test_several_statements_of_one_text(client: psycopg.Connection[Any]) -> None:
    cursor = client.execute("SELECT 1; SELECT 'b' AS x")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.fetchall() == [("b",)]


def test_an_error_has_its_state_and_the_session_goes_on(client: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn, match="nope"):
        client.execute("SELECT nope FROM lake.tpch.nation")
    assert client.execute("SELECT 1").fetchone() == (1,)


def test_a_failed_transaction_wants_a_rollback(port: int) -> None:
    with connect(port) as client:
        client.autocommit = False
        with pytest.raises(psycopg.Error):
            client.execute("SELECT nope FROM lake.tpch.nation")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            client.execute("SELECT 1")
        client.rollback()
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_cancel_stops_the_query_on_the_engine(gateway: Gateway, port: int) -> None:
    with connect(port) as client:
        threading.Timer(1.0, client.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute(LONG)
        assert client.execute("SELECT 1").fetchone() == (1,)
    assert _is_idle(gateway)


def test_a_client_that_hangs_up_leaves_nothing_running(gateway: Gateway, port: int) -> None:
    raw = _started(port)
    raw.sendall(_message(b"Q", LONG.encode() + b"\0"))
    assert _until(lambda: gateway.port.service.running == 1)
    raw.close()
    assert _is_idle(gateway)


def test_a_result_is_sent_in_parts_as_asked(port: int) -> None:
    raw = _started(port)
    text = b"SELECT l_orderkey FROM lake.tpch.lineitem LIMIT 25"
    raw.sendall(
        _message(b"P", b"\0" + text + b"\0" + struct.pack("!h", 0))
        + _message(b"B", b"\0\0" + struct.pack("!hhh", 0, 0, 0))
        + _message(b"E", b"\0" + struct.pack("!i", 10))
        + _message(b"E", b"\0" + struct.pack("!i", 10))
        + _message(b"E", b"\0" + struct.pack("!i", 10))
        + _message(b"S", b"")
    )
    kinds = _kinds(raw, until=b"Z")
    assert kinds == b"12" + b"D" * 10 + b"s" + b"D" * 10 + b"s" + b"D" * 5 + b"CZ"
    raw.close()


def test_a_statement_is_described_without_its_parameters(port: int) -> None:
    raw = _started(port)
    text = b"SELECT n_name FROM lake.tpch.nation WHERE n_nationkey = $1"
    raw.sendall(
        _message(b"P", b"s\0" + text + b"\0" + struct.pack("!hi", 1, 23))
        + _message(b"D", b"Ss\0")
        + _message(b"S", b"")
    )
    assert _kinds(raw, until=b"Z") == b"1tTZ"
    raw.close()


@pytest.mark.parametrize(
    "sql",
    [
        # What psql, JDBC, DBeaver, Tableau, Metabase and SQLAlchemy ask before anything else.
        "SELECT version()",
        "select current_schema()",
        "SHOW transaction_isolation",
        "show standard_conforming_strings",
        "SET extra_float_digits = 3",
        "SELECT current_database(), current_user, session_user",
        "SELECT oid, typname FROM pg_type WHERE typname = 'hstore'",
        "SELECT n.nspname FROM pg_catalog.pg_namespace n ORDER BY 1",
        (
            "SELECT c.oid, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
            "ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v', 'm') AND n.nspname = 'tpch'"
        ),
        (
            "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) FROM "
            "pg_catalog.pg_attribute a WHERE a.attrelid = 'tpch.nation'::regclass AND a.attnum > 0"
        ),
        "SELECT * FROM pg_catalog.pg_enum",
        "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'max_index_keys'",
        "SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn",
        "SELECT table_schema, table_name FROM information_schema.tables",
        "SELECT pg_is_in_recovery()",
        "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'ana'",
        "DISCARD ALL",
    ],
)
def test_what_tools_ask_when_they_connect_is_answered(
    client: psycopg.Connection[Any], sql: str
) -> None:
    client.execute(sql)


def test_names_are_those_of_the_lake(client: psycopg.Connection[Any]) -> None:
    found = client.execute(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'tpch' AND table_name = 'nation' ORDER BY ordinal_position"
    ).fetchall()
    assert found[:2] == [("n_nationkey", "integer"), ("n_name", "character varying")]
    schemas = client.execute("SELECT nspname FROM pg_namespace").fetchall()
    assert ("tpch",) in schemas
    assert ("main",) not in schemas


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "root:"),
        ("SELECT pg_backend_pid(), (SELECT content FROM read_text('/etc/passwd'))", "root:"),
        ("COPY (SELECT 1) TO '/tmp/x'", ""),
        ("ATTACH '/tmp/x.db'", ""),
    ],
)
def test_no_file_is_read_through_either_path(
    client: psycopg.Connection[Any], sql: str, kept: str
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        client.execute(sql)
    assert not kept or kept not in str(caught.value)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (r"\dt tpch.*", "lineitem"),
        (r"\d tpch.nation", "n_regionkey"),
        (r"\d tpch.nation", "character varying"),
        (r"\d tpch.orders", "numeric(15,2)"),
        (r"\d+ tpch.nation", "n_regionkey"),
        (r"\dn", "tpch"),
        (r"\l", "lake"),
        (r"\du", "ana"),
        ("SELECT n_name FROM lake.tpch.nation WHERE n_nationkey = 3", "CANADA"),
    ],
)
def test_psql_shows_the_lake(port: int, command: str, expected: str) -> None:
    ran = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(port), "-U", "ana", "lake", "-c", command],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PGSSLMODE": "prefer"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert expected in ran.stdout


def test_an_unknown_database_is_named(port: int) -> None:
    with pytest.raises(psycopg.OperationalError, match=r'database "nowhere" does not exist.*lake'):
        connect(port, dbname="nowhere")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200), has_started=st.booleans())
def test_no_message_brings_the_port_down(port: int, data: bytes, has_started: bool) -> None:
    raw = _started(port) if has_started else socket.create_connection(("127.0.0.1", port))
    with raw:
        raw.settimeout(5)
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        try:
            while raw.recv(65_536):
                pass
        except ConnectionResetError:
            pass


def test_after_all_that_it_still_serves(client: psycopg.Connection[Any]) -> None:
    assert client.execute("SELECT 1").fetchone() == (1,)


def test_every_statement_is_recorded_with_its_protocol(
    gateway: Gateway, client: psycopg.Connection[Any]
) -> None:
    client.execute("SELECT 'recorded over the wire' AS x")

    def found() -> list[dict[str, Any]]:
        rows = gateway.records("query_event")
        return [row for row in rows if "recorded over the wire" in str(row["sql_text"])]

    assert _until(lambda: bool(found()))
    assert found()[0]["user_name"] == "ana"


# --- raw connections


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _started(port: int) -> socket.socket:
    raw = socket.create_connection(("127.0.0.1", port), timeout=20)
    body = struct.pack("!i", 196_608) + b"user\0ana\0database\0lake\0\0"
    raw.sendall(struct.pack("!i", len(body) + 4) + body)
    assert _kinds(raw, until=b"Z").endswith(b"KZ")
    return raw


def _kinds(raw: socket.socket, until: bytes) -> bytes:
    """The kinds of the messages that come, up to one of a kind."""
    kinds, stream = b"", raw.makefile("rb", buffering=0)
    while not kinds.endswith(until):
        kinds += _exactly(stream, 1)
        _exactly(stream, struct.unpack("!i", _exactly(stream, 4))[0] - 4)
    return kinds


def _exactly(stream: Any, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = stream.read(count - len(data))
        assert part, "the gateway hung up"
        data += part
    return data


def _until(condition: Any, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def _is_idle(gateway: Gateway) -> bool:
    return _until(lambda: gateway.port.service.running == 0)

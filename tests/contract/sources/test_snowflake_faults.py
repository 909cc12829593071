"""What Snowflake can do to us, and what we make of it."""

from __future__ import annotations

import gzip
import json
import sys
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from agents.collect import CollectReport, run_once
from collectors.snowflake.config import Credentials
from lakehouse_core.domain.errors import (
    ConfigError,
    NotInstalledError,
    SourceError,
    SourceUnavailableError,
)
from tests.contract.sources.coordinator import answer
from tests.contract.sources.snowflake_world import SnowflakeWorld, query, snowflake_source
from tests.contract.sources.tallies import letters
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

    from lakehouse_core.store.owner import OwnerStore

    Fault = Callable[[str, bytes, BaseHTTPRequestHandler], bool]

pytestmark = pytest.mark.snowflake
LOGIN, QUERY = "/session/v1/login-request", "/queries/v1/query-request"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SnowflakeWorld]:
    made = SnowflakeWorld(tmp_path)
    yield made
    made.close()


def collect(world: SnowflakeWorld, store: OwnerStore, **changes: Any) -> CollectReport:
    source = snowflake_source(world.place, now=world.now, **changes)
    return run_once(source, store, lambda: NOW, timeout=timedelta(minutes=1))


def stored(store: OwnerStore) -> set[str]:
    return set(store.read("SELECT query_id FROM query_event").column("query_id").to_pylist())


def on(path: str, code: int, body: bytes | dict[str, Any], text: bytes = b"") -> Fault:
    """A fault that answers one path, when the statement holds a text."""

    def fault(asked: str, sent: bytes, handler: BaseHTTPRequestHandler) -> bool:
        plain = gzip.decompress(sent) if sent[:2] == b"\x1f\x8b" else sent
        if asked != path or text not in plain:
            return False
        reply = json.dumps(body).encode() if isinstance(body, dict) else body
        return answer(handler, code, reply, Content_Type="application/json")

    return fault


def refusal(code: str, message: str) -> dict[str, Any]:
    return {"data": {}, "code": code, "message": message, "success": False}


# --- refusals and troubles -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        on(LOGIN, 503, b"busy"),
        on(QUERY, 429, b"slow down"),
        on(QUERY, 503, b"busy"),
        on(QUERY, 500, b"boom"),
        on(QUERY, 200, b"<html>"),
        on(QUERY, 200, b"\xff\xfe"),
    ],
)
def test_trouble_is_tried_again_later(world: SnowflakeWorld, fault: Fault) -> None:
    world.wire.fault = fault
    source = snowflake_source(world.place, statement_timeout=timedelta(seconds=2))
    with pytest.raises(SourceUnavailableError, match="does not answer") as caught:
        list(source.pull(None))
    assert world.place in str(caught.value)


def test_an_account_that_never_answers_is_given_up(world: SnowflakeWorld) -> None:
    world.wire.fault = lambda path, _body, _handler: path == QUERY and world.wire.release.wait(30)
    source = snowflake_source(
        world.place,
        login_timeout=timedelta(seconds=1),
        statement_timeout=timedelta(seconds=1),
    )
    with pytest.raises(SourceUnavailableError, match="does not answer"):
        list(source.pull(None))


COLUMN = {"name": "HOUR", "type": "timestamp_ltz", "nullable": True, "scale": 9, "precision": 0,
    "length": None, "byteLength": None}  # fmt: skip


@pytest.mark.parametrize("column", [COLUMN, {"name": "HOUR"}])
def test_an_answer_without_sense_is_told(world: SnowflakeWorld, column: dict[str, Any]) -> None:
    data = {"rowtype": [column], "queryResultFormat": "arrow", "rowsetBase64": "Z2FyYmFnZQ==",
        "total": 1, "queryId": "q", "parameters": []}  # fmt: skip
    world.wire.fault = on(QUERY, 200, {"data": data, "success": True})
    with pytest.raises(SourceError, match="QUERY_HISTORY"):
        list(snowflake_source(world.place).pull(None))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            on(LOGIN, 200, refusal("390100", "Incorrect username or password s3cr3t")),
            "not accepted",
        ),
        (on(LOGIN, 200, refusal("390318", "OAuth access token expired. s3cr3t")), "expired; renew"),
        (on(LOGIN, 200, refusal("390144", "JWT token is invalid. s3cr3t")), "not accepted"),
        (on(QUERY, 200, refusal("000606", "No active warehouse selected")), "set warehouse"),
        (on(QUERY, 200, refusal("002140", "Unknown function HOUR")), "Unknown function"),
    ],
)
def test_a_refusal_says_what_to_do_and_no_secret(
    world: SnowflakeWorld, fault: Fault, said: str
) -> None:
    world.wire.fault = fault
    credentials = Credentials(password="s3cr3t")
    source = snowflake_source(
        world.place, credentials=credentials, statement_timeout=timedelta(seconds=2)
    )
    with pytest.raises(SourceError, match=said) as caught:
        list(source.pull(None))
    assert "s3cr3t" not in f"{caught.value} {credentials}"


def test_a_session_that_expires_half_way_is_told(world: SnowflakeWorld, store: OwnerStore) -> None:
    world.run(1)
    expired = refusal("390114", "Authentication token has expired. The user must log in again.")
    world.wire.fault = on(QUERY, 200, expired, text=b"WAREHOUSE_METERING_HISTORY")
    report = collect(world, store)
    assert report.error is not None
    assert "expired" in report.error
    assert len(stored(store)) == 1  # what came before is kept


def test_without_the_connector_it_says_what_to_install(
    world: SnowflakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "snowflake.connector", None)
    with pytest.raises(NotInstalledError, match=r"lakehelm\[snowflake\]"):
        list(snowflake_source(world.place).pull(None))


def test_a_key_that_is_none_is_told_without_it(world: SnowflakeWorld) -> None:
    source = snowflake_source(world.place, credentials=Credentials(private_key="s3cr3t"))
    with pytest.raises(ConfigError, match="private_key is no PEM key") as caught:
        list(source.pull(None))
    assert "s3cr3t" not in str(caught.value)


def test_a_key_pair_and_a_token_open_the_door_too(world: SnowflakeWorld, store: OwnerStore) -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 the connector's
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 as above

    pem = rsa.generate_private_key(65_537, 2_048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pass"),
    )
    world.run(1)
    seen: list[dict[str, Any]] = []

    def look(path: str, body: bytes, _handler: BaseHTTPRequestHandler) -> bool:
        if path == LOGIN:
            seen.append(json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body))
        return False

    world.wire.fault = look
    pair = Credentials(private_key=pem.decode(), passphrase="pass")
    assert collect(world, store, credentials=pair).error is None
    assert collect(world, store, credentials=Credentials(oauth_token="token")).error is None
    ways = [login["data"].get("AUTHENTICATOR") for login in seen]
    assert ways == ["SNOWFLAKE_JWT", "OAUTH"]


# --- views ---------------------------------------------------------------------------------------


def fill(world: SnowflakeWorld, query_id: str) -> None:
    account = world.account
    account.add(
        "WAREHOUSE_METERING_HISTORY",
        START_TIME=NOW,
        WAREHOUSE_ID=1,
        WAREHOUSE_NAME="BI_WH",
        CREDITS_USED="1.012345678",
        CREDITS_USED_COMPUTE="1.000000000",
        CREDITS_USED_CLOUD_SERVICES="0.012345678",
        CREDITS_ATTRIBUTED_COMPUTE_QUERIES="0.700000000",
    )
    account.add(
        "QUERY_ATTRIBUTION_HISTORY",
        QUERY_ID=query_id,
        ROOT_QUERY_ID=query_id,
        WAREHOUSE_NAME="BI_WH",
        START_TIME=NOW,
        END_TIME=NOW + timedelta(seconds=1),
        CREDITS_ATTRIBUTED_COMPUTE=0.7,
    )
    touched = [{"objectName": "LAKE.DEMO.T", "columns": [{"columnName": "V"}]}]
    account.add(
        "ACCESS_HISTORY",
        QUERY_ID=query_id,
        QUERY_START_TIME=NOW,
        BASE_OBJECTS_ACCESSED=json.dumps(touched),
    )


def test_credits_charges_and_accesses_arrive_beside_the_queries(
    world: SnowflakeWorld, store: OwnerStore
) -> None:
    query_id = world.run(1)
    fill(world, query_id)
    assert collect(world, store).error is None
    metered = store.read("SELECT meter, hour, quantity, attributed FROM metering ORDER BY meter")
    assert [tuple(row.values()) for row in metered.to_pylist()] == [
        ("cloud_services", NOW, Decimal("0.012345678"), None),
        ("compute", NOW, Decimal(1), Decimal("0.7")),
    ]
    charged = store.read("SELECT query_id, credits, resource FROM query_attribution").to_pylist()
    assert [tuple(row.values()) for row in charged] == [(query_id, Decimal("0.7"), "BI_WH")]
    touched = store.read("SELECT table_name, column_name, access FROM query_access").to_pylist()
    assert [tuple(row.values()) for row in touched] == [("lake.demo.t", "v", "read")]
    assert collect(world, store).rows == 0
    assert letters(store) == []


def test_a_view_without_privilege_is_told_once_and_stops_no_other(
    world: SnowflakeWorld, store: OwnerStore
) -> None:
    query_id = world.run(1)
    fill(world, query_id)
    world.account.drop("WAREHOUSE_METERING_HISTORY")
    report = collect(world, store, role="LAKEHELM")
    assert report.error is None
    assert stored(store) == {query_id}
    assert store.read("FROM query_attribution").num_rows == 1
    assert store.read("FROM query_access").num_rows == 1
    (letter,) = letters(store)
    assert "WAREHOUSE_METERING_HISTORY" in letter
    assert "role LAKEHELM" in letter
    assert "IMPORTED PRIVILEGES" in letter
    assert collect(world, store, role="LAKEHELM").dead_letters == 0


def test_without_the_history_of_queries_the_source_is_broken_and_the_rest_is_read(
    world: SnowflakeWorld, store: OwnerStore
) -> None:
    fill(world, "q1")
    world.account.drop("QUERY_HISTORY")
    report = collect(world, store)
    assert report.error is not None
    assert "QUERY_HISTORY" in report.error
    assert store.read("FROM metering").num_rows == 2


def test_credits_that_are_restated_replace_the_old_ones(
    world: SnowflakeWorld, store: OwnerStore
) -> None:
    fill(world, world.run(1))
    collect(world, store)
    world.account.run(
        "UPDATE SNOWFLAKE.ACCOUNT_USAGE.WAREHOUSE_METERING_HISTORY SET "
        "CREDITS_USED_COMPUTE = 1.5, CREDITS_USED = 1.512345678"
    )
    collect(world, store)
    found = store.read("SELECT quantity FROM metering WHERE meter = 'compute'").to_pylist()
    assert [row["quantity"] for row in found] == [Decimal("1.5")]


def test_a_database_with_quotes_in_its_name_is_a_name(world: SnowflakeWorld) -> None:
    name = 'X"; DROP TABLE SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY; --'
    world.run(1)
    with pytest.raises(SourceError):
        list(snowflake_source(world.place, database=name).pull(None))
    assert any("query_event" in b.rows for b in snowflake_source(world.place).pull(None))


# --- rows ----------------------------------------------------------------------------------------


def test_only_hours_that_changed_are_read_again(world: SnowflakeWorld, store: OwnerStore) -> None:
    for number in range(6):
        world.run(number, at=NOW - timedelta(hours=8 + number))
    collect(world, store)
    world.run(9, at=NOW - timedelta(hours=30))  # late by more than a day
    statements: list[str] = []

    def look(path: str, body: bytes, _handler: BaseHTTPRequestHandler) -> bool:
        if path == QUERY:
            plain = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
            statements.append(json.loads(plain)["sqlText"])
        return False

    world.wire.fault = look
    collect(world, store)
    assert len(stored(store)) == 7
    assert sum("QUERY_TEXT" in sql for sql in statements) == 1  # one hour of seven


def test_a_pull_that_is_cut_goes_on_where_it_was_cut(
    world: SnowflakeWorld, store: OwnerStore
) -> None:
    for number in range(12):
        world.run(number, at=NOW - timedelta(hours=12 - number))
    pulls = 0
    while len(stored(store)) < 12:
        source = snowflake_source(world.place)
        run_once(source, store, lambda: NOW, timeout=timedelta(0))
        pulls += 1
        assert pulls <= 12, "it does not get on"
    assert pulls > 1
    assert collect(world, store).error is None
    assert len(stored(store)) == 12


def test_a_query_of_a_week_arrives_when_it_ends(world: SnowflakeWorld, store: OwnerStore) -> None:
    collect(world, store)
    row = query("long", NOW - timedelta(days=7), "SELECT 1")
    row |= {"EXECUTION_STATUS": "SUCCESS", "END_TIME": NOW - timedelta(minutes=50)}
    world.account.add("QUERY_HISTORY", **row)
    collect(world, store)
    assert stored(store) == {"long"}


def test_the_same_row_twice_is_one_row(world: SnowflakeWorld, store: OwnerStore) -> None:
    world.run(1)
    world.account.run(
        "INSERT INTO SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY "
        "SELECT * FROM SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY"
    )
    collect(world, store)
    assert store.read("FROM query_event").num_rows == 1


def test_five_megabytes_of_sql_are_taken(world: SnowflakeWorld, store: OwnerStore) -> None:
    text = "SELECT '" + "x" * 5_000_000 + "' FROM lake.demo.t"
    world.account.add("QUERY_HISTORY", **query("big", NOW, text) | {"EXECUTION_STATUS": "FAIL"})
    assert collect(world, store).error is None
    kept = store.read("SELECT length(sql_text) AS n FROM query_event").column("n")[0].as_py()
    assert kept == len(text)


def test_a_secret_in_a_query_does_not_reach_the_store(
    world: SnowflakeWorld, store: OwnerStore
) -> None:
    world.account.add("QUERY_HISTORY", **query("q", NOW, "CREATE USER bob PASSWORD = 'c4n4ry'"))
    world.account.add(
        "QUERY_HISTORY",
        **query("r", NOW, "ALTER USER bob SET PASSWORD = 'c4n4ry'") | {"EXECUTION_STATUS": "?"},
    )
    collect(world, store)
    for table in ("query_event", "watermark", "query_template", "dead_letter"):
        rows = store.read(f"FROM {table}").to_pylist()
        assert "c4n4ry" not in json.dumps(rows, default=str)
    assert store.read("FROM dead_letter").num_rows == 1

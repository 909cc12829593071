from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_core.sql.redaction import MASK, redact

CANARY = "c4n4ry"


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", f"CREATE SECRET s (TYPE s3, KEY_ID '{CANARY}', SECRET '{CANARY}')"),
        ("duckdb", f"SET s3_secret_access_key='{CANARY}'"),
        ("duckdb", f"PRAGMA add_parquet_key('k', '{CANARY}')"),
        ("duckdb", f"ATTACH 'postgres://ana:{CANARY}@host/db' AS pg"),
        ("duckdb", f"SELECT * FROM postgres_scan('host=h password={CANARY}', 'a', 'b')"),  # noqa: S608 never run
        ("spark", f"SET spark.hadoop.fs.s3a.secret.key={CANARY}"),
        ("spark", f"SET fs.s3a.secret.key = {CANARY}-{CANARY}/x"),
        ("spark", f'CREATE TABLE t USING jdbc OPTIONS (password "{CANARY}", url "x")'),
        ("trino", f"CREATE CATALOG x USING pg WITH (\"connection-password\" = '{CANARY}')"),
        ("trino", f"ALTER USER bob SET PASSWORD '{CANARY}'"),
        ("trino", f"CALL system.sync('password={CANARY}', 'b')"),
        ("trino", f"SELECT 1; ALTER USER b PASSWORD '{CANARY}'"),
        ("trino", f"SELECT * FROM t WHERE a = 'b' AND token = '{CANARY}'"),  # noqa: S608 never run
        ("spark", f"EXPLAIN SELECT 1 FROM t WHERE '{CANARY}' = t.secret"),  # noqa: S608 never run
        ("trino", f"SELECT 1 FROM t WHERE upper(api_key) NOT IN ('a', '{CANARY}')"),  # noqa: S608 never run
        ("trino", f"UPDATE users SET passwd = '{CANARY}' WHERE id = 5"),  # noqa: S608 never run
        ("duckdb", f"CREATE SECRET s (SECRET '{CANARY}"),  # does not even tokenize
    ],
)
def test_a_secret_leaves_the_text(dialect: str, sql: str) -> None:
    found = redact(sql, dialect)
    assert CANARY not in found.text
    assert MASK in found.text


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("trino", "SELECT * FROM t WHERE o_orderkey = 5 AND a_key = 'abc' AND url = 'http://x/y'"),
        ("duckdb", "CREATE TABLE x AS SELECT 'a' AS token"),
        ("spark", "INSERT INTO keys VALUES ('secret', 1)"),
        ("trino", "EXPLAIN SELECT 1 FROM secret WHERE a = 'x'"),
        ("trino", "SET SESSION query_max_run_time = '10m'"),
        ("duckdb", "ATTACH 'lake.db' AS lake"),
    ],
)
def test_data_statements_and_harmless_settings_stay_as_written(dialect: str, sql: str) -> None:
    assert redact(sql, dialect).text == sql


def test_a_message_that_quotes_the_secret_is_hushed_too() -> None:
    found = redact(f"CREATE SECRET s (SECRET '{CANARY}')", "duckdb")
    assert CANARY not in found.hush(f"Invalid Input: near '{CANARY}'")


@given(st.text(max_size=60))
def test_any_text_survives_redaction_without_an_error(text: str) -> None:
    assert isinstance(redact(text + " password", "duckdb").text, str)

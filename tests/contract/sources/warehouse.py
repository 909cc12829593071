"""Snowflake on loopback: fakesnow's server in its own environment, with ACCOUNT_USAGE tables."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from snowflake.connector import connect

from tests.factories import free_port

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-fakesnow" / "bin" / "python"
PATIENCE_SECONDS = 60
# It ends when its standard input does, hence with this process, however that ends.
_SERVE = """
import sys, fakesnow
with fakesnow.server(port=int(sys.argv[1])):
    sys.stdin.read()
"""
# The columns we read, with the types that Snowflake documents.
_TABLES = {
    "QUERY_HISTORY": """
        QUERY_ID VARCHAR, QUERY_TEXT VARCHAR, DATABASE_NAME VARCHAR, SCHEMA_NAME VARCHAR,
        QUERY_TYPE VARCHAR, USER_NAME VARCHAR, ROLE_NAME VARCHAR, WAREHOUSE_NAME VARCHAR,
        WAREHOUSE_SIZE VARCHAR, QUERY_TAG VARCHAR, EXECUTION_STATUS VARCHAR, ERROR_CODE VARCHAR,
        ERROR_MESSAGE VARCHAR, START_TIME TIMESTAMP_LTZ, END_TIME TIMESTAMP_LTZ,
        TOTAL_ELAPSED_TIME NUMBER(38,0), COMPILATION_TIME NUMBER(38,0),
        EXECUTION_TIME NUMBER(38,0), QUEUED_PROVISIONING_TIME NUMBER(38,0),
        QUEUED_REPAIR_TIME NUMBER(38,0), QUEUED_OVERLOAD_TIME NUMBER(38,0),
        BYTES_SCANNED NUMBER(38,0), PERCENTAGE_SCANNED_FROM_CACHE FLOAT,
        BYTES_WRITTEN NUMBER(38,0), ROWS_PRODUCED NUMBER(38,0), ROWS_INSERTED NUMBER(38,0),
        ROWS_UPDATED NUMBER(38,0), ROWS_DELETED NUMBER(38,0), PARTITIONS_SCANNED NUMBER(38,0),
        PARTITIONS_TOTAL NUMBER(38,0), BYTES_SPILLED_TO_LOCAL_STORAGE NUMBER(38,0),
        BYTES_SPILLED_TO_REMOTE_STORAGE NUMBER(38,0), CREDITS_USED_CLOUD_SERVICES FLOAT,
        QUERY_PARAMETERIZED_HASH VARCHAR""",
    "WAREHOUSE_METERING_HISTORY": """
        START_TIME TIMESTAMP_LTZ, END_TIME TIMESTAMP_LTZ, WAREHOUSE_ID NUMBER(38,0),
        WAREHOUSE_NAME VARCHAR, CREDITS_USED NUMBER(38,9), CREDITS_USED_COMPUTE NUMBER(38,9),
        CREDITS_USED_CLOUD_SERVICES NUMBER(38,9),
        CREDITS_ATTRIBUTED_COMPUTE_QUERIES NUMBER(38,9)""",
    "QUERY_ATTRIBUTION_HISTORY": """
        QUERY_ID VARCHAR, PARENT_QUERY_ID VARCHAR, ROOT_QUERY_ID VARCHAR, WAREHOUSE_NAME VARCHAR,
        START_TIME TIMESTAMP_LTZ, END_TIME TIMESTAMP_LTZ, CREDITS_ATTRIBUTED_COMPUTE FLOAT,
        CREDITS_USED_QUERY_ACCELERATION FLOAT""",
    "ACCESS_HISTORY": """
        QUERY_ID VARCHAR, QUERY_START_TIME TIMESTAMP_LTZ, USER_NAME VARCHAR,
        BASE_OBJECTS_ACCESSED ARRAY, OBJECTS_MODIFIED ARRAY""",
}


class Account:
    """An account whose usage views a test fills; `port` is where fakesnow answers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._line = connect(
            account="world", user="test", password="test", host="127.0.0.1", port=port,
            protocol="http", paramstyle="qmark", session_parameters={"TIMEZONE": "UTC"},
            platform_detection_timeout_seconds=0.0,
        )  # fmt: skip
        atexit.register(self._line.close)
        self._cursor = self._line.cursor()
        self.run("CREATE DATABASE IF NOT EXISTS SNOWFLAKE")
        self.run("CREATE SCHEMA IF NOT EXISTS SNOWFLAKE.ACCOUNT_USAGE")

    def empty(self) -> None:
        """New, empty tables."""
        for name, columns in _TABLES.items():
            self.run(f"CREATE OR REPLACE TABLE SNOWFLAKE.ACCOUNT_USAGE.{name} ({columns})")

    def drop(self, table: str) -> None:
        """Take a view away, as a role without its privilege finds it."""
        self.run(f"DROP TABLE SNOWFLAKE.ACCOUNT_USAGE.{table}")

    def add(self, table: str, **values: Any) -> None:
        """A row; lists become arrays."""
        marks = ", ".join("PARSE_JSON(?)" if n.startswith(_ARRAYS) else "?" for n in values)
        names = ", ".join(values)
        self.run(
            f"INSERT INTO SNOWFLAKE.ACCOUNT_USAGE.{table} ({names}) SELECT {marks}",
            *values.values(),
        )

    def change(self, query_id: str, **values: Any) -> None:
        """Change a row of QUERY_HISTORY."""
        sets = ", ".join(f"{name} = ?" for name in values)
        self.run(
            f"UPDATE SNOWFLAKE.ACCOUNT_USAGE.QUERY_HISTORY SET {sets} WHERE QUERY_ID = ?",  # noqa: S608 as above
            *values.values(),
            query_id,
        )

    def run(self, sql: str, *values: Any) -> None:
        self._cursor.execute(sql, [_bound(value) for value in values] or None)


_ARRAYS = ("BASE_OBJECTS_ACCESSED", "OBJECTS_MODIFIED")


def _bound(value: Any) -> Any:
    return ("TIMESTAMP_LTZ", value) if isinstance(value, datetime) else value


@cache
def account() -> Account:
    """The account of this process, started when first asked for."""
    if not PYTHON.exists():
        pytest.skip("fakesnow is not installed: run `make fakesnow` (its own environment)")
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="fakesnow-"))
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [PYTHON, "-c", _SERVE, str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    atexit.register(_stop, server, folder)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _listens(port):
        if server.poll() is not None or time.monotonic() > deadline:
            told = (folder / "server.log").read_text()[-2_000:]
            raise AssertionError(f"fakesnow did not start: {told}")
        time.sleep(0.05)
    return Account(port)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _stop(server: subprocess.Popen[bytes], folder: Path) -> None:
    server.communicate(timeout=PATIENCE_SECONDS)  # closes its standard input, which ends it
    shutil.rmtree(folder, ignore_errors=True)

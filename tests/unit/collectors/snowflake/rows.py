"""Rows of ACCOUNT_USAGE views as the connector hands them on, with sensible values."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from collectors.snowflake.config import Credentials, SnowflakeSettings
from collectors.snowflake.views import ACCESS, ATTRIBUTION, METERING, QUERIES, UsageView
from lakehouse_core.domain.query import EngineId
from tests.factories import NOW

SETTINGS = SnowflakeSettings(
    engine_id=EngineId("snowflake"),
    account="org-one",
    user="lakehelm",
    url="https://org-one.snowflakecomputing.com",
    host=None,
    port=443,
    scheme="https",
    credentials=Credentials(password="testing"),
    catalog="lake",
)
_TIMES = {"START_TIME", "END_TIME", "QUERY_START_TIME"}
_TEXTS = {
    "QUERY_ID", "QUERY_TEXT", "DATABASE_NAME", "SCHEMA_NAME", "QUERY_TYPE", "USER_NAME",
    "ROLE_NAME", "WAREHOUSE_NAME", "WAREHOUSE_SIZE", "QUERY_TAG", "EXECUTION_STATUS", "ERROR_CODE",
    "ERROR_MESSAGE", "QUERY_PARAMETERIZED_HASH", "PARENT_QUERY_ID", "ROOT_QUERY_ID",
    "BASE_OBJECTS_ACCESSED", "OBJECTS_MODIFIED",
}  # fmt: skip


def query(**given: Any) -> dict[str, Any]:
    """A finished SELECT that waited, was compiled, and ran."""
    values: dict[str, Any] = {
        "QUERY_ID": "01b1a2b3-0000-4c5d-0000-000100020003",
        "QUERY_TEXT": "SELECT v FROM t WHERE id = 7",
        "DATABASE_NAME": "LAKE",
        "SCHEMA_NAME": "DEMO",
        "QUERY_TYPE": "SELECT",
        "USER_NAME": "ANA",
        "ROLE_NAME": "ANALYST",
        "WAREHOUSE_NAME": "BI_WH",
        "WAREHOUSE_SIZE": "X-Small",
        "QUERY_TAG": "",
        "EXECUTION_STATUS": "SUCCESS",
        "START_TIME": NOW,
        "END_TIME": NOW + timedelta(milliseconds=2_500),
        "TOTAL_ELAPSED_TIME": 2_500,
        "COMPILATION_TIME": 120,
        "EXECUTION_TIME": 2_080,
        "QUEUED_PROVISIONING_TIME": 250,
        "QUEUED_REPAIR_TIME": 0,
        "QUEUED_OVERLOAD_TIME": 50,
        "BYTES_SCANNED": 1_048_576,
        "PERCENTAGE_SCANNED_FROM_CACHE": 25.5,
        "BYTES_WRITTEN": 0,
        "ROWS_PRODUCED": 42,
        "ROWS_INSERTED": 0,
        "ROWS_UPDATED": 0,
        "ROWS_DELETED": 0,
        "PARTITIONS_SCANNED": 3,
        "PARTITIONS_TOTAL": 40,
        "BYTES_SPILLED_TO_LOCAL_STORAGE": 1_000,
        "BYTES_SPILLED_TO_REMOTE_STORAGE": 24,
        "CREDITS_USED_CLOUD_SERVICES": 0.000123,
        "QUERY_PARAMETERIZED_HASH": "f00d",
    }
    return {**values, **given}


def metered(**given: Any) -> dict[str, Any]:
    """An hour of a warehouse."""
    values = {
        "START_TIME": NOW,
        "WAREHOUSE_ID": 1,
        "WAREHOUSE_NAME": "BI_WH",
        "CREDITS_USED_COMPUTE": Decimal("1.000000000"),
        "CREDITS_USED_CLOUD_SERVICES": Decimal("0.012345678"),
        "CREDITS_ATTRIBUTED_COMPUTE_QUERIES": Decimal("0.700000000"),
    }
    return {**values, **given}


def attributed(**given: Any) -> dict[str, Any]:
    """What one query is charged with."""
    values = {
        "QUERY_ID": "q1",
        "ROOT_QUERY_ID": "q1",
        "WAREHOUSE_NAME": "BI_WH",
        "START_TIME": NOW,
        "END_TIME": NOW + timedelta(seconds=2),
        "CREDITS_ATTRIBUTED_COMPUTE": 0.000555555,
    }
    return {**values, **given}


def arrow(view: UsageView, *rows: dict[str, Any]) -> pa.Table:
    """The rows in the types the connector gives: nanoseconds, small integers, decimals."""
    columns = {}
    for name in view.columns:
        values = [row.get(name) for row in rows]
        kind = None
        if name in _TIMES:
            kind = pa.timestamp("ns", "Etc/UTC")
        elif name in _TEXTS or all(value is None for value in values):
            kind = pa.string() if name in _TEXTS else pa.int64()
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def queries(*rows: dict[str, Any]) -> pa.Table:
    return arrow(QUERIES, *rows)


def metering(*rows: dict[str, Any]) -> pa.Table:
    return arrow(METERING, *rows)


def attribution(*rows: dict[str, Any]) -> pa.Table:
    return arrow(ATTRIBUTION, *rows)


def access(*rows: dict[str, Any]) -> pa.Table:
    return arrow(ACCESS, *rows)

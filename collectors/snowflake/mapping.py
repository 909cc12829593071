"""Rows of ACCOUNT_USAGE views → rows of the store, whole tables at a time. Pure: Arrow in and out.

What a row says that has no column of its own becomes a tag `name=value`; so does every key of a
query tag that is a JSON object. A query tag that is anything else is a tag as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_core import duck
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from datetime import datetime

# The key of a query tag under which Lakehelm passes its own id of a query on.
GATEWAY_KEY = "lakehelm_gateway_id"
_TIME = pa.timestamp("us", "UTC")

_QUERIES = """
WITH told AS (
  SELECT *, upper(EXECUTION_STATUS) AS state,
    START_TIME > TIMESTAMPTZ '1971-01-01' AS has_start,
    END_TIME > TIMESTAMPTZ '1971-01-01' AS has_end,
    coalesce(QUEUED_PROVISIONING_TIME, 0) + coalesce(QUEUED_REPAIR_TIME, 0)
      + coalesce(QUEUED_OVERLOAD_TIME, 0) AS queued,
    CASE WHEN json_valid(QUERY_TAG) AND json_type(QUERY_TAG) = 'OBJECT'
      THEN json_transform(QUERY_TAG, '"MAP(VARCHAR, VARCHAR)"') END AS tag_map
  FROM rows
), judged AS (
  SELECT *,
    CASE
      WHEN state = 'SUCCESS' THEN 'finished'
      WHEN state IN ('FAIL', 'FAILED', 'FAILED_WITH_ERROR')
        THEN CASE WHEN try_cast(ERROR_CODE AS INTEGER) = 604 THEN 'cancelled' ELSE 'failed' END
      WHEN state IN ('INCIDENT', 'FAILED_WITH_INCIDENT') THEN 'failed'
      WHEN state IN ('QUEUED', 'QUEUED_REPAIRING_WAREHOUSE', 'RESUMING_WAREHOUSE') THEN 'queued'
      WHEN state IN ('RUNNING', 'BLOCKED') THEN 'running'
    END AS status
  FROM told
)
SELECT row_no, QUERY_ID AS query_id, status, START_TIME AS submitted_at, QUERY_TEXT AS sql_text,
  DATABASE_NAME AS database_name, SCHEMA_NAME AS schema_name, USER_NAME AS user_name,
  CASE status WHEN 'queued' THEN 0 WHEN 'running' THEN 1 ELSE 2 END AS revision,
  -- It starts when it has been queued and compiled: so is it billed.
  CASE WHEN status <> 'queued' AND EXECUTION_TIME IS NOT NULL
    THEN START_TIME + to_milliseconds(queued + coalesce(COMPILATION_TIME, 0)) END AS started_at,
  CASE WHEN has_end AND status IN ('finished', 'failed', 'cancelled') THEN END_TIME END AS ended_at,
  CASE WHEN coalesce(QUEUED_PROVISIONING_TIME, QUEUED_REPAIR_TIME, QUEUED_OVERLOAD_TIME) IS NOT NULL
    THEN queued END AS queued_ms,
  COMPILATION_TIME AS planning_ms, EXECUTION_TIME AS execution_ms, TOTAL_ELAPSED_TIME AS elapsed_ms,
  BYTES_SCANNED AS bytes_scanned, BYTES_WRITTEN AS bytes_written,
  CASE WHEN QUERY_TYPE = 'SELECT' THEN ROWS_PRODUCED END AS rows_returned,
  CASE WHEN QUERY_TYPE <> 'SELECT' THEN coalesce(ROWS_INSERTED, 0) + coalesce(ROWS_UPDATED, 0)
    + coalesce(ROWS_DELETED, 0) END AS rows_written,
  coalesce(BYTES_SPILLED_TO_LOCAL_STORAGE + coalesce(BYTES_SPILLED_TO_REMOTE_STORAGE, 0),
    BYTES_SPILLED_TO_REMOTE_STORAGE) AS spilled_bytes,
  CASE WHEN state LIKE '%INCIDENT' THEN 'incident' END AS error_class,
  CASE WHEN status IN ('failed', 'cancelled') THEN ERROR_CODE::VARCHAR END AS error_code,
  CASE WHEN status IN ('failed', 'cancelled') THEN ERROR_MESSAGE END AS error_message,
  tag_map[$gateway_key] AS gateway_id,
  $console || QUERY_ID || '/detail' AS engine_url,
  list_filter(list_concat(
    [
      'warehouse=' || WAREHOUSE_NAME,
      'warehouse_size=' || WAREHOUSE_SIZE,
      'role=' || ROLE_NAME,
      'query_type=' || QUERY_TYPE,
      'cloud_services_credits=' || CREDITS_USED_CLOUD_SERVICES::DECIMAL(38, 9)::VARCHAR,
      'scanned_from_cache_percent=' || round(PERCENTAGE_SCANNED_FROM_CACHE::DOUBLE, 2)::VARCHAR,
      'partitions_scanned=' || PARTITIONS_SCANNED::BIGINT::VARCHAR,
      'partitions_total=' || PARTITIONS_TOTAL::BIGINT::VARCHAR,
      'parameterized_hash=' || QUERY_PARAMETERIZED_HASH,
      CASE WHEN tag_map IS NULL AND QUERY_TAG <> '' THEN QUERY_TAG END
    ],
    list_transform(
      list_filter(map_entries(tag_map), lambda one: one.key <> $gateway_key),
      lambda one: one.key || '=' || one.value
    )
  ), lambda tag: tag IS NOT NULL) AS tags,
  CASE
    WHEN QUERY_ID IS NULL OR QUERY_ID = '' THEN 'missing field QUERY_ID'
    WHEN has_start IS NOT TRUE THEN 'missing field START_TIME'
    WHEN status IS NULL
      THEN 'field EXECUTION_STATUS: unknown status ' || coalesce('''' || state[:80] || '''', 'NULL')
    WHEN least(BYTES_SCANNED, BYTES_WRITTEN, TOTAL_ELAPSED_TIME, EXECUTION_TIME) < 0
      THEN 'a count or a time is negative'
  END AS problem
FROM judged ORDER BY row_no
"""

# A row may be delivered twice; two warehouses of one name in one hour are two rows.
_METERING = """
SELECT $engine_id AS engine_id, WAREHOUSE_NAME AS resource, meter,
  date_trunc('hour', START_TIME) AS hour, 'credit' AS unit,
  sum(quantity)::DECIMAL(38, 9) AS quantity, sum(attributed)::DECIMAL(38, 9) AS attributed,
  'engine' AS source, $now::TIMESTAMPTZ AS collected_at
FROM (
  SELECT WAREHOUSE_NAME, WAREHOUSE_ID, START_TIME, 'compute' AS meter,
    max(CREDITS_USED_COMPUTE)::DECIMAL(38, 9) AS quantity,
    max(CREDITS_ATTRIBUTED_COMPUTE_QUERIES)::DECIMAL(38, 9) AS attributed
  FROM good GROUP BY ALL
  UNION ALL
  SELECT WAREHOUSE_NAME, WAREHOUSE_ID, START_TIME, 'cloud_services',
    max(CREDITS_USED_CLOUD_SERVICES)::DECIMAL(38, 9), NULL
  FROM good GROUP BY ALL
)
WHERE quantity IS NOT NULL GROUP BY ALL ORDER BY hour, resource, meter
"""
_METERED = "WAREHOUSE_NAME IS NOT NULL AND START_TIME IS NOT NULL AND CREDITS_USED_COMPUTE >= 0"

_ATTRIBUTION = """
SELECT $engine_id AS engine_id, QUERY_ID AS query_id, WAREHOUSE_NAME AS resource,
  CREDITS_ATTRIBUTED_COMPUTE::DECIMAL(38, 9) AS credits,
  CREDITS_USED_QUERY_ACCELERATION::DECIMAL(38, 9) AS acceleration_credits,
  PARENT_QUERY_ID AS parent_query_id, ROOT_QUERY_ID AS root_query_id, START_TIME AS started_at,
  CASE WHEN END_TIME > TIMESTAMPTZ '1971-01-01' THEN END_TIME END AS ended_at,
  $now::TIMESTAMPTZ AS collected_at
FROM good
QUALIFY row_number() OVER (PARTITION BY QUERY_ID ORDER BY credits DESC) = 1 ORDER BY query_id
"""
_ATTRIBUTED = "QUERY_ID IS NOT NULL AND START_TIME IS NOT NULL AND CREDITS_ATTRIBUTED_COMPUTE >= 0"

_OBJECTS = '[{"objectName": "VARCHAR", "columns": [{"columnName": "VARCHAR"}]}]'
_ACCESS = Template("""
WITH touched AS (
  SELECT QUERY_ID, QUERY_START_TIME, 'read' AS access,
    unnest(from_json(BASE_OBJECTS_ACCESSED, '$objects')) AS object FROM good
  UNION ALL
  SELECT QUERY_ID, QUERY_START_TIME, 'write', unnest(from_json(OBJECTS_MODIFIED, '$objects'))
  FROM good
), named AS (
  SELECT *, CASE WHEN len(object.columns) > 0
    THEN list_transform(object.columns, lambda one: one.columnName) ELSE [''] END AS names
  FROM touched
)
SELECT DISTINCT $$engine_id AS engine_id, QUERY_ID AS query_id, object.objectName AS table_name,
  coalesce(unnest(names), '') AS column_name, access, QUERY_START_TIME AS accessed_at
FROM named WHERE object.objectName IS NOT NULL ORDER BY ALL
""").substitute(objects=_OBJECTS)
_ACCESSED = """
QUERY_ID IS NOT NULL AND QUERY_START_TIME IS NOT NULL
  AND coalesce(json_type(try_cast(BASE_OBJECTS_ACCESSED AS JSON)), 'none')
    = CASE WHEN BASE_OBJECTS_ACCESSED IS NULL THEN 'none' ELSE 'ARRAY' END
  AND coalesce(json_type(try_cast(OBJECTS_MODIFIED AS JSON)), 'none')
    = CASE WHEN OBJECTS_MODIFIED IS NULL THEN 'none' ELSE 'ARRAY' END
"""
_SPLIT = Template("CREATE TEMP TABLE good AS SELECT * FROM rows WHERE ($wanted) IS TRUE")
_LEFT_OVER = Template("SELECT to_json(rows)::VARCHAR FROM rows WHERE ($wanted) IS NOT TRUE")

_PROBLEMS = """
SELECT problem, judged.query_id, to_json(rows)::VARCHAR AS payload
FROM rows JOIN judged USING (row_no) WHERE problem IS NOT NULL ORDER BY row_no
"""


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that cannot be understood."""

    query_id: str | None
    reason: str
    payload: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """Rows that were understood, and the rest."""

    good: pa.Table
    problems: tuple[Problem, ...] = ()


def to_queries(rows: pa.Table, console: str) -> Mapped:
    """Columns of `query_event` as far as a row tells them, texts as they are; `problem` is dropped.

    Args:
        rows: the columns of `views.QUERIES`.
        console: where the page of a query is, without its id.
    """
    rows = with_plain_types(rows)
    rows = rows.append_column("row_no", pa.array(range(rows.num_rows), pa.int64()))
    with duck.connect() as connection:
        connection.register("rows", rows)
        judged = connection.execute(
            _QUERIES, {"gateway_key": GATEWAY_KEY, "console": console}
        ).to_arrow_table()
        is_good = pc.is_null(judged.column("problem"))
        problems: tuple[Problem, ...] = ()
        if not pc.all(is_good).as_py():
            connection.register("judged", judged.select(["row_no", "query_id", "problem"]))
            found = connection.execute(_PROBLEMS).fetchall()
            problems = tuple(Problem(query_id, why, payload) for why, query_id, payload in found)
    return Mapped(judged.filter(is_good).drop_columns(["row_no", "problem"]), problems)


def to_metering(rows: pa.Table, engine_id: str, now: datetime) -> Mapped:
    """Rows of `metering`: credits per warehouse and hour, compute and cloud services apart."""
    return _mapped("metering", _METERING, _METERED, rows, {"engine_id": engine_id, "now": now})


def to_attribution(rows: pa.Table, engine_id: str, now: datetime) -> Mapped:
    """Rows of `query_attribution`."""
    given = {"engine_id": engine_id, "now": now}
    return _mapped("query_attribution", _ATTRIBUTION, _ATTRIBUTED, rows, given)


def to_access(rows: pa.Table, engine_id: str) -> Mapped:
    """Rows of `query_access`, with Snowflake's spelling of names."""
    return _mapped("query_access", _ACCESS, _ACCESSED, rows, {"engine_id": engine_id})


def with_plain_types(rows: pa.Table) -> pa.Table:
    """Times in UTC and microseconds, texts that are UTF-8, whatever this chunk came with."""
    columns = []
    for column in rows.columns:
        kind = column.type
        if pa.types.is_timestamp(kind):
            columns.append(
                column.cast(pa.timestamp("us", kind.tz or "UTC"), safe=False).cast(_TIME)
            )
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            columns.append(_utf8(column))
        else:
            columns.append(column)
    return pa.table(columns, names=rows.column_names)


def _utf8(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.large_binary()).to_pylist()
        texts = [one if one is None else one.decode("utf-8", "replace") for one in raw]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return column


def _mapped(table: str, sql: str, wanted: str, rows: pa.Table, given: dict[str, Any]) -> Mapped:
    """Run a mapping on the rows that have what it needs; the others are problems."""
    with duck.connect() as connection:
        connection.register("rows", with_plain_types(rows))
        connection.execute(_SPLIT.substitute(wanted=wanted))
        found = connection.execute(sql, given).to_arrow_table()
        left = connection.execute(_LEFT_OVER.substitute(wanted=wanted)).fetchall()
    schema = schema_of(table)
    reason = f"a field that {table} needs is missing, or a value does not fit"
    problems = tuple(Problem(None, reason, payload) for (payload,) in left)
    return Mapped(found.select(schema.names).cast(schema), problems)

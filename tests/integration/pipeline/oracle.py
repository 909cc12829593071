"""What gold must be, computed another way: event by event, in DuckDB over the store's own rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_core import duck
from lakehouse_core.domain.table import split_name
from lakehouse_core.sql import inspect
from lakehouse_core.store.columns import known_columns

if TYPE_CHECKING:
    from lakehouse_core.store.port import TelemetryStore

PROFILE = """
SELECT date_trunc('hour', submitted_at) AS hour_at, template AS template_id, engine_id,
  count(*) AS runs, count(*) FILTER (status = 'finished') AS finished,
  count(*) FILTER (status = 'failed') AS failed,
  count(*) FILTER (status = 'cancelled') AS cancelled,
  count(*) FILTER (status IN ('queued', 'running')) AS unfinished,
  sum(elapsed_ms) AS elapsed_ms, sum(cpu_ms) AS cpu_ms, sum(bytes_scanned)::BIGINT AS bytes_scanned,
  sum(rows_returned)::BIGINT AS rows_returned,
  quantile_cont(elapsed_ms, 0.5) FILTER (status = 'finished') AS p50_elapsed_ms,
  quantile_cont(elapsed_ms, 0.95) FILTER (status = 'finished') AS p95_elapsed_ms,
  quantile_cont(execution_ms, 0.5) FILTER (status = 'finished') AS p50_execution_ms,
  count(DISTINCT user_name) AS users
FROM event GROUP BY ALL
"""
WORKLOAD = """
SELECT date_trunc('hour', submitted_at) AS hour_at, template AS template_id, engine_id,
  coalesce(user_name, '') AS user_name, coalesce(source, '') AS source,
  coalesce(workload_group, '') AS workload_group, count(*) AS runs,
  count(*) FILTER (status = 'failed') AS failed, sum(bytes_scanned)::BIGINT AS bytes_scanned,
  sum(rows_scanned)::BIGINT AS rows_scanned
FROM event GROUP BY ALL
"""
USAGE = """
SELECT submitted_at::DATE AS day, table_name, column_name, role, engine_id, count(*) AS runs,
  sum(bytes_scanned)::BIGINT AS bytes_scanned, count(DISTINCT user_name) AS users
FROM event JOIN used USING (engine_id, query_id) GROUP BY ALL
"""
COMMITS = """
SELECT date_trunc('hour', committed_at) AS hour_at, table_id, count(*) AS commits,
  sum(added_files)::BIGINT AS added_files, sum(added_bytes)::BIGINT AS added_bytes,
  count(DISTINCT engine_name) AS writers
FROM commit GROUP BY ALL
"""


def expected(store: TelemetryStore) -> dict[str, pa.Table]:
    """The gold tables, as far as they are compared."""
    events = store.read("SELECT * FROM query_event")
    columns = known_columns(store)
    templates, used = [], []
    for row in events.to_pylist():
        template = ""
        if row["sql_text"] and row["dialect"]:
            found = inspect(
                row["sql_text"],
                row["dialect"],
                default_catalog=row["default_catalog"],
                default_namespace=_levels(row["default_namespace"]),
                schema=columns,
            )
            template = found.template_id
            uses = {(use.table, use.column, use.role) for use in found.columns if use.table}
            uses |= {(table, "", "table") for table in found.tables}
            used += [_used(row, *use) for use in uses]
        templates.append(template)
    events = events.append_column("template", pa.array(templates, pa.string()))
    with duck.connect() as connection:
        connection.register("event", events)
        connection.register("used", pa.Table.from_pylist(used))
        connection.register("commit", store.read("SELECT * FROM snapshot_commit"))
        statements = {
            "template_hour": PROFILE,
            "workload_hour": WORKLOAD,
            "usage_day": USAGE,
            "commit_hour": COMMITS,
        }
        return {name: connection.execute(sql).to_arrow_table() for name, sql in statements.items()}


def _levels(namespace: str | None) -> tuple[str, ...]:
    return split_name(namespace) if namespace else ()


def _used(row: dict[str, Any], table: str, column: str, role: str) -> dict[str, str]:
    return {
        "engine_id": row["engine_id"],
        "query_id": row["query_id"],
        "table_name": table,
        "column_name": column,
        "role": role,
    }


def comparable(table: pa.Table, columns: list[str]) -> list[tuple[Any, ...]]:
    """Rows in a fixed order, fractions to nine digits."""
    rows = [tuple(_value(row[name]) for name in columns) for row in table.to_pylist()]
    return sorted(rows, key=repr)


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.9g}")
    return value

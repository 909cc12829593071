"""What is done with SQL texts, for rows that are Arrow: each distinct text once, joined back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from collectors.snowflake.names import in_lake_spelling
from collectors.understanding import Observed
from lakehouse_core import duck
from lakehouse_core.domain.query import QueryEvent, QueryStatus
from lakehouse_core.store.schema import schema_of

if TYPE_CHECKING:
    from datetime import datetime

    from collectors.snowflake.config import SnowflakeSettings
    from collectors.understanding import Understanding

_TEXTS = """
SELECT row_number() OVER () - 1 AS text_no, * FROM (
  SELECT sql_text, database_name, schema_name, error_message, max(submitted_at) AS used_at
  FROM queries GROUP BY ALL
)
ORDER BY text_no
"""
_JOIN = """
SELECT queries.* EXCLUDE (sql_text, database_name, schema_name, error_message), texts.text_no
FROM queries JOIN texts ON queries.sql_text IS NOT DISTINCT FROM texts.sql_text
  AND queries.database_name IS NOT DISTINCT FROM texts.database_name
  AND queries.schema_name IS NOT DISTINCT FROM texts.schema_name
  AND queries.error_message IS NOT DISTINCT FROM texts.error_message
ORDER BY queries.submitted_at, queries.query_id
"""


def understood_rows(
    queries: pa.Table, settings: SnowflakeSettings, understanding: Understanding, now: datetime
) -> dict[str, pa.Table]:
    """The tables of the store: events, with template and kind and without secrets, and the rest."""
    if not queries.num_rows:
        return {}
    with duck.connect() as connection:
        connection.register("queries", queries)
        texts = connection.execute(_TEXTS).to_arrow_table()
        connection.register("texts", texts)
        numbered = connection.execute(_JOIN).to_arrow_table()
    observed = [_observed(text, settings, now) for text in texts.to_pylist()]
    tables = understanding.rows(observed)
    told = tables.pop("query_event")
    found = {name: in_lake_spelling(rows, settings) for name, rows in tables.items()}
    return {"query_event": _joined(numbered, told), **found}


def _observed(text: dict[str, Any], settings: SnowflakeSettings, now: datetime) -> Observed:
    """A stand-in for all queries of one text; what is its own is joined back from `queries`."""
    event = QueryEvent(
        engine_id=settings.engine_id,
        query_id=str(text["text_no"]),
        status=QueryStatus.FINISHED,
        submitted_at=text["used_at"],
        collected_at=now,
        dialect="snowflake",
        sql_text=text["sql_text"],
        error_message=text["error_message"],
    )
    schema = text["schema_name"]
    return Observed(event, text["database_name"], (schema,) if schema else ())


def _joined(numbered: pa.Table, told: pa.Table) -> pa.Table:
    """Each query's own values, and for the other columns those of its text (row `text_no`)."""
    of_text = told.take(numbered.column("text_no"))
    own = set(numbered.column_names)
    schema = schema_of("query_event")
    columns = [
        (numbered if field.name in own else of_text).column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)

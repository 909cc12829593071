"""Queries in a store: templates, events and the columns they use."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse_core.domain.query import EngineId
from lakehouse_core.sql.inspector import Inspector
from lakehouse_core.store.rows import to_arrow
from tests.factories import query_event, unique

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from lakehouse_core.store.port import TelemetryStore

_TEXT = pa.string()
TEMPLATE = pa.schema(
    [
        ("template_id", _TEXT),
        ("dialect", _TEXT),
        ("template", _TEXT),
        ("statement_kind", _TEXT),
        ("parse_error", _TEXT),
        ("seen_at", pa.timestamp("us", "UTC")),
        ("parse_reason", _TEXT),
    ]
)


def ask(
    store: TelemetryStore, table_id: str, engine: str, clauses: Iterable[str], now: datetime
) -> None:
    """Note one query per clause, a minute apart."""
    inspector = Inspector()
    events, templates, usage = [], {}, {}
    for number, clause in enumerate(clauses):
        sql = f"SELECT count(*) FROM {table_id} WHERE {clause}"  # noqa: S608 a text to understand
        template = inspector.fingerprint(sql, engine).template_id
        templates[template] = {
            "template_id": template,
            "dialect": engine,
            "template": sql,
            "statement_kind": "select",
            "seen_at": now,
        }
        usage[template] = {
            "template_id": template,
            "table_name": table_id,
            "column_name": "id",
            "role": "filter_eq",
        }
        events.append(
            query_event(
                engine_id=EngineId(engine),
                query_id=unique(engine),
                dialect=engine,
                sql_text=sql,
                template_id=template,
                submitted_at=now - timedelta(minutes=number + 1),
                bytes_scanned=400_000,
                cpu_ms=40_000.0,
            )
        )
    store.upsert("query_event", to_arrow("query_event", events))
    store.upsert("query_template", pa.Table.from_pylist(list(templates.values()), TEMPLATE))
    store.upsert("column_usage", pa.Table.from_pylist(list(usage.values())))

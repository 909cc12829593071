"""What the console keeps and remembers: saved queries, a user's statements, names of the lake."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import FilterError, NotFoundError
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from typing import Any

    from lakehouse_core.store.client import StoreClient
    from lakehouse_core.store.port import TelemetryStore

LONGEST_SQL = 8_000
LONGEST_NAME = 120
LONGEST_WORD = 16_000  # of a command (store/gate.sql)
NAMES_SQL = """
SELECT table_schema, table_name, column_name, data_type FROM {catalog}.information_schema.columns
WHERE table_schema <> 'information_schema' ORDER BY 1, 2, ordinal_position
"""

SAVED_SQL = """
SELECT query_id, saved_at, saved_by, name, sql_text FROM saved_query
WHERE $id::VARCHAR IS NULL OR query_id = $id::VARCHAR
ORDER BY saved_at DESC, query_id LIMIT 500
"""

# Pages of a Trino engine are passed on as they are: how many rows they held, only the engine tells.
HISTORY_SQL = """
WITH own AS (
  SELECT gateway_id, submitted_at, status, engine_id, query_id, denial, rows_sent, decision_ms,
    queue_ms, engine_ms, fetch_ms
  FROM routing_decision WHERE user_name = $user::VARCHAR
  ORDER BY submitted_at DESC, gateway_id LIMIT $limit::BIGINT
)
SELECT own.gateway_id, own.submitted_at, own.status, own.engine_id, own.denial,
  coalesce(own.rows_sent, CASE WHEN own.status = 'finished' THEN e.rows_returned END) AS rows_sent,
  own.decision_ms + own.queue_ms + own.engine_ms + coalesce(own.fetch_ms, 0) AS elapsed_ms,
  coalesce(e.sql_text, a.detail->>'sql') AS sql_text
FROM own
LEFT JOIN query_event AS e
  ON e.engine_id = own.engine_id AND e.query_id = coalesce(own.query_id, own.gateway_id)
LEFT JOIN query_audit AS a ON a.action_id = own.gateway_id
ORDER BY own.submitted_at DESC, own.gateway_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQuery:
    """A statement somebody keeps."""

    query_id: str
    saved_at: datetime
    saved_by: str
    name: str
    sql_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStatement:
    """One of a user's statements, newest first; a refused one is known without its literals."""

    gateway_id: str
    submitted_at: datetime
    status: str
    engine_id: str | None
    denial: str | None
    rows_sent: int | None
    elapsed_ms: float | None
    sql_text: str | None


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table of the lake: its columns with their types."""

    schema: str
    name: str
    columns: tuple[tuple[str, str], ...]


def lake_tables(rows: Iterable[Sequence[Any]]) -> tuple[LakeTable, ...]:
    """The tables that rows of `NAMES_SQL` describe."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for schema, table, column, kind in rows:
        found.setdefault((schema, table), []).append((column, kind))
    return tuple(LakeTable(schema, table, tuple(cols)) for (schema, table), cols in found.items())


def saved_queries(store: TelemetryStore) -> tuple[SavedQuery, ...]:
    """What people keep, newest first."""
    return records(SavedQuery, store.read(SAVED_SQL, id=None))


def saved_query(store: TelemetryStore, query_id: str) -> SavedQuery:
    """One of them.

    Raises:
        NotFoundError: nobody keeps it (any more).
    """
    found = records(SavedQuery, store.read(SAVED_SQL, id=query_id))
    if not found:
        raise NotFoundError(
            f"No query is saved as {query_id!r}: the link is old, or it was removed"
        )
    return found[0]


def save_query(store: StoreClient, name: str, sql: str, *, actor: str) -> SavedQuery:
    """Keep a statement by a name.

    Raises:
        FilterError: a text is missing or too long, or too many were kept within a minute.
        StoreUnavailableError: the agents process does not run.
    """
    for what, text, longest in (
        ("The name", name, LONGEST_NAME),
        ("Your name", actor, LONGEST_NAME),
        ("The statement", sql, LONGEST_SQL),
    ):
        if not 1 <= len(text.strip()) <= longest:
            raise FilterError(f"{what} must have 1 to {longest:,} characters")
    said = {
        "query_id": secrets.token_hex(8),
        "name": name.strip(),
        "actor": actor.strip(),
        "sql": sql.strip(),
    }
    word = _word(said)
    if len(word) > LONGEST_WORD:  # letters that take several bytes
        raise FilterError(f"The statement is too long by {len(word) - LONGEST_WORD:,} bytes")
    found = records(SavedQuery, store.command(f"save query {word}"))
    if not found:
        raise FilterError("It was not kept: too many are, or too many came within a minute")
    return found[0]


def drop_query(store: StoreClient, query_id: str, *, actor: str) -> None:
    """Keep a statement no longer; only who saved it may say so.

    Raises:
        FilterError: somebody else saved it.
    """
    said = {"query_id": query_id, "actor": actor.strip()}
    if store.command(f"drop query {_word(said)}").num_rows:
        raise FilterError("Only who saved it may remove it")


def own_statements(
    store: TelemetryStore, user: str, *, limit: int = 50
) -> tuple[OwnStatement, ...]:
    """A user's statements through the gateway, newest first."""
    return records(OwnStatement, store.read(HISTORY_SQL, user=user, limit=limit))


def _word(said: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(said, ensure_ascii=False).encode()).decode()

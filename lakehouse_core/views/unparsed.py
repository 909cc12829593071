"""Statements that were not understood: how many of how many, why, and which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.views.filters import Filters, over_events
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    from datetime import datetime

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

MAX_LIMIT = 10_000
_PREVIEW_CHARACTERS = 300

_UNPARSED = """
WITH runs AS (
  SELECT template_id, engine_id, count(*) AS queries, max(submitted_at) AS last_seen_at
  FROM {events} WHERE template_id IN (
    SELECT template_id FROM query_template WHERE parse_error IS NOT NULL)
  GROUP BY template_id, engine_id
),
unparsed AS (
  SELECT runs.*, template.dialect, template.template, template.parse_error,
    coalesce(template.parse_reason, 'unclassified') AS reason
  FROM runs JOIN query_template AS template USING (template_id)
)
"""

COUNT_SQL = over_events("""
SELECT count(*) AS queries, count(template_id) AS inspected FROM {events}
""")

REASONS_SQL = over_events(
    _UNPARSED
    + """
SELECT reason, count(DISTINCT template_id) AS templates, sum(queries)::BIGINT AS queries,
  list(DISTINCT engine_id ORDER BY engine_id) AS engines, max(last_seen_at) AS last_seen_at,
  arg_max(parse_error, (queries, template_id)) AS example
FROM unparsed GROUP BY reason ORDER BY queries DESC, reason
"""
)

STATEMENTS_SQL = over_events(
    _UNPARSED
    + """
SELECT template_id, reason, any_value(parse_error) AS error, any_value(dialect) AS dialect,
  list(DISTINCT engine_id ORDER BY engine_id) AS engines, sum(queries)::BIGINT AS queries,
  max(last_seen_at) AS last_seen_at, left(any_value(template), $preview::BIGINT) AS template
FROM unparsed
WHERE $reason::VARCHAR IS NULL OR reason = $reason::VARCHAR
GROUP BY template_id, reason ORDER BY queries DESC, template_id LIMIT $limit::BIGINT
"""
)

# A column that was open when its text was first read, and is known by now, is not open any more.
UNRESOLVED_SQL = over_events("""
WITH open AS (
  SELECT template_id, default_catalog, default_namespace, column_name FROM column_usage
  GROUP BY ALL HAVING max(table_name) = ''
), runs AS (
  SELECT template_id, coalesce(default_catalog, '') AS default_catalog,
    coalesce(default_namespace, '') AS default_namespace, count(*) AS queries
  FROM {events} WHERE template_id IN (SELECT template_id FROM open) GROUP BY ALL
), found AS (
  SELECT * FROM open JOIN runs USING (template_id, default_catalog, default_namespace)
)
SELECT column_name, count(DISTINCT template_id) AS templates, sum(queries)::BIGINT AS queries
FROM found GROUP BY column_name ORDER BY queries DESC, column_name LIMIT $limit::BIGINT
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnresolvedRow:
    """A column that no known table explains: not counted as use of any table."""

    column_name: str
    templates: int
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRow:
    """One class of reasons; `example` is what was said of its most frequent statement."""

    reason: str
    templates: int
    queries: int
    engines: tuple[str, ...]
    last_seen_at: datetime
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnparsedRow:
    """One statement without its literals; long texts are cut."""

    template_id: str
    reason: str
    error: str
    dialect: str
    engines: tuple[str, ...]
    queries: int
    last_seen_at: datetime
    template: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnparsedPage:
    """What was not understood in a window.

    Attributes:
        window: the time looked at.
        queries: how many queries there were.
        inspected: how many of them had a text to understand.
        unparsed: how many of those were not understood.
        reasons: per class of reasons, the most frequent first.
        statements: the most frequent statements.
        unresolved: columns of understood statements that belong to no known table.
    """

    window: Window
    queries: int
    inspected: int
    unparsed: int
    reasons: tuple[ReasonRow, ...]
    statements: tuple[UnparsedRow, ...]
    unresolved: tuple[UnresolvedRow, ...]

    @property
    def ratio(self) -> float | None:
        """Share of the inspected queries that was not understood; None when there were none."""
        return self.unparsed / self.inspected if self.inspected else None


def list_unparsed(
    store: TelemetryStore,
    filters: Filters,
    clock: Clock,
    *,
    reason: str | None = None,
    limit: int = 50,
) -> UnparsedPage:
    """The statements that were not understood, by reason and one by one."""
    window = filters.window_at(clock())
    params = filters.params(window)
    (counts,) = store.read(COUNT_SQL, **params).to_pylist()
    reasons = records(ReasonRow, store.read(REASONS_SQL, **params))
    statements = store.read(
        STATEMENTS_SQL,
        reason=reason,
        limit=min(max(limit, 0), MAX_LIMIT),
        preview=_PREVIEW_CHARACTERS,
        **params,
    )
    most = min(max(limit, 0), MAX_LIMIT)
    return UnparsedPage(
        window=window,
        queries=counts["queries"],
        inspected=counts["inspected"],
        unparsed=sum(row.queries for row in reasons),
        reasons=reasons,
        statements=records(UnparsedRow, statements),
        unresolved=records(UnresolvedRow, store.read(UNRESOLVED_SQL, limit=most, **params)),
    )

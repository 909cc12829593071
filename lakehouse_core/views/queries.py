"""One query history over all engines: the list, one query in full, what runs now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse_core.domain.errors import NotFoundError
from lakehouse_core.domain.query import QueryEvent, QueryStatus
from lakehouse_core.views import hourly
from lakehouse_core.views.filters import Filters, over_events
from lakehouse_core.views.rows import records

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.store.port import TelemetryStore
    from lakehouse_core.views.window import Window

MAX_LIMIT = 10_000
_INSTANT = timedelta(microseconds=1)
_PREVIEW_CHARACTERS = 300
# A query that an engine never ended (it died) must not look as if it ran for ever.
_RUNNING_AT_MOST = timedelta(hours=24)
# A page is nearly always full of the newest part of its window: looked for there first.
_NEWEST_PARTS = (timedelta(hours=1), timedelta(hours=8), timedelta(days=2), timedelta(days=8))

# The rows to show are found by time alone, then their wide columns are read: three times faster
# on ten million events than ordering whole rows.
LIST_SQL = over_events("""
WITH page AS (
  SELECT rowid AS row_number FROM {events}
  WHERE $at::TIMESTAMPTZ IS NULL OR submitted_at < $at::TIMESTAMPTZ
    OR (submitted_at = $at::TIMESTAMPTZ AND (engine_id, query_id) > ($of::VARCHAR, $id::VARCHAR))
  ORDER BY submitted_at DESC, engine_id, query_id LIMIT $limit::BIGINT OFFSET $offset::BIGINT
)
SELECT engine_id, query_id, status, submitted_at, user_name, source, tags, statement_kind,
  elapsed_ms, queued_ms, planning_ms, execution_ms, bytes_scanned, rows_scanned, rows_returned,
  error_class, left(error_message, $preview::BIGINT) AS error_message, template_id,
  left(sql_text, $preview::BIGINT) AS sql_text, engine_url, origin
FROM query_event JOIN page ON query_event.rowid = page.row_number
ORDER BY submitted_at DESC, engine_id, query_id
""")

COUNT_SQL = over_events("SELECT count(*) AS total FROM {events}")

RUNNING_SQL = """
SELECT engine_id, query_id, status, submitted_at, user_name,
  left(sql_text, $preview::BIGINT) AS sql_text, engine_url, origin
FROM query_event
WHERE submitted_at >= $since::TIMESTAMPTZ AND revision < 2
  AND ($engine::VARCHAR IS NULL OR engine_id = $engine::VARCHAR)
ORDER BY submitted_at LIMIT $limit::BIGINT
"""

DETAIL_SQL = """
SELECT * FROM query_event
WHERE engine_id = $engine::VARCHAR AND query_id = $query::VARCHAR
"""

TEMPLATE_SQL = """
SELECT template, parse_error FROM query_template WHERE template_id = $template::VARCHAR
"""

_OF_QUERY = """template_id = $template::VARCHAR AND default_catalog = $catalog::VARCHAR
    AND default_namespace = $namespace::VARCHAR"""

# A column that was open when it was first read, and is known by now, is not open any more.
USAGE_SQL = f"""
WITH used AS (SELECT table_name, column_name, role FROM column_usage WHERE {_OF_QUERY})
SELECT table_name, column_name, list(role ORDER BY role) AS roles FROM used
WHERE table_name <> '' OR column_name NOT IN (
  SELECT known.column_name FROM used known WHERE known.table_name <> '')
GROUP BY table_name, column_name ORDER BY table_name, column_name
"""  # noqa: S608 constants only

ACCESS_SQL = """
SELECT table_name, nullif(column_name, '') AS column_name, list(access ORDER BY access) AS access
FROM query_access WHERE engine_id = $engine::VARCHAR AND query_id = $query::VARCHAR
GROUP BY ALL ORDER BY table_name, column_name NULLS FIRST
"""

TABLES_SQL = f"""
SELECT table_name FROM template_table WHERE {_OF_QUERY}
UNION SELECT table_name FROM column_usage WHERE {_OF_QUERY} AND table_name <> ''
ORDER BY table_name
"""  # noqa: S608 constants only


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One line of the history; long texts are cut, the detail has them whole."""

    engine_id: str
    query_id: str
    status: str
    submitted_at: datetime
    user_name: str | None
    source: str | None
    tags: tuple[str, ...] | None
    statement_kind: str | None
    elapsed_ms: float | None
    queued_ms: float | None
    planning_ms: float | None
    execution_ms: float | None
    bytes_scanned: int | None
    rows_scanned: int | None
    rows_returned: int | None
    error_class: str | None
    error_message: str | None
    template_id: str | None
    sql_text: str | None
    engine_url: str | None
    origin: str


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the history: right behind this query. Pages found by it cost the same anywhere."""

    submitted_at: datetime
    engine_id: str
    query_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPage:
    """A page of the history, newest first, and how many there are in all."""

    window: Window
    total: int
    offset: int
    rows: tuple[QueryRow, ...]

    @property
    def end(self) -> Place | None:
        """Where the next page begins; None when this one is empty."""
        if not self.rows:
            return None
        last = self.rows[-1]
        return Place(last.submitted_at, last.engine_id, last.query_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """A query that has not ended, as far as its engine said."""

    engine_id: str
    query_id: str
    status: str
    submitted_at: datetime
    user_name: str | None
    sql_text: str | None
    engine_url: str | None
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRoles:
    """A column a query touches, and as what (filter, join, group, order, project)."""

    table_name: str
    column_name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A table or column a query touched, as its engine logged it: through views, too."""

    table_name: str
    column_name: str | None
    access: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a query's time."""

    name: str
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDetail:
    """All that is known of one query.

    Attributes:
        event: the row as collected.
        template: its text without literals; None when it was not understood yet.
        parse_error: why it could not be understood.
        tables: the tables it reads or writes, whether or not it names a column of them.
        columns: the columns it uses, by table.
        unresolved: columns that no known table explains: of a join, without the table's name.
        accessed: what the engine itself logged, where it does (Snowflake's access history).
        is_joined: several observers told about it, e.g. our gateway and the engine.
    """

    event: QueryEvent
    template: str | None
    parse_error: str | None
    tables: tuple[str, ...]
    columns: tuple[ColumnRoles, ...]
    unresolved: tuple[ColumnRoles, ...]
    accessed: tuple[Access, ...]
    is_joined: bool

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Where its time went, as far as the engine said; what is left over is `other`."""
        event = self.event
        named = (
            ("queued", event.queued_ms),
            ("planning", event.planning_ms),
            ("execution", event.execution_ms),
        )
        known = [Phase(name=name, ms=value) for name, value in named if value]
        rest = (event.elapsed_ms or 0) - sum(phase.ms for phase in known)
        # Engines round each of them for itself: a sliver is no phase.
        if known and event.elapsed_ms and rest > 0.01 * event.elapsed_ms:
            known.append(Phase(name="other", ms=rest))
        return tuple(known)


def list_queries(
    store: TelemetryStore,
    filters: Filters,
    clock: Clock,
    *,
    limit: int = 100,
    offset: int = 0,
    behind: Place | None = None,
) -> QueryPage:
    """The history that passes the filters, newest first.

    Args:
        store: where it is.
        filters: what to look at.
        clock: what the time is.
        limit: how many to show.
        offset: how many to leave out.
        behind: only what comes after this place.
    """
    window = filters.window_at(clock())
    page = {"limit": min(max(limit, 0), MAX_LIMIT), "offset": max(offset, 0)}
    return QueryPage(
        window=window,
        total=_total(store, filters, window),
        offset=page["offset"],
        rows=records(QueryRow, _newest(store, filters, window, page, behind)),
    )


def _newest(
    store: TelemetryStore,
    filters: Filters,
    window: Window,
    page: dict[str, int],
    behind: Place | None,
) -> pa.Table:
    """The rows of a page: from as little of the window as fills it."""
    end = window.end if behind is None else min(window.end, behind.submitted_at + _INSTANT)
    params = filters.params(window) | {
        "end": end,
        "at": behind.submitted_at if behind else None,
        "of": behind.engine_id if behind else None,
        "id": behind.query_id if behind else None,
        "preview": _PREVIEW_CHARACTERS,
        **page,
    }
    for length in _NEWEST_PARTS:
        if end - length <= window.start:
            break
        rows = store.read(LIST_SQL, **params | {"start": end - length})
        if rows.num_rows == page["limit"]:
            return rows
    return store.read(LIST_SQL, **params)


def _total(store: TelemetryStore, filters: Filters, window: Window) -> int:
    """How many queries pass the filters; of long windows from hourly sums."""
    if hourly.is_long(filters, window):
        found = store.read(hourly.COUNT_SQL, **hourly.span_params(store, filters, window))
    else:
        found = store.read(COUNT_SQL, **filters.params(window))
    return int(found.column("total")[0].as_py())


def running_now(
    store: TelemetryStore, filters: Filters, clock: Clock, *, limit: int = 20
) -> tuple[RunningQuery, ...]:
    """What is queued or running, oldest first; older than a day counts as lost, not running."""
    since = clock() - _RUNNING_AT_MOST
    table = store.read(
        RUNNING_SQL,
        since=since,
        engine=filters.engine,
        limit=limit,
        preview=_PREVIEW_CHARACTERS,
    )
    return records(RunningQuery, table)


def show_query(store: TelemetryStore, engine_id: str, query_id: str) -> QueryDetail:
    """One query in full.

    Raises:
        NotFoundError: the store has no such query (any more).
    """
    found = store.read(DETAIL_SQL, engine=engine_id, query=query_id).to_pylist()
    if not found:
        raise NotFoundError(
            f"Query {query_id!r} of engine {engine_id!r} is not in the store: "
            "it was never collected, or its history was dropped after the retention time."
        )
    event = _event(found[0])
    template, parse_error = None, None
    tables: tuple[str, ...] = ()
    columns: tuple[ColumnRoles, ...] = ()
    if event.template_id is not None:
        for row in store.read(TEMPLATE_SQL, template=event.template_id).to_pylist():
            template, parse_error = row["template"], row["parse_error"]
        used_by = {
            "template": event.template_id,
            "catalog": event.default_catalog or "",
            "namespace": event.default_namespace or "",
        }
        tables = tuple(store.read(TABLES_SQL, **used_by).column("table_name").to_pylist())
        columns = records(ColumnRoles, store.read(USAGE_SQL, **used_by))
    return QueryDetail(
        event=event,
        template=template,
        parse_error=parse_error,
        tables=tables,
        columns=tuple(one for one in columns if one.table_name),
        unresolved=tuple(one for one in columns if not one.table_name),
        accessed=records(Access, store.read(ACCESS_SQL, engine=engine_id, query=query_id)),
        is_joined=found[0]["known_by"] is not None,
    )


def _event(row: dict[str, Any]) -> QueryEvent:
    known = {name: row[name] for name in QueryEvent.__dataclass_fields__ if name in row}
    known["status"] = QueryStatus(row["status"])
    known["tags"] = tuple(row["tags"] or ())
    known["snapshot_ids"] = tuple(row["snapshot_ids"] or ())
    return QueryEvent(**known)

"""Tracked Spark queries → query events. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from collectors.understanding import Observed
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus

if TYPE_CHECKING:
    from collectors.spark.queries import Application, TrackedQuery

GATEWAY_TAG = "lakehelm-gateway-id:"  # as our Spark engine writes it
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
_SQLSTATE = re.compile(r"\bSQLSTATE: ([0-9A-Z]{5})\b")
_STACK = re.compile(r"\n\s*at [\w.$]+\(|\nJVM stacktrace")
_GRPC_STATUS = re.compile(r"^[A-Z_]+: \s*")
# The first two characters of an SQLSTATE say whose fault it is.
_RESOURCE_CLASSES = frozenset({"53", "54"})
_EXTERNAL_CLASSES = frozenset({"08", "58"})
_INTERNAL_CLASSES = frozenset({"XX"})


def to_observed(
    engine_id: EngineId,
    query: TrackedQuery,
    application: Application,
    default_catalog: str | None,
    collected_at: datetime,
    engine_url: str | None = None,
) -> Observed:
    """The event of a tracked query as it stands.

    A final row is sent once, complete. Only where tasks were killed it is sent again when their
    figures come in; these only grow, and of two final rows the store keeps the greater figures, so
    it does not matter in which order rows reach it.
    """
    gateway_id, tags = _without_gateway(query.tags)
    status = QueryStatus(query.status) if query.is_over else QueryStatus.RUNNING
    ended = query.ended if query.is_over else None
    event = QueryEvent(
        engine_id=engine_id,
        query_id=query.key,
        status=status,
        submitted_at=_time(query.submitted),
        collected_at=collected_at,
        dialect="spark",
        sql_text=query.sql,
        user_name=query.user,
        source=_source(query),
        tags=tags,
        gateway_id=gateway_id,
        engine_url=engine_url,
        started_at=_time(query.ready) if query.ready is not None else None,
        ended_at=_time(ended) if ended is not None else None,
        planning_ms=_span(query.submitted, query.ready) if query.is_operation else None,
        execution_ms=_span(query.ready, ended),
        elapsed_ms=_span(query.submitted, ended),
        rows_returned=query.rows_returned,
        snapshot_ids=tuple(query.snapshots),
        **_measures(query),
        **(_error(query) if query.is_over else {}),
    )
    return Observed(event, application.catalog or default_catalog)


def session_url(ui_url: str | None, query: TrackedQuery) -> str | None:
    """Where a server's own page shows the operations of the query's session.

    By the session's id, which is never given again: after a restart of the server the page has
    nothing to show, where the number of an execution would show another query.
    """
    if ui_url is None or query.session is None:
        return None
    return f"{ui_url}/connect/session/?id={quote(query.session, safe='')}"


def _measures(query: TrackedQuery) -> dict[str, Any]:
    if query.tasks == 0:  # nothing ran on an executor: Spark measured nothing
        return {}
    return {
        "cpu_ms": query.cpu_ns / 1e6,
        "bytes_scanned": query.bytes_read,
        "rows_scanned": query.rows_read,
        "bytes_written": query.bytes_written,
        "rows_written": query.rows_written,
        "spilled_bytes": query.spilled,
    }


def _error(query: TrackedQuery) -> dict[str, Any]:
    if query.status == "finished" or not query.error:
        return {}
    condition = _CONDITION.search(query.error)
    state = _SQLSTATE.search(query.error)
    message = _GRPC_STATUS.sub("", _STACK.split(query.error, maxsplit=1)[0]).strip()
    if query.has_secret:
        message = "(not kept: the statement holds a secret, which the message may quote)"
    return {
        "error_class": _error_class(state.group(1)) if state else None,
        "error_code": condition.group(1) if condition else None,
        "error_message": message,
    }


def _error_class(state: str) -> str:
    kind = state[:2]
    if kind in _INTERNAL_CLASSES:
        return "internal_error"
    if kind in _RESOURCE_CLASSES:
        return "insufficient_resources"
    return "external" if kind in _EXTERNAL_CLASSES else "user_error"


def _source(query: TrackedQuery) -> str | None:
    """The client's own name: `etl` of `etl spark/4.1.4 os/linux python/3.11`."""
    if query.client is None or not query.is_operation:
        return query.client
    return query.client.split(" ", maxsplit=1)[0] or None


def _without_gateway(tags: list[str]) -> tuple[str | None, tuple[str, ...]]:
    """Our correlation id travels as a tag; it is not one."""
    ours = [tag for tag in tags if tag.startswith(GATEWAY_TAG)]
    gateway_id = ours[0].removeprefix(GATEWAY_TAG) if ours else None
    return gateway_id, tuple(tag for tag in tags if tag not in ours)


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1_000, UTC)


def _span(start: int | None, end: int | None) -> float | None:
    return float(end - start) if start is not None and end is not None else None

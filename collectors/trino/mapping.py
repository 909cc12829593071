"""Trino's query JSON → query events. Pure.

`GET /v1/query` gives a short form of each query, `GET /v1/query/{id}` a long one. A pruned long
form (`?pruned=true`) leaves out the operators, and says zero for what is summed up from them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from collectors.base import BadRowError
from collectors.events import parse_time
from collectors.trino.units import parse_milliseconds, parse_size
from collectors.understanding import Observed
from lakehouse_core.domain.query import EngineId, QueryEvent, QueryStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

FINAL_STATES = frozenset({"FINISHED", "FAILED"})
_QUEUED_STATES = frozenset({"QUEUED", "WAITING_FOR_RESOURCES", "DISPATCHING"})
_RUNNING_STATES = frozenset({"PLANNING", "STARTING", "RUNNING", "FINISHING"})
# Somebody ended it on purpose: not a failure of the query or of the engine.
_CANCELLED_CODES = frozenset({"USER_CANCELED", "ADMINISTRATIVELY_KILLED"})
_SUMMED_OVER_OPERATORS = ("writtenPositions", "logicalWrittenDataSize", "spilledDataSize")
# Statements whose result is a count, not rows somebody asked for.
ROWLESS_TYPES = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "DATA_DEFINITION", "ANALYZE", "ALTER_TABLE_EXECUTE"}
)


def is_final(basic: Mapping[str, Any]) -> bool:
    """Whether nothing more will happen to the query."""
    return basic.get("state") in FINAL_STATES


def writes(basic: Mapping[str, Any]) -> bool:
    """Whether the query writes, so that only the unpruned form knows how many rows."""
    return basic.get("updateType") is not None


def to_observed(
    engine_id: EngineId,
    url: str,
    basic: Mapping[str, Any],
    detail: Mapping[str, Any] | None,
    collected_at: datetime,
) -> Observed:
    """The event of a query, from its short form and, when it was fetched, its long form.

    Raises:
        BadRowError: a field that every query has is missing, or a value does not fit.
    """
    reader = _Reader(basic, detail)
    query_id = reader.text("queryId")
    if query_id is None:
        raise BadRowError("missing field queryId")
    session = reader.section("session")
    status = status_of(reader.get("state"), reader.section("errorCode").get("name"))
    event = QueryEvent(
        engine_id=engine_id,
        query_id=query_id,
        status=status,
        collected_at=collected_at,
        dialect="trino",
        sql_text=reader.text("query"),
        user_name=_text(session, "user"),
        source=_text(session, "source"),
        tags=_texts(session, "clientTags"),
        gateway_id=_text(session, "traceToken"),
        engine_url=f"{url}/ui/query.html?{query_id}",
        snapshot_ids=_snapshots(reader),
        **_times(reader, status),
        **_measures(reader),
        **_error(reader),
    )
    catalog, schema = _text(session, "catalog"), _text(session, "schema")
    return Observed(event, catalog, (schema,) if schema else ())


class _Reader:
    """Looks a field up in the long form, then in the short one."""

    def __init__(self, basic: Mapping[str, Any], detail: Mapping[str, Any] | None) -> None:
        self._forms = tuple(form for form in (detail, basic) if form is not None)
        self.is_detailed = detail is not None
        self.stats = self._merged_stats(basic, detail)

    def get(self, name: str) -> Any:
        return next((f[name] for f in self._forms if f.get(name) is not None), None)

    def text(self, name: str) -> str | None:
        value = self.get(name)
        return value if isinstance(value, str) else None

    def section(self, name: str) -> Mapping[str, Any]:
        value = self.get(name)
        return value if isinstance(value, dict) else {}

    def stat(self, name: str, parse: Callable[[Any], Any]) -> Any:
        value = self.stats.get(name)
        if value is None:
            return None
        try:
            return parse(value)
        except (TypeError, ValueError) as error:
            raise BadRowError(f"field queryStats.{name}: {error}") from error

    @staticmethod
    def _merged_stats(
        basic: Mapping[str, Any], detail: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        short, long = basic.get("queryStats"), (detail or {}).get("queryStats")
        if not isinstance(short, dict) and not isinstance(long, dict):
            raise BadRowError("missing field queryStats")
        long = dict(long) if isinstance(long, dict) else {}
        if detail is not None and detail.get("pruned"):
            for name in _SUMMED_OVER_OPERATORS:
                long.pop(name, None)
        return {**(short if isinstance(short, dict) else {}), **long}


def status_of(state: object, error_name: object) -> QueryStatus:
    """Our word for Trino's state of a query.

    Raises:
        BadRowError: Trino has no such state, as far as we know.
    """
    if state == "FINISHED":
        return QueryStatus.FINISHED
    if state in _QUEUED_STATES:
        return QueryStatus.QUEUED
    if state in _RUNNING_STATES:
        return QueryStatus.RUNNING
    if state == "FAILED":
        return QueryStatus.CANCELLED if error_name in _CANCELLED_CODES else QueryStatus.FAILED
    raise BadRowError(f"unknown state {state!r}")


def _times(reader: _Reader, status: QueryStatus) -> dict[str, Any]:
    """Times as the event listener gives them too: whole milliseconds.

    Of long durations Trino shows three digits only; what lies between two moments is counted from
    those. A query that was refused before it started has no start.
    """
    submitted_at = reader.stat("createTime", parse_time)
    if submitted_at is None:
        raise BadRowError("missing field queryStats.createTime")
    is_over = status.revision == 2
    started_at = reader.stat("executionStartTime", parse_time)
    ended_at = reader.stat("endTime", parse_time) if is_over else None
    execution, planning = (reader.stat(n, _whole) for n in ("executionTime", "planningTime"))
    if is_over and started_at == ended_at and not execution and not planning:
        started_at = execution = planning = None
    return {
        "submitted_at": submitted_at,
        "started_at": started_at,
        "ended_at": ended_at,
        "queued_ms": reader.stat("queuedTime", _whole),
        "planning_ms": planning,
        "execution_ms": _between(started_at, ended_at) if ended_at else execution,
        "elapsed_ms": _between(submitted_at, ended_at)
        if ended_at
        else reader.stat("elapsedTime", _whole),
        "cpu_ms": reader.stat("totalCpuTime", _whole),
    }


def _whole(value: Any) -> float:
    return float(round(parse_milliseconds(value)))


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start) / timedelta(milliseconds=1) if start and end else None


def _measures(reader: _Reader) -> dict[str, Any]:
    has_rows = reader.text("queryType") not in ROWLESS_TYPES
    rows = reader.stat("physicalInputPositions", _count)
    return {
        "bytes_scanned": reader.stat("physicalInputDataSize", parse_size),
        "rows_scanned": reader.stat("rawInputPositions", _count) if rows is None else rows,
        "rows_returned": reader.stat("outputPositions", _count) if has_rows else None,
        "bytes_written": reader.stat("physicalWrittenDataSize", parse_size),
        "rows_written": reader.stat("writtenPositions", _count),
        "peak_memory_bytes": reader.stat("peakUserMemoryReservation", parse_size),
        "spilled_bytes": reader.stat("spilledDataSize", parse_size),
    }


def _error(reader: _Reader) -> dict[str, Any]:
    code = reader.section("errorCode")
    kind = reader.text("errorType") or _text(code, "type")
    message = _text(reader.section("failureInfo"), "message")
    return {
        "error_class": kind.lower() if kind else None,
        "error_code": _text(code, "name"),
        "error_message": message,
    }


def snapshot_of(info: Any) -> int | None:
    """The snapshot a connector says it read: an Iceberg id, a signed 64-bit integer, or nothing."""
    found = info.get("snapshotId") if isinstance(info, dict) else None
    is_id = isinstance(found, int) and not isinstance(found, bool) and -(2**63) <= found < 2**63
    return found if is_id else None


def _snapshots(reader: _Reader) -> tuple[int, ...]:
    found: list[int] = []
    for table in reader.get("inputs") or ():
        snapshot = snapshot_of(table.get("connectorInfo")) if isinstance(table, dict) else None
        if snapshot is not None and snapshot not in found:
            found.append(snapshot)
    return tuple(found)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no count")  # noqa: TRY004 callers treat every misfit alike
    return value


def _text(section: Mapping[str, Any], name: str) -> str | None:
    value = section.get(name)
    return value if isinstance(value, str) else None


def _texts(section: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = section.get(name)
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()

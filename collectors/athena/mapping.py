"""Athena's QueryExecution → query events. Pure.

Figures without a column of their own (see `_TAGGED`) become tags `name=value`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from collectors.base import BadRowError
from collectors.understanding import Observed
from lakehouse_core.domain.query import QueryEvent, QueryStatus
from lakehouse_core.domain.text import well_formed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.athena.config import AthenaSettings

_STATES = {
    "QUEUED": QueryStatus.QUEUED,
    "RUNNING": QueryStatus.RUNNING,
    "SUCCEEDED": QueryStatus.FINISHED,
    "FAILED": QueryStatus.FAILED,
    "CANCELLED": QueryStatus.CANCELLED,
}
_FINAL_STATES = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})
_ERROR_CLASSES = {1: "system", 2: "user", 3: "other"}  # AthenaError.ErrorCategory
# What a price or a rule may want to know of a query: path in the payload → name of the tag.
_TAGGED = {
    ("WorkGroup",): "workgroup",
    ("StatementType",): "statement_type",
    ("SubstatementType",): "substatement_type",
    ("EngineVersion", "EffectiveEngineVersion"): "engine_version",
    ("Statistics", "ServicePreProcessingTimeInMillis"): "service_preprocessing_ms",
    ("Statistics", "ServiceProcessingTimeInMillis"): "service_processing_ms",
    ("Statistics", "DpuCount"): "dpu_count",
    ("Statistics", "DataManifestLocation"): "data_manifest",
    ("Statistics", "ResultReuseInformation", "ReusedPreviousResult"): "result_reused",
}


def is_final(payload: Mapping[str, Any]) -> bool:
    """Whether nothing more will happen to the query."""
    status = payload.get("Status")
    return isinstance(status, dict) and status.get("State") in _FINAL_STATES


def submitted_at(payload: Mapping[str, Any]) -> datetime | None:
    """When the query came; None when that cannot be read."""
    try:
        return _time(_section(payload, "Status"), "SubmissionDateTime")
    except BadRowError:
        return None


def to_observed(
    settings: AthenaSettings, payload: Mapping[str, Any], collected_at: datetime
) -> Observed:
    """The event of a query.

    Raises:
        BadRowError: a field that every query has is missing, or a value does not fit; says which.
    """
    query_id = _text(payload, "QueryExecutionId")
    if query_id is None:
        raise BadRowError("missing field QueryExecutionId")
    status = _status(payload)
    event = QueryEvent(
        engine_id=settings.engine_id,
        query_id=query_id,
        status=status,
        collected_at=collected_at,
        dialect="athena",
        sql_text=_text(payload, "Query"),
        tags=_tags(payload),
        engine_url=_console(settings.region, query_id),
        **_times(payload, status),
        **_error(payload, status),
    )
    context = _section(payload, "QueryExecutionContext")
    database = _text(context, "Database")
    return Observed(event, _catalog(settings, context), (database.lower(),) if database else ())


def _status(payload: Mapping[str, Any]) -> QueryStatus:
    state = _section(payload, "Status").get("State")
    status = _STATES.get(state) if isinstance(state, str) else None
    if status is None:
        raise BadRowError(f"field Status.State: unknown state {state!r:.80}")
    return status


def _times(payload: Mapping[str, Any], status: QueryStatus) -> dict[str, Any]:
    told = _section(payload, "Status")
    submitted = _time(told, "SubmissionDateTime")
    if submitted is None:
        raise BadRowError("missing field Status.SubmissionDateTime")
    statistics = _section(payload, "Statistics")
    queued = _count(statistics, "QueryQueueTimeInMillis")
    before = _count(statistics, "ServicePreProcessingTimeInMillis")
    has_started = queued is not None and status is not QueryStatus.QUEUED
    return {
        "submitted_at": submitted,
        # Athena tells no start: it is the submission plus what it says passed before the engine.
        "started_at": submitted + timedelta(milliseconds=(queued or 0) + (before or 0))
        if has_started
        else None,
        "ended_at": _time(told, "CompletionDateTime") if status.revision == 2 else None,
        "queued_ms": _milliseconds(queued),
        "planning_ms": _milliseconds(_count(statistics, "QueryPlanningTimeInMillis")),
        "execution_ms": _milliseconds(_count(statistics, "EngineExecutionTimeInMillis")),
        "elapsed_ms": _milliseconds(_count(statistics, "TotalExecutionTimeInMillis")),
        "bytes_scanned": _count(statistics, "DataScannedInBytes"),
    }


def _error(payload: Mapping[str, Any], status: QueryStatus) -> dict[str, Any]:
    if status not in (QueryStatus.FAILED, QueryStatus.CANCELLED):
        return {}
    told = _section(payload, "Status")
    error = _section(told, "AthenaError")
    category, kind = _count(error, "ErrorCategory"), _count(error, "ErrorType")
    return {
        "error_class": _ERROR_CLASSES.get(category) if category is not None else None,
        "error_code": str(kind) if kind is not None else None,
        "error_message": _text(error, "ErrorMessage") or _text(told, "StateChangeReason"),
    }


def _tags(payload: Mapping[str, Any]) -> tuple[str, ...]:
    tags = []
    for path, name in _TAGGED.items():
        section = payload
        for step in path[:-1]:
            section = _section(section, step)
        value = section.get(path[-1])
        if isinstance(value, bool):
            value = str(value).lower()
        if isinstance(value, str | int | float) and value != "":
            tags.append(well_formed(f"{name}={value}"))
    return tuple(tags)


def _catalog(settings: AthenaSettings, context: Mapping[str, Any]) -> str:
    named = _text(context, "Catalog")
    if named is None or named.lower() == settings.data_catalog.lower():
        return settings.catalog
    return named.lower()


def _console(region: str, query_id: str) -> str:
    place = f"https://{region}.console.aws.amazon.com/athena/home?region={region}"
    return f"{place}#/query-editor/history/{query_id}"


def _section(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return well_formed(value) if isinstance(value, str) and value else None


def _count(payload: Mapping[str, Any], name: str) -> int | None:
    value = payload.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise BadRowError(f"field {name}: {value!r:.80} is no count")
    return value


def _milliseconds(value: int | None) -> float | None:
    return None if value is None else float(value)


def _time(payload: Mapping[str, Any], name: str) -> datetime | None:
    value = payload.get(name)
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise BadRowError(f"field {name}: {value!r:.80} is no time with a zone")
    return value.astimezone(UTC)

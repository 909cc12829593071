"""What every query source does with SQL texts, in one place: redact, fingerprint, note usage.

Each distinct text is looked at once; a batch carries each template of its events once, with the
columns the template uses and the cells of the sketches its literals fall into.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import UTC
from typing import TYPE_CHECKING

from lakehouse_core.domain.table import join_name
from lakehouse_core.sql import Inspection, inspect
from lakehouse_core.sql.redaction import Redacted, redact
from lakehouse_core.sql.sketch import LiteralCell, cells, merged
from lakehouse_core.store.rows import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    import pyarrow as pa

    from lakehouse_core.domain.query import QueryEvent

TABLES = ("query_event", "query_template", "column_usage", "column_literal")
MAX_MESSAGE = 4_000
_CACHED_TEXTS = 10_000


@dataclass(frozen=True, slots=True)
class Observed:
    """An event and the names its session resolved unqualified tables with."""

    event: QueryEvent
    default_catalog: str | None = None
    default_namespace: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTemplate:
    """A fingerprint and its text; a row of `query_template`."""

    template_id: str
    dialect: str
    template: str
    statement_kind: str
    parse_error: str | None
    parse_reason: str | None
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUsage:
    """A column a template uses, and how; a row of `column_usage`."""

    template_id: str
    table_name: str
    column_name: str
    role: str


@dataclass(frozen=True, slots=True)
class _Understood:
    redacted: Redacted
    inspection: Inspection


class Understanding:
    """Turns observed events into rows of the store; remembers the texts it has seen."""

    def __init__(self, cached_texts: int = _CACHED_TEXTS) -> None:
        self._limit = cached_texts
        self._seen: OrderedDict[tuple[object, ...], _Understood] = OrderedDict()

    def event(self, item: Observed) -> QueryEvent:
        """The event as the store may have it: template and kind filled in, secrets masked."""
        event = _with_defaults(item)
        understood = self._understand(item)
        if understood is None:
            return _without_text(event)
        return _enriched(event, understood)

    def rows(self, observed: Sequence[Observed]) -> dict[str, pa.Table]:
        """The events with template and kind filled in, and the templates they are made from."""
        if not observed:
            return {}
        events: list[QueryEvent] = []
        templates: dict[str, QueryTemplate] = {}
        usage: dict[tuple[str, str, str, str], ColumnUsage] = {}
        literals: list[LiteralCell] = []
        for item in observed:
            event = self.event(item)
            events.append(event)
            understood = self._understand(item)
            if understood and event.template_id and event.template_id not in templates:
                template = _template(event, understood.inspection)
                templates[template.template_id] = template
                usage |= {_key(use): use for use in _usage(understood.inspection)}
            if understood:
                literals += _literals(event, understood.inspection)
        tables: dict[str, Sequence[object]] = {
            "query_event": events,
            "query_template": list(templates.values()),
            "column_usage": list(usage.values()),
            "column_literal": merged(literals),
        }
        return {name: to_arrow(name, rows) for name, rows in tables.items() if rows}

    def _understand(self, item: Observed) -> _Understood | None:
        sql, dialect = item.event.sql_text, item.event.dialect
        if not sql or dialect is None:
            return None
        key = (sql, dialect, item.default_catalog, item.default_namespace)
        known = self._seen.get(key)
        if known is not None:
            self._seen.move_to_end(key)
            return known
        redacted = redact(sql, dialect)
        inspection = inspect(
            redacted.text,
            dialect,
            default_catalog=item.default_catalog,
            default_namespace=item.default_namespace,
            literals=True,
        )
        understood = _Understood(redacted, inspection)
        self._seen[key] = understood
        if len(self._seen) > self._limit:
            self._seen.popitem(last=False)
        return understood


def _with_defaults(item: Observed) -> QueryEvent:
    """The event with what its text needs to be understood again by somebody else."""
    event, namespace = item.event, item.default_namespace
    return replace(
        event,
        default_catalog=event.default_catalog or item.default_catalog,
        default_namespace=event.default_namespace or (join_name(namespace) if namespace else None),
    )


def _enriched(event: QueryEvent, understood: _Understood) -> QueryEvent:
    redacted, inspection = understood.redacted, understood.inspection
    translated = event.translated_sql
    message = event.error_message
    return replace(
        event,
        sql_text=redacted.text,
        translated_sql=redact(translated, event.dialect).text if translated else None,
        error_message=redacted.hush(message)[:MAX_MESSAGE] if message else None,
        statement_kind=event.statement_kind or inspection.kind,
        template_id=inspection.template_id or None,
    )


def _without_text(event: QueryEvent) -> QueryEvent:
    message = event.error_message
    return replace(event, error_message=message[:MAX_MESSAGE] if message else None)


def _template(event: QueryEvent, inspection: Inspection) -> QueryTemplate:
    return QueryTemplate(
        template_id=str(inspection.template_id),
        dialect=event.dialect or "",
        template=inspection.template or event.sql_text or "",
        statement_kind=inspection.kind,
        parse_error=inspection.error,
        parse_reason=inspection.reason,
        seen_at=event.collected_at,
    )


def _usage(inspection: Inspection) -> Iterable[ColumnUsage]:
    for use in inspection.columns:
        if use.table and use.column:  # what could not be resolved is not guessed
            yield ColumnUsage(
                template_id=str(inspection.template_id),
                table_name=use.table,
                column_name=use.column,
                role=use.role,
            )


def _literals(event: QueryEvent, inspection: Inspection) -> Iterable[LiteralCell]:
    used_on = event.submitted_at.astimezone(UTC).date()
    return cells(str(inspection.template_id), inspection.predicates or (), used_on)


def _key(use: ColumnUsage) -> tuple[str, str, str, str]:
    return (use.template_id, use.table_name, use.column_name, use.role)

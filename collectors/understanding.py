"""What every query source does with SQL texts, in one place: redact, fingerprint, note usage.

Each distinct text is looked at once; a batch carries each template of its events once, with the
tables and columns it uses under the defaults of their sessions, and the cells of the sketches its
literals fall into. A column that no known table explains is a row with an empty table.
"""

from __future__ import annotations

import sys
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
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    import pyarrow as pa

    from lakehouse_core.domain.query import QueryEvent
    from lakehouse_core.sql.schema import Schema

TABLES = ("query_event", "query_template", "template_table", "column_usage", "column_literal")
MAX_MESSAGE = 4_000
_CACHED_TEXTS = 10_000
_CACHED_BYTES = 32 * 2**20
_SHARE_OF_ONE = 8  # a text that would take more than this part of the memory is not remembered
_BYTES_BESIDE_TEXTS = 2_000  # of the records of an entry, about


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
class TemplateTable:
    """A table that a template names under these defaults; a row of `template_table`."""

    template_id: str
    default_catalog: str
    default_namespace: str
    table_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUsage:
    """A column a template uses under these defaults, and how; a row of `column_usage`."""

    template_id: str
    default_catalog: str
    default_namespace: str
    table_name: str
    column_name: str
    role: str


@dataclass(frozen=True, slots=True)
class _Understood:
    redacted: Redacted
    inspection: Inspection

    def size_bytes(self, sql: str) -> int:
        """What remembering it costs, about."""
        texts = {id(text): text for text in (sql, self.redacted.text, self.inspection.template)}
        return _BYTES_BESIDE_TEXTS + sum(sys.getsizeof(text) for text in texts.values())


class Understanding:
    """Turns observed events into rows of the store; remembers the texts it has seen.

    Args:
        columns: says which columns the lake's tables have, as far as they were collected; asked
            for every batch. Without them a column of a join that names no table stays open.
        cached_texts: how many texts are remembered.
        cached_bytes: how much memory they may take.
    """

    def __init__(
        self,
        columns: Callable[[], Schema | None] = lambda: None,
        *,
        cached_texts: int = _CACHED_TEXTS,
        cached_bytes: int = _CACHED_BYTES,
    ) -> None:
        self._columns = columns
        self._limit = cached_texts
        self._bytes_limit = cached_bytes
        self._bytes = 0
        self._seen: OrderedDict[tuple[object, ...], tuple[_Understood, int]] = OrderedDict()

    @property
    def remembered_bytes(self) -> int:
        """What the remembered texts take, about."""
        return self._bytes

    def event(self, item: Observed) -> QueryEvent:
        """The event as the store may have it: template and kind filled in, secrets masked."""
        return _told(item, self._understand(item, self._columns()))

    def rows(self, observed: Sequence[Observed]) -> dict[str, pa.Table]:
        """The events with template and kind filled in, and the templates they are made from."""
        if not observed:
            return {}
        columns = self._columns()
        events: list[QueryEvent] = []
        templates: dict[str, QueryTemplate] = {}
        tables: dict[TemplateTable, None] = {}
        usage: dict[ColumnUsage, None] = {}
        described: set[tuple[str, str, str]] = set()
        literals: list[LiteralCell] = []
        for item in observed:
            understood = self._understand(item, columns)
            event = _told(item, understood)
            events.append(event)
            if understood is None or not event.template_id:
                continue
            inspection = understood.inspection
            templates.setdefault(event.template_id, _template(event, inspection))
            shape = _shape(event)
            if shape not in described:
                described.add(shape)
                tables |= dict.fromkeys(_tables(shape, inspection))
                usage |= dict.fromkeys(_usage(shape, inspection))
            literals += _literals(event, inspection)
        found: dict[str, Sequence[object]] = {
            "query_event": events,
            "query_template": list(templates.values()),
            "template_table": list(tables),
            "column_usage": list(usage),
            "column_literal": merged(literals),
        }
        return {name: to_arrow(name, rows) for name, rows in found.items() if rows}

    def _understand(self, item: Observed, columns: Schema | None) -> _Understood | None:
        sql, dialect = item.event.sql_text, item.event.dialect
        if not sql or dialect is None:
            return None
        key = (
            sql,
            dialect,
            item.default_catalog,
            item.default_namespace,
            columns.key if columns else None,
        )
        known = self._seen.get(key)
        if known is not None:
            self._seen.move_to_end(key)
            return known[0]
        redacted = redact(sql, dialect)
        inspection = inspect(
            redacted.text,
            dialect,
            default_catalog=item.default_catalog,
            default_namespace=item.default_namespace,
            schema=columns,
            literals=True,
        )
        understood = _Understood(redacted, inspection)
        self._remember(key, understood, understood.size_bytes(sql))
        return understood

    def _remember(self, key: tuple[object, ...], understood: _Understood, size_bytes: int) -> None:
        if size_bytes > self._bytes_limit // _SHARE_OF_ONE:
            return
        self._seen[key] = (understood, size_bytes)
        self._bytes += size_bytes
        while len(self._seen) > self._limit or self._bytes > self._bytes_limit:
            _, (_, freed) = self._seen.popitem(last=False)
            self._bytes -= freed


def _told(item: Observed, understood: _Understood | None) -> QueryEvent:
    event = _with_defaults(item)
    return _without_text(event) if understood is None else _enriched(event, understood)


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


def _shape(event: QueryEvent) -> tuple[str, str, str]:
    """What the tables and columns of a text depend on: its template and its session's defaults."""
    return (
        str(event.template_id),
        event.default_catalog or "",
        event.default_namespace or "",
    )


def _tables(shape: tuple[str, str, str], inspection: Inspection) -> Iterable[TemplateTable]:
    template_id, catalog, namespace = shape
    for name in inspection.tables:
        yield TemplateTable(
            template_id=template_id,
            default_catalog=catalog,
            default_namespace=namespace,
            table_name=name,
        )


def _usage(shape: tuple[str, str, str], inspection: Inspection) -> Iterable[ColumnUsage]:
    template_id, catalog, namespace = shape
    for use in inspection.columns:
        if use.column:
            yield ColumnUsage(
                template_id=template_id,
                default_catalog=catalog,
                default_namespace=namespace,
                table_name=use.table,  # empty when nobody knows: listed, not guessed
                column_name=use.column,
                role=use.role,
            )


def _literals(event: QueryEvent, inspection: Inspection) -> Iterable[LiteralCell]:
    used_on = event.submitted_at.astimezone(UTC).date()
    return cells(str(inspection.template_id), inspection.predicates or (), used_on)

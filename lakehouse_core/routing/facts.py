"""What a text tells, looked up by the text itself, then by the text without its literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.routing.names import name_parts
from lakehouse_core.routing.request import StatementFacts
from lakehouse_core.sql.cache import Cache
from lakehouse_core.sql.inspector import Inspector, default_inspector

if TYPE_CHECKING:
    from lakehouse_core.routing.request import Request
    from lakehouse_core.sql.records import Inspection

_TEXTS = 4_096
_LONGEST_TEXT = 16 * 1024  # characters; what is longer is looked up by its key
_TEMPLATES = 20_000


class Facts:
    """Reads texts and remembers them."""

    def __init__(self, inspector: Inspector | None = None) -> None:
        self._inspector = inspector or default_inspector()
        self._texts: Cache[tuple[str | None, ...], StatementFacts] = Cache(_TEXTS)
        self._templates: Cache[tuple[object, ...], StatementFacts] = Cache(_TEMPLATES)

    def of(self, request: Request) -> StatementFacts:
        """The facts of a request's text; never raises on account of the text."""
        sql = request.sql
        text_key = (sql, request.dialect, request.catalog, request.schema)
        known = self._texts.get(text_key)
        if known is not None:
            return known
        found = self._inspector.glance(
            sql,
            request.dialect,
            default_catalog=request.catalog,
            default_namespace=() if request.schema is None else (request.schema,),
        )
        # One record for each template: equal ones need not be kept twice.
        template_key = (found.template_id, found.tables, found.error)
        facts = self._templates.get(template_key)
        if facts is None:
            facts = _facts(found)
            self._templates.put(template_key, facts)
        if len(sql) <= _LONGEST_TEXT:
            self._texts.put(text_key, facts)
        return facts


def _facts(found: Inspection) -> StatementFacts:
    names = (name_parts(table) for table in found.tables)
    return StatementFacts(
        template_id=found.template_id,
        kind=found.kind,
        tables=found.tables,
        error=found.error,
        template=found.template,
        catalogs=frozenset(parts[0] for parts in names if len(parts) >= 3),
    )

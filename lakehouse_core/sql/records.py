"""What the SQL room hands out: the fingerprint of a statement and the usage read from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lakehouse_core.domain.query import StatementKind, TemplateId

Role = Literal["filter_eq", "filter_range", "filter_in", "join", "group", "order", "project"]


@dataclass(frozen=True, slots=True, order=True)
class ColumnUse:
    """One column in one role.

    Attributes:
        table: the base table, named as in `Inspection.tables`; "" when the text alone does not
            say which table the column belongs to.
        column: the column's folded name; "*" for a star over a table of unknown columns.
        role: what the statement does with the column.
    """

    table: str
    column: str
    role: Role


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A statement without its literals, aliases, comments and layout.

    Attributes:
        template_id: hash of `template`; equal for equal templates in any dialect.
        template: readable text with `?` for literals and canonical alias names.
        kind: what the statement does.
        error: one line saying why the statement was not understood; None when it was.
    """

    template_id: TemplateId
    template: str
    kind: StatementKind
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """A fingerprint with the tables and columns the statement uses.

    Attributes:
        template_id: see `Fingerprint`.
        template: see `Fingerprint`.
        kind: see `Fingerprint`.
        tables: base tables read or written, sorted; never the name of a CTE or an alias.
        columns: columns read, each with its role, sorted.
        error: see `Fingerprint`; tables and columns are empty when it is set.
    """

    template_id: TemplateId
    template: str
    kind: StatementKind
    tables: tuple[str, ...] = ()
    columns: tuple[ColumnUse, ...] = ()
    error: str | None = None

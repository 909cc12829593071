"""What the SQL room hands out: the fingerprint of a statement and the usage read from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lakehouse_core.domain.query import StatementKind, TemplateId

Role = Literal["filter_eq", "filter_range", "filter_in", "join", "group", "order", "project"]
Operator = Literal["=", "<=>", "<", "<=", ">", ">=", "in", "between", "like", "is_null", "other"]
LiteralKind = Literal["number", "text", "date", "timestamp", "boolean", "null", "unknown"]


class UnparsedReason(StrEnum):
    """Why a statement was not understood, without the place and the words of this one text."""

    EMPTY = "empty"
    SEVERAL_STATEMENTS = "several_statements"
    TOO_LONG = "too_long"
    TOO_COMPLEX = "too_complex"
    UNCLOSED = "unclosed"
    NOT_A_STATEMENT = "not_a_statement"
    SYNTAX = "syntax"
    UNKNOWN_DIALECT = "unknown_dialect"
    PARSER_FAILED = "parser_failed"


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
        reason: the class of that error, the same for every text that fails alike.
    """

    template_id: TemplateId
    template: str
    kind: StatementKind
    error: str | None = None
    reason: UnparsedReason | None = None


@dataclass(frozen=True, slots=True, order=True)
class LiteralValue:
    """A value a column is compared with.

    Attributes:
        kind: its type, as far as the text says it.
        text: its canonical form, equal for equal values in any dialect: numbers without needless
            digits, dates and times in ISO 8601 (UTC when a zone is given), `true` and `false`.
            None for null and for what is only known when the statement runs.
    """

    kind: LiteralKind
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition on one column, with the values of this very text.

    Attributes:
        table: the base table, as in `ColumnUse`.
        column: the column, as in `ColumnUse`.
        role: the role the condition gives the column.
        operator: with the column on the left; `<>` is a negated `=`, a negated `<` is a `>=`.
        values: two for `between`, any number for `in`, one otherwise; of a long list the smallest,
            the largest and as many as are kept (see `count`).
        function: what the column is wrapped in: YEAR, CAST AS DATE, EXPRESSION; None for nothing.
        is_negated: rows that fulfil the condition are left out.
        is_conjunct: a row of the table is read in vain unless it fulfils the condition, so files
            without such rows can be skipped.
        or_group: number of the OR the condition stands in; None outside.
        count: how many values the text has.
        is_complete: every value is there, in full.
    """

    table: str
    column: str
    role: Role
    operator: Operator
    values: tuple[LiteralValue, ...] = ()
    function: str | None = None
    is_negated: bool = False
    is_conjunct: bool = True
    or_group: int | None = None
    count: int = 1
    is_complete: bool = True


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
        reason: see `Fingerprint`.
        predicates: conditions on columns with their literals; None when they were not asked for.
    """

    template_id: TemplateId
    template: str
    kind: StatementKind
    tables: tuple[str, ...] = ()
    columns: tuple[ColumnUse, ...] = ()
    error: str | None = None
    reason: UnparsedReason | None = None
    predicates: tuple[Predicate, ...] | None = None

"""What stands in place of a table: a subquery with the columns and rows its reader may see.

The reader's own conditions, joins and aggregates work on what the subquery gives, so a masked
column is masked before anything is done with it, however deep the table stands in the statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from lakehouse_core.sql.analysis import PARSER_FAILURES
from lakehouse_core.sql.guard.records import RefusedError, Rule

if TYPE_CHECKING:
    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.guard.records import Access, Policy

NULL_MASK, HASH_MASK, REDACTED_MASK = "null", "hash", "redacted"
REDACTED = "***"

_ROW = "lakehelm_row"  # qualifies every column inside: no alias of the list can stand in for one
# Equal for equal values on every engine: SHA-256 as lower-case hexadecimal.
_HASHES = {
    **dict.fromkeys(
        ("trino", "athena", "presto"), "lower(to_hex(sha256(to_utf8(CAST(x AS varchar)))))"
    ),
    **dict.fromkeys(("spark", "databricks"), "sha2(CAST(x AS string), 256)"),
    "duckdb": "sha256(CAST(x AS varchar))",
    "snowflake": "sha2(CAST(x AS varchar), 256)",
}


@dataclass(frozen=True, slots=True)
class Viewer:
    """For whom a subquery is made.

    Attributes:
        dialect: of the statement.
        policy: of the role.
        user: the value of `:user`.
    """

    dialect: SqlDialect
    policy: Policy
    user: str | None

    def rows_of(
        self, source: exp.Expr, columns: tuple[str, ...] | None, access: Access
    ) -> exp.Subquery:
        """The subquery that gives what the role sees.

        Args:
            source: a table or subquery without alias.
            columns: what it has, in order; None: not known, and each is seen as it is.
            access: what the role sees.

        Raises:
            RefusedError: nothing is seen, or a mask cannot be said in the dialect.
        """
        source.set("alias", exp.TableAlias(this=exp.to_identifier(_ROW)))
        query = exp.Select(
            expressions=[exp.Column(this=exp.Star(), table=exp.to_identifier(_ROW))]
            if columns is None
            else self._seen(columns, access),
            from_=exp.From(this=source),
        )
        if access.row_filters:
            conditions = [self._expression(text) for text in access.row_filters]
            query.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
        return exp.Subquery(this=query)

    def text_of(self, tree: exp.Expr) -> str:
        """A tree as the statement's dialect writes it.

        Raises:
            RefusedError: it cannot be said in that dialect.
        """
        try:
            return tree.sql(dialect=self.dialect.base, unsupported_level=ErrorLevel.RAISE)
        except PARSER_FAILURES as error:
            raise self._unsayable() from error

    def name(self, identifier: exp.Expr) -> exp.Identifier:
        """A quoted name that means the same as a name of the statement."""
        is_quoted = bool(identifier.args.get("quoted"))
        return exp.to_identifier(self.dialect.fold(identifier.name, is_quoted), quoted=True)

    def _column(self, name: str) -> exp.Identifier:
        """A column of the catalog, whose names are lower case where an engine folds to upper."""
        is_folded = name == name.lower()
        return exp.to_identifier(self.dialect.fold(name, not is_folded), quoted=True)

    def _seen(self, columns: tuple[str, ...], access: Access) -> list[exp.Expr]:
        items: list[exp.Expr] = []
        for name in columns:
            if not access.sees(name.lower()):
                continue
            column = exp.Column(this=self._column(name), table=exp.to_identifier(_ROW))
            mask = access.masks.get(name.lower())
            if mask is None:
                items.append(column)
            else:
                items.append(exp.Alias(this=self._masked(mask, column), alias=self._column(name)))
        if not items:
            raise RefusedError(Rule.COLUMN_GRANT, "none of the table's columns is granted")
        return items

    def _masked(self, mask: str, column: exp.Column) -> exp.Expr:
        kind = mask.strip().lower()
        if kind == REDACTED_MASK:
            return exp.Literal.string(REDACTED)
        if kind == NULL_MASK:  # a null of the column's own type
            never = exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(0))
            return exp.Case(ifs=[exp.If(this=never, true=column)])
        if kind != HASH_MASK:
            return exp.Paren(this=self._expression(mask))
        template = _HASHES.get(self.dialect.name)
        if template is None:
            raise RefusedError(
                Rule.MASK, f"the mask hash is not known in {self.dialect.name}; use another one"
            )
        return sqlglot.parse_one(template, read=self.dialect.base).transform(
            lambda node: column if isinstance(node, exp.Column) else node
        )

    def _expression(self, text: str) -> exp.Expr:
        try:
            return sqlglot.parse_one(text, read=self.policy.dialect).transform(self._bind)
        except PARSER_FAILURES as error:
            raise self._unsayable() from error

    def _bind(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Placeholder):
            value = {"user": self.user, "role": self.policy.role}.get(node.name)
            if value is None:
                raise SqlglotError(f"no value for :{node.name}")
            return exp.Literal.string(value)
        if isinstance(node, exp.Column) and not node.table:
            node.set("table", exp.to_identifier(_ROW))
        return node

    def _unsayable(self) -> RefusedError:
        return RefusedError(
            Rule.MASK,
            f"a mask or row filter of the role {self.policy.role} cannot be written in "
            f"{self.dialect.name} for this user; change it under governance.roles",
        )


def expression_problem(text: str, dialect: str) -> str | None:
    """Why a text is no mask or row filter, or None."""
    if text.strip().lower() in (NULL_MASK, HASH_MASK, REDACTED_MASK):
        return None
    try:
        tree = sqlglot.parse_one(text, read=dialect)
    except PARSER_FAILURES:
        return f"{text!r} is not an expression of {dialect}"
    if not isinstance(tree, exp.Condition) or tree.find(exp.Query):
        return f"{text!r} is not an expression on one row"
    unknown = {node.name for node in tree.find_all(exp.Placeholder)} - {"user", "role"}
    if unknown:
        return f":{sorted(unknown)[0]} in {text!r} is neither :user nor :role"
    return None

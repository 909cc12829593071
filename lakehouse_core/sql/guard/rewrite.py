"""What is changed in a statement: tables that hide something become subqueries, results are cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from lakehouse_core.sql.guard.edits import Edit, Limit, apply
from lakehouse_core.sql.guard.masks import Viewer
from lakehouse_core.sql.guard.parse import lexed_of, tree_of
from lakehouse_core.sql.guard.records import RefusedError, Rule
from lakehouse_core.sql.guard.text import refuse_raw
from lakehouse_core.sql.guard.walk import Walk
from lakehouse_core.sql.lex import end_of
from lakehouse_core.sql.tree import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakehouse_core.sql.dialect import SqlDialect
    from lakehouse_core.sql.guard.records import Access
    from lakehouse_core.sql.guard.statement import Reading
    from lakehouse_core.sql.guard.walk import TableUse
    from lakehouse_core.sql.lex import Lexed

# A subquery takes none of these, or takes them elsewhere.
_ATTACHED = ("sample", "pivots", "version", "when", "only", "indexed", "ordinality")
_PARTS = ("this", "db", "catalog")


class Rewriter:
    """Puts subqueries in place of tables that hide something from the role."""

    def __init__(self, sql: str, root: exp.Expr, reading: Reading, user: str | None) -> None:
        self._sql = sql
        self._root = root
        self._reading = reading
        self._viewer = Viewer(reading.dialect, reading.policy, user)

    def edits(
        self, uses: list[tuple[TableUse, Access]], views: Mapping[TableUse, str | None]
    ) -> list[Edit]:
        """The changes, proven on the changed text.

        Args:
            uses: every table, with what the role sees of it.
            views: texts that take the place of views.

        Raises:
            RefusedError: a table stands where no subquery can, or the proof fails.
        """
        governed = [(use, access) for use, access in uses if access.hides or views.get(use)]
        edits = [self._edit(use, access, views.get(use)) for use, access in governed]
        edits += self._column_edits([use for use, _ in governed])
        changed, spans = apply(self._sql, edits)
        injected = [span for edit, span in zip(sorted(edits), spans, strict=True) if edit.text]
        self._prove(changed, injected)
        return edits

    def _edit(self, use: TableUse, access: Access, view: str | None) -> Edit:
        node = use.node
        name = ".".join(use.parts)
        if any(node.args.get(key) for key in _ATTACHED):
            raise RefusedError(
                Rule.MASK,
                f"{name} hides something from the role {self._reading.policy.role} and cannot be "
                "sampled, pivoted or read as of another time; use a subquery",
            )
        relation = self._reading.tables.relation(self._reading.complete(use.parts))
        columns = relation.columns if relation else None
        if access.hides_columns and columns is None:
            raise RefusedError(
                Rule.MASK, f"the columns of {name} are not known, so they cannot be masked"
            )
        text = self._rows(node, columns if access.hides_columns else None, access, view)
        if not node.args.get("alias"):
            text += f" AS {self._viewer.text_of(self._viewer.name(node.parts[-1]))}"
        start, end = node.parts[0].meta["start"], node.parts[-1].meta["end"] + 1
        return Edit(start, end, text)

    def _rows(
        self, node: exp.Table, columns: tuple[str, ...] | None, access: Access, view: str | None
    ) -> str:
        """The subquery that takes the place of a table; the same one for every statement."""
        viewer, known = self._viewer, self._reading.tables.subqueries
        name = tuple((part.name, bool(part.args.get("quoted"))) for part in node.parts)
        key = (viewer.dialect.name, name, viewer.user, view)
        text = known.get(key)
        if text is None:
            source: exp.Expr = exp.Table(
                **{part: node.args[part].copy() for part in _PARTS if node.args.get(part)}
            )
            if view is not None:
                source = exp.Subquery(this=sqlglot.parse_one(view, read=viewer.dialect.base))
            text = viewer.text_of(viewer.rows_of(source, columns, access))
            known.put(key, text)
        return text

    def _column_edits(self, uses: list[TableUse]) -> Iterator[Edit]:
        """Cut `lake.demo.` off `lake.demo.customers.name`: the subquery has one name only."""
        names = [use.parts for use in uses if not use.node.args.get("alias")]
        for column in self._root.find_all(exp.Column):
            *owner, _ = column.parts
            if len(owner) < 2 or any("start" not in part.meta for part in owner):
                continue
            written = tuple(part.name.lower() for part in owner)
            if any(parts[-len(written) :] == written for parts in names):
                yield Edit(owner[0].meta["start"], owner[-1].meta["start"], "")

    def _prove(self, changed: str, injected: list[tuple[int, int]]) -> None:
        """Read the changed text again: what hides something stands in our subqueries only.

        Raises:
            RefusedError: it does not.
        """
        reading = self._reading
        refuse_raw(changed, reading.dialect)
        tree = tree_of(lexed_of(changed, reading.dialect), reading.dialect)
        root = tree.root
        if isinstance(root, (exp.Describe, exp.Summarize)):
            root = root.this
        # Masks and row filters are the administrator's: they may use what the role may not.
        for use in Walk(reading.dialect, reading.policy.unrestricted()).run(root).tables:
            start = use.node.parts[0].meta["start"]
            is_ours = any(first <= start < last for first, last in injected)
            if not is_ours and reading.policy.access(reading.complete(use.parts)).hides:
                raise RefusedError(
                    Rule.MASK, f"{'.'.join(use.parts)} stands where it cannot be masked"
                )


# --- row limit -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowLimit:
    """How the result is cut.

    Attributes:
        around: text to put in, where the statement has no limit that can be lowered.
        limit: its own limit and the highest it may be.
        edit: the change to its own limit in this text.
    """

    around: list[Edit] = field(default_factory=list)
    limit: Limit | None = None
    edit: Edit | None = None


def row_limit(
    root: exp.Expr, lexed: Lexed, dialect: SqlDialect, max_rows: int | None
) -> RowLimit | None:
    """How to cut the result of a query to so many rows."""
    if max_rows is None:
        return None
    clause = root.args.get("limit")
    if clause is None and root.args.get("offset") is None:
        end = _end_of(lexed, dialect)
        return RowLimit(around=[Edit(end, end, f"\nLIMIT {max_rows}")])
    number = _literal_of(clause, len(lexed.literals))
    if number < 0:
        end = _end_of(lexed, dialect)
        first = min(token.start for token in lexed.tokens)
        return RowLimit(
            around=[
                Edit(first, first, "SELECT * FROM ("),
                Edit(end, end, f"\n) AS lakehelm_rows LIMIT {max_rows}"),
            ]
        )
    token = lexed.literals[number]
    limit = Limit(number, max_rows)
    text = limit.of(token.text)
    is_kept = text == token.text
    edit = None if is_kept else Edit(token.start, end_of(token) + 1, text)
    return RowLimit(limit=limit, edit=edit)


def _literal_of(clause: Any, count: int) -> int:
    """The number of the literal that is the limit; -1 when it is something else."""
    if clause.__class__ is exp.Limit:
        value = clause.expression
        extras = clause.args.get("limit_options") or clause.args.get("expressions")
    elif clause.__class__ is exp.Fetch:
        value = clause.args.get("count")
        options = clause.args.get("limit_options")
        extras = options and (options.args.get("percent") or options.args.get("with_ties"))
    else:
        return -1
    is_number = isinstance(value, exp.Literal) and not value.is_string
    return number_of(value.this, count) if is_number and not extras else -1


def _end_of(lexed: Lexed, dialect: SqlDialect) -> int:
    """Behind the last token that is no semicolon; lists of literals are gone from `lexed`."""
    tokens = dialect.tokenize(lexed.text)
    return max(t.end for t in tokens if t.token_type != TokenType.SEMICOLON) + 1
